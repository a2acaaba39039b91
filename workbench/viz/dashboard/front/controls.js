// What a person can do: buttons that ask. The study answers by its log, so nothing here changes what is shown.

function number(parent, words, least) {
  const input = make("input", "", make("label", "", parent, words));
  input.type = "number";
  input.min = least;
  input.value = least;
  return input;
}

// Whether anybody would answer: the kernel passes wishes on, and the study's driver answers them.
function answers(store) {
  return ["running", "paused"].includes(store.now.state) && !store.silent;
}

// A field of a form: a list where there are choices, else a line to type into, with what it takes behind it.
function fieldOf(parent, field, value) {
  const label = make("label", "", parent);
  make("span", "", label, field.name);
  const input = make(field.choices ? "select" : "input", "", label);
  for (const choice of field.choices ?? []) make("option", "", input, String(choice));
  if (value !== undefined) input.value = String(value);
  input.dataset.name = field.name;
  if (field.range) make("small", "wb-soft", label, field.range);
  return { label, input, now: () => (field.choices ? field.choices[input.selectedIndex] : input.value) };
}

// What a clone begins with, to be changed: the configuration of the trial that it was opened for.
function cloneForm(parent, store) {
  const form = make("div", "wb-form", parent);
  form.hidden = true;
  const rebuilt = whenChanged((trial, config, fields) => {
    form.replaceChildren();
    form.hidden = true;
    const made = new Map(fields.map((field) => [field.name, fieldOf(form, field, config[field.name])]));
    const holds = ([name, values]) => !made.get(name).label.hidden && values.map(String).includes(String(made.get(name).now()));
    // What does not apply is not asked for; each field depends on earlier ones alone.
    const settle = () => fields.forEach(({ name, only_if }) => (made.get(name).label.hidden = !Object.entries(only_if).every(holds)));
    form.oninput = settle;
    settle();
    button(form, "Start the clone", "", () => {
      const asked = [...made].filter(([name, { label, now }]) => !label.hidden && !(name in config && String(now()) === String(config[name])));
      store.wish("clone", { trial, config: Object.fromEntries(asked.map(([name, { now }]) => [name, now()])) });
      form.hidden = true;
    });
  });
  return { form, rebuilt };
}

// A form's fields: those of the study's space, or, where it is not known, of the trial's configuration.
function fieldsFor(store, config) {
  return store.meta.fields.length ? store.meta.fields : Object.keys(config).map((name) => ({ name, only_if: {} }));
}

// Buttons are made once and only switched on and off: a form must not be rebuilt while someone types into it.
function trialControls(parent, store, own) {
  const row = make("div", "wb-controls", parent);
  const whose = make("span", "", row);
  const { form, rebuilt } = cloneForm(parent, store);
  const ask = (action, more) => {
    const trial = own.focus(); // now: the page may still show the one before
    if (trial !== null) store.wish(action, { trial, ...more });
  };
  const once = (action, more) => !store.awaits(action, own.focus()) && ask(action, more);
  const stop = button(row, "Stop", "Stop it now; the phase under way is lost", () => once("stop"));
  const pause = button(row, "Pause", "Set it aside when its phase ends", () => once("pause"));
  const resume = button(row, "Resume", "Let it go on", () => once("resume"));
  const extend = button(row, "Extend", "Run it for some phases more", () => once("extend", { phases: Number(phases.value) }));
  const phases = number(row, "by phases", 1);
  const clone = button(row, "Clone …", "Start a trial of its own with this configuration, changed", () => {
    update(); // the form too may still be the one before's
    form.hidden = row.hidden || !form.hidden;
  });
  function update() {
    const trial = store.trials.get(own.focus()) ?? null;
    row.hidden = !trial;
    if (!trial) {
      form.hidden = true;
      return;
    }
    whose.textContent = `trial ${trial.trial}:`;
    rebuilt(trial.trial, trial.config, fieldsFor(store, trial.config));
    const driven = answers(store);
    for (const [action, made] of Object.entries({ stop, pause, resume, extend })) made.disabled = !driven || !trial.may.includes(action);
    phases.disabled = extend.disabled;
    clone.disabled = !driven;
    form.querySelectorAll("button").forEach((made) => (made.disabled = !driven));
  }
  return update;
}

function studyControls(parent, store) {
  const row = make("div", "wb-controls", parent);
  const once = (action) => !store.awaits(action) && store.wish(action);
  const pause = button(row, "Pause study", "Running phases end, no further ones begin", () => once("pause study"));
  const resume = button(row, "Resume study", "Go on", () => once("resume study"));
  const scale = button(row, "Scale", "Ask the cluster for a number of workers", () => store.wish("scale", { nodes: Number(workers.value) }));
  const workers = number(row, "to workers", 1);
  const told = make("span", "wb-waiting", row);
  told.setAttribute("role", "status"); // read out when it changes
  let touched = false;
  workers.oninput = () => (touched = true);
  return () => {
    const driven = answers(store);
    pause.disabled = !driven || store.now.paused;
    resume.disabled = !driven || !store.now.paused;
    scale.disabled = workers.disabled = !driven;
    if (!touched && store.now.workers) workers.value = store.now.workers;
    const waiting = [...store.asked.values()];
    if (store.refused) told.textContent = `not sent: ${store.refused}`;
    else if (store.silent) told.textContent = "no kernel passes anything on";
    else if (store.wished.length) told.textContent = `sent, not heard yet: ${store.wished.join(", ")}; a running cell may hold it up, it is not lost`;
    else if (!driven) told.textContent = `the study ${store.now.state === "ended" ? "has ended" : "is not being driven"}: nobody would answer`;
    else told.textContent = waiting.length ? `asked, not answered yet: ${waiting.join(", ")}` : "";
  };
}
