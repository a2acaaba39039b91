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
  const rows = whenChanged((studies, selected, states) => {
    for (const [state, color] of Object.entries(states)) root.style.setProperty(`--wb-${state.replace(" ", "-")}`, color);
    const before = table.getRootNode().activeElement;
    const focused = table.contains(before) && before.dataset.of; // another view of the same may have it
    table.replaceChildren();
    const body = bodyUnder(table, ["compare", "study", "state", "progress", "trials", "best score", "time", "began", "of what", "tags"]);
    for (const study of studies) studyRow(make("tr", "", body), study, selected, choose);
    if (focused) [...table.querySelectorAll("[data-of]")].find((element) => element.dataset.of === focused)?.focus();
  });

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
    rows(found, model.get("selected") ?? [], told.states);
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
    for (const stop of unheed) stop();
  };
}

function hasWord(study, word) {
  if (word.startsWith("tag:")) return study.tags.some((tag) => tag.toLowerCase() === word.slice(4));
  return [study.title, study.state, study.what, ...study.tags].join(" ").toLowerCase().includes(word);
}

const STUDY_STATES = { running: "running", paused: "paused", ended: "finished", interrupted: "stopped", abandoned: "failed" }; // → whose mark and hue

function studyRow(row, study, selected, choose) {
  const open = selected.includes(study.name);
  row.setAttribute("aria-selected", String(open));
  const tick = make("input", "", make("td", "", row));
  Object.assign(tick, { type: "checkbox", checked: open });
  tick.setAttribute("aria-label", `compare ${study.name}`);
  tick.dataset.of = `tick ${study.name}`;
  tick.onchange = () => choose(tick.checked ? [...selected, study.name] : selected.filter((name) => name !== study.name));
  const name = button(make("td", "", row), study.title, "", () => choose(open && selected.length === 1 ? [] : [study.name]), "wb-name");
  name.dataset.of = `open ${study.name}`;
  const like = STUDY_STATES[study.state] ?? "running";
  make("td", "", row, `${MARKS[like]} ${study.state}`).dataset.state = like;
  const progress = make("div", "wb-progress", make("td", "", row));
  progress.style.setProperty("--wb-share", `${(100 * (study.share ?? 0)).toFixed(1)}%`);
  progress.setAttribute("role", "progressbar");
  progress.setAttribute("aria-label", `progress of ${study.name}`);
  if (study.share !== null) progress.setAttribute("aria-valuenow", String(Math.round(100 * study.share)));
  const phases = study.expected && study.state !== "ended" ? `${study.phases} of about ${Math.round(study.expected)} phases` : soMany(study.phases, "phase");
  make("span", "", progress, phases);
  for (const words of [study.trials, short(study.best ?? NaN), duration(study.seconds), study.began, study.what]) make("td", "", row, String(words));
  const tags = make("td", "", row);
  for (const tag of study.tags) make("span", "wb-chip", tags, tag);
}
