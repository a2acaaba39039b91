// The studies of a knowledge base: a name opens one below the list, ticks put several side by side.

function renderHome({ model, el, find }) {
  const root = make("div", "wb wb-home", el);
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", "studies");
  root.onkeydown = keepKey;
  const head = make("header", "", root);
  make("strong", "wb-title", head, "Studies");
  const facts = make("span", "wb-facts", head);
  const bar = make("div", "wb-filter", root);
  bar.setAttribute("role", "search");
  const input = make("input", "", bar);
  Object.assign(input, { type: "search", placeholder: "filter: running pong tag:good", spellcheck: false });
  input.setAttribute("aria-label", "filter of studies");
  const hint = make("span", "wb-soft", bar, "A name opens its dashboard, two ticks or more compare.");
  const trouble = make("div", "wb-trouble", root);
  trouble.setAttribute("role", "alert");
  const scroll = make("div", "wb-studies", root);
  const table = make("table", "", scroll);
  const place = make("div", "wb-open", root);
  const heard = { now: null, heardAt: null, silent: false }; // the last snapshot, and when the kernel last spoke
  let [shown, leave, timer] = ["", null, null];

  const choose = (names) => {
    model.set("selected", names);
    model.save_changes();
  };
  let rows = null; // made with the first word of the kernel

  function draw() {
    trouble.textContent = [gone(heard), model.get("error")].filter(Boolean).join("; ");
    root.classList.toggle("wb-silent", heard.silent);
    const told = heard.now;
    if (!told) return;
    const query = model.get("filter") ?? "";
    if (input.value.trim() !== query.trim()) input.value = query;
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = told.studies.filter((study) => words.every((word) => hasWord(study, word)));
    const running = told.studies.filter((study) => study.state === "running").length;
    const count = `${told.studies.length} ${told.studies.length === 1 ? "study" : "studies"}`;
    facts.textContent = `${words.length ? `${found.length} of ` : ""}${count}${running ? ` · ${running} running` : ""} · ${told.db}`;
    hint.textContent = told.studies.length ? "A name opens its dashboard, two ticks or more compare." : "No study yet: one that is started appears here.";
    dye(root, told.states);
    rows ??= studyRows(table, choose);
    rows(found, model.get("selected") ?? []);
  }

  async function open() {
    const reference = model.get("_shown") ?? "";
    if (reference === shown) return;
    shown = reference;
    const child = reference ? await find(reference) : null;
    if (shown !== reference) return;
    leave?.();
    leave = null;
    place.replaceChildren();
    if (child) leave = render({ model: child, el: place, find });
  }

  const ear = makeEar(heard, () => patience(model), draw);
  function hear(content) {
    heard.heardAt = new Date();
    ear.listen();
    if (content.type === "seen?") model.send({ type: "seen" });
    if (content.type !== "snapshot") return;
    clearTimeout(timer);
    heard.now = content;
    draw();
  }
  function ask() {
    model.send({ type: "snapshot" });
    timer = setTimeout(ask, RETRY_MS);
  }
  input.oninput = () => {
    model.set("filter", input.value);
    model.save_changes();
  };
  model.on("msg:custom", hear);
  const unheed = [heed(model, ["filter", "selected", "error"], draw), heed(model, ["_shown"], open)];
  const hidden = hideStill(model.get("_key"));
  ask();
  ear.listen();
  open();
  return () => {
    clearTimeout(timer);
    ear.close();
    shown = null; // one that is still looked for is not opened
    leave?.();
    hidden.remove();
    model.off("msg:custom", hear);
    takeLeave(model);
    for (const stop of unheed) stop();
  };
}

function hasWord(study, word) {
  if (word.startsWith("tag:")) return study.tags.some((tag) => tag.toLowerCase() === word.slice(4));
  return [study.title, study.state, study.what, ...study.tags].join(" ").toLowerCase().includes(word);
}

const STUDY_STATES = { running: "running", paused: "paused", ended: "finished", interrupted: "stopped", abandoned: "failed" }; // → whose mark and hue

// A row a study. Its elements stay while its numbers change: one that is replaced under a pressed mouse button loses the
// click, one that has the focus is read out anew, and words in it are selected no more.
function studyRows(table, choose) {
  const body = bodyUnder(table, ["compare", "study", "state", "progress", "trials", "luckiest phase", "time", "began", "of what", "tags"]);
  const rows = new Map(); // name → {row, tell}
  return (studies, selected) => {
    const names = new Set(studies.map(({ name }) => name));
    for (const [name, { row }] of rows) {
      if (names.has(name)) continue;
      row.remove();
      rows.delete(name);
    }
    studies.forEach((study, k) => {
      if (!rows.has(study.name)) rows.set(study.name, studyRow(study.name, choose));
      const { row, tell } = rows.get(study.name);
      if (body.children[k] !== row) body.insertBefore(row, body.children[k] ?? null);
      tell(study, selected);
    });
  };
}

function studyRow(name, choose) {
  const row = make("tr");
  const cell = () => make("td", "", row);
  let chosen = []; // what is selected, of all studies
  const tick = make("input", "", cell());
  tick.type = "checkbox";
  tick.setAttribute("aria-label", `compare ${name}`);
  tick.dataset.of = `tick ${name}`;
  tick.onchange = () => choose(tick.checked ? [...chosen, name] : chosen.filter((other) => other !== name));
  const opens = button(cell(), "", "", () => choose(chosen.length === 1 && chosen[0] === name ? [] : [name]), "wb-name");
  opens.dataset.of = `open ${name}`;
  const state = cell();
  const progress = make("div", "wb-progress", cell());
  progress.setAttribute("role", "progressbar");
  progress.setAttribute("aria-label", `progress of ${name}`);
  const phases = make("span", "", progress);
  const plain = Array.from({ length: 5 }, cell);
  const tags = cell();
  const tagged = whenChanged((all) => tags.replaceChildren(...all.map((tag) => make("span", "wb-chip", null, tag))));

  function tell(study, selected) {
    chosen = selected;
    tick.checked = selected.includes(name);
    row.setAttribute("aria-selected", String(tick.checked));
    say(opens, study.title);
    const like = STUDY_STATES[study.state] ?? "running";
    say(state, `${MARKS[like]} ${study.state}`);
    state.dataset.state = like;
    progress.style.setProperty("--wb-share", `${(100 * (study.share ?? 0)).toFixed(1)}%`);
    if (study.share === null) progress.removeAttribute("aria-valuenow");
    else progress.setAttribute("aria-valuenow", String(Math.round(100 * study.share)));
    const going = study.expected && study.state !== "ended";
    say(phases, going ? `${study.phases} of ${about(study.expected, "phase")}` : soMany(study.phases, "phase"));
    [study.trials, short(study.best ?? NaN), duration(study.seconds), study.began, study.what].forEach((words, k) => say(plain[k], String(words)));
    tagged(study.tags);
  }
  return { row, tell };
}
