// The dashboard's page: progress on top, the views, the selected trial and the log below.

const stores = new Map(); // a model's key → its store: a view is handed another proxy of the model than `initialize` was

function make(tag, name, parent, words) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (words !== undefined) element.textContent = words; // never HTML: words come from a log
  parent?.append(element);
  return element;
}

function panel(parent, title, wide) {
  const section = make("section", wide ? "wb-panel wb-wide" : "wb-panel", parent);
  const head = make("h4", "", section, title);
  const legend = make("div", "wb-legend", section);
  const place = make("div", "wb-place", section);
  return { head, legend, canvas: make("canvas", "", place) };
}

// Call `build` only when what it shows has changed: an element replaced under a pressed mouse button loses the click.
function whenChanged(build) {
  let last;
  return (...shown) => {
    const key = JSON.stringify(shown);
    if (key === last) return;
    last = key;
    build(...shown);
  };
}

function legend(place) {
  return whenChanged((entries) => {
    place.replaceChildren();
    for (const [name, color, style] of entries) {
      const entry = make("span", "", place);
      const swatch = make("i", style ?? "", entry);
      swatch.style.setProperty("--wb-swatch", color);
      entry.append(name);
    }
  });
}

function listOf(lines, choose) {
  return whenChanged((latest, mine) => {
    lines.replaceChildren();
    if (!latest.length) make("li", "wb-soft", lines, "none so far");
    for (const { at, trial, phase, what, why, accepted } of [...latest].reverse()) {
      const line = make("li", trial !== null && trial === mine ? "wb-mine" : "", lines);
      line.dataset.what = accepted === undefined ? what : accepted ? "accepted" : "refused";
      make("span", "wb-soft", line, duration(at));
      const whose = [trial === null ? null : `trial ${trial}`, phase === null ? null : `phase ${phase}`].filter((w) => w !== null);
      make("span", "", line, ` ${whose.length ? `${whose.join(", ")}: ` : ""}${what}`);
      if (why) make("span", "wb-soft", line, ` (${why})`);
      if (trial !== null) line.onclick = () => choose(trial);
    }
  });
}

function bar(parent, label) {
  const row = make("div", "wb-bar", parent);
  make("span", "wb-label", row, label);
  const track = make("div", "wb-track", row);
  const fill = make("div", "wb-fill", track);
  const words = make("span", "wb-count", row);
  return (done, all) => {
    fill.style.width = `${all ? Math.min(100, (100 * done) / all) : 0}%`;
    words.textContent = all ? `${done} of ${Number.isInteger(all) ? all : `about ${Math.round(all)}`}` : `${done}`;
  };
}

const STANDING = { paused: "paused by a person", abandoned: "its driver died: resume it" };

function standing({ state }) {
  return STANDING[state] ?? state;
}

// The time left as an interval, to no more digits than can be meant.
function leftOf([low, high]) {
  return high < 1 ? "about to end" : `${duration(low)}–${duration(high)} left`;
}

function gone(store) {
  if (!store.silent) return "";
  if (!store.now) return "no kernel answers: run the cell again";
  return `no word from the kernel since ${store.heardAt.toLocaleTimeString("en-GB")}: what stands here is of then. It may be dead or restarted: run the cell again`;
}

function used({ state, occupancy, idle, busy: [busy, alive] }) {
  if (occupancy === null) return "";
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const live = state === "running" && alive ? `; now ${busy} of ${alive} busy (${percent(busy / alive)})` : "";
  return `: ${percent(occupancy)} occupied, ${percent(idle)} idle${live}`;
}

function render({ model, el }) {
  const store = stores.get(model.get("_key"));
  const root = make("div", "wb", el);
  const head = make("header", "", root);
  const title = make("strong", "wb-title", head);
  const facts = make("span", "wb-facts", head);
  const trouble = make("div", "wb-trouble", root);
  const steering = studyControls(root, store);
  const bars = make("div", "wb-bars", root);
  const [trialsBar, phasesBar] = [bar(bars, "trials ended"), bar(bars, "phases ended")];
  const grid = make("div", "wb-grid", root);
  const gantt = panel(grid, "Slots over time", true);
  const survival = panel(grid, "Trials that began each phase");
  const curves = panel(grid, "Learning curves");
  const best = panel(grid, "Best score so far");
  const scores = panel(grid, "Score against");
  const choice = make("select", "", scores.head);
  choice.setAttribute("aria-label", "hyperparameter");
  const rates = panel(grid, "Throughput");
  const rate = make("select", "", rates.head);
  rate.setAttribute("aria-label", "rate");
  rate.replaceChildren(...Object.entries(RATES).map(([name, words]) => new Option(words, name)));
  const forests = panel(grid, "Which hyperparameters the scores follow");
  const toggle = make("button", "", forests.head);
  const ofPhase = make("select", "", forests.head);
  ofPhase.setAttribute("aria-label", "scores to explain");
  const verdict = make("div", "wb-soft", forests.legend.parentElement);
  const detail = make("section", "wb-panel", grid);
  const facing = make("div", "", detail);
  const controls = controlsOn(detail, store);
  const [decisions, troubles] = [
    ["Decisions and requests, latest first", "wb-decisions"], ["Crashes, hangs and lost slots, latest first", "wb-troubles"],
  ].map(([words, name]) => {
    const section = make("section", "wb-panel", grid);
    make("h4", "", section, words);
    return listOf(make("ol", `wb-log ${name}`, section), choose);
  });
  const tip = make("div", "wb-tip", root);
  const [ganttLegend, survivalLegend, curvesLegend, forestsLegend, scoresLegend] = [gantt, survival, curves, forests, scores].map((p) => legend(p.legend));

  const views = [
    [gantt, drawGantt], [survival, drawSurvival], [curves, drawCurves], [best, drawBest],
    [forests, (canvas, all, _, colors) => drawImportance(canvas, model.get("importance"), explained(), colors)],
    [rates, (...given) => drawRates(...given, rate.value)],
    [scores, (...given) => drawScores(...given, choice.value)],
  ];
  // What the forests say of the phase chosen; another phase's answer is not shown.
  const explained = () => {
    const found = store.now.importance;
    return found && found.phase === (model.get("importance_phase") ?? null) ? found : null;
  };
  let due = 0;
  const selected = () => model.get("selected") ?? null;
  const later = () => {
    if (!due) due = requestAnimationFrame(draw);
  };

  function draw() {
    due = 0;
    trouble.textContent = [gone(store), model.get("error")].filter(Boolean).join("; ");
    root.classList.toggle("wb-silent", store.silent);
    if (!store.now || !root.isConnected) {
      title.textContent = store.now || store.silent ? "" : "waiting for the kernel …";
      return;
    }
    header();
    const colors = inks(root);
    for (const view of views) view.hit = view[1](view[0].canvas, store, selected(), colors);
    about(store.trials.get(selected()) ?? null);
    controls(store.trials.get(selected()) ?? null);
    steering();
    decisions(store.log.filter((line) => line.list === "decisions").slice(-200), selected());
    troubles(store.log.filter((line) => line.list === "troubles").slice(-200), selected());
    legends(colors);
  }

  function legends(colors) {
    const { meta, now } = store;
    const many = meta.phase_colors.length > 12;
    const phases = meta.phase_colors.map((color, phase) => [`phase ${phase}`, color]);
    toggle.textContent = model.get("importance") ? "switch off" : "switch on";
    const found = model.get("importance") ? explained() : null;
    verdict.textContent = found?.rows.length ? found.told : "";
    scoresLegend([...(many ? [phases[0], phases[phases.length - 1]] : phases), ["× stopped after it", "transparent"]]);
    forestsLegend(found?.rows.length ? [["share of the variance reduction", "#0072B2"], ["fall of R² when shuffled", "#E69F00"]] : []);
    const wasted = WASTED.filter((outcome) => store.spans.some((s) => s?.outcome === outcome));
    ganttLegend([
      ...(many ? [phases[0], phases[phases.length - 1]] : phases),
      ...wasted.map((outcome) => [outcome, colors.soft, "wb-hatch"]),
      ["idle", colors.line],
    ]);
    const fates = FATES.filter(([key]) => now.survival.some((phase) => phase[key]));
    const lines = [["expected (Eq. 1)", meta.expected, "wb-line"], ["fewest (Eq. 2)", meta.minimum, "wb-dots"]];
    survivalLegend([
      ...fates.map(([key, name, color]) => [name, color ?? meta.states[key]]),
      ...lines.filter(([, heights]) => heights.length).map(([name, , style]) => [name, colors.mark, style]),
    ]);
    const seen = new Set([...store.trials.values()].map((trial) => trial.state));
    curvesLegend(Object.entries(meta.states).filter(([state]) => seen.has(state)));
  }

  function header() {
    const now = store.now;
    title.textContent = store.meta.name;
    root.dataset.state = now.state;
    const parts = [store.silent ? "no kernel" : standing(now), duration(now.at_s)];
    if (now.left_s && !store.silent) parts.push(leftOf(now.left_s));
    if (now.frames_per_s && !store.silent) parts.push(`${Math.round(now.frames_per_s).toLocaleString("en")} frames/s`);
    if (now.best.length) parts.push(`best score ${short(now.best[now.best.length - 1][1])}`);
    facts.textContent = parts.join(" · ");
    // Clones come on top; trials that a scheduler paused for good never end, and it may start fewer than it could.
    const over = now.state === "ended";
    trialsBar(over ? now.trials_started : now.trials_ended, over ? now.trials_started : store.meta.n_trials && Math.max(store.meta.n_trials, now.trials_started));
    phasesBar(now.phases_ended, now.state === "ended" ? now.phases_ended : now.expected_phases);
    gantt.head.textContent = `Slots over time${used(now)}`;
    if (ofPhase.options.length !== now.survival.length + 1) {
      const phases = now.survival.map(({ phase }) => new Option(`scores of phase ${phase}`, phase));
      ofPhase.replaceChildren(new Option("last score of every trial", ""), ...phases);
    }
    ofPhase.value = model.get("importance_phase") ?? "";
    ofPhase.hidden = !model.get("importance");
    const names = store.meta.hyperparameters;
    if (choice.options.length !== names.length) {
      const varied = (name) => new Set([...store.trials.values()].map((trial) => trial.config[name])).size > 1;
      const first = names.includes(choice.value) ? choice.value : (names.find(varied) ?? names[0]);
      choice.replaceChildren(...names.map((name) => new Option(name, name, false, name === first)));
    }
  }

  const about = whenChanged((trial) => {
    facing.replaceChildren();
    make("h4", "", facing, trial ? `Trial ${trial.trial}: ${trial.state}` : "No trial selected");
    if (!trial) {
      make("p", "wb-soft", facing, "Click a bar, a curve or a point.");
      return;
    }
    const table = make("table", "", facing);
    const rows = [["phases ended", trial.phases], ["last score", short(trial.last ?? NaN)], ["best score", short(trial.best ?? NaN)]];
    if (trial.parent !== null) rows.push(["comes from", `trial ${trial.parent}`]); // its weights, or a clone's configuration
    if (trial.why) rows.push(["last verdict", trial.why]);
    if (trial.error) rows.push(["error", trial.error]);
    for (const [name, value] of Object.entries(trial.config)) rows.push([name, typeof value === "number" ? short(value) : String(value)]);
    for (const [name, value] of rows) {
      const row = make("tr", "", table);
      make("th", "", row, name);
      make("td", "", row, String(value));
    }
    const button = make("button", "", facing, "clear selection");
    button.onclick = () => choose(null);
  });

  function choose(trial) {
    model.set("selected", trial);
    model.save_changes();
    later();
  }

  for (const view of views) {
    const canvas = view[0].canvas;
    const under = (event) => view.hit?.(event.offsetX, event.offsetY) ?? null;
    canvas.onmousemove = (event) => {
      const found = under(event);
      tip.style.display = found ? "block" : "none";
      canvas.style.cursor = found?.trial != null ? "pointer" : "default";
      if (!found) return;
      tip.textContent = [found.trial === null ? null : `trial ${found.trial}`, ...found.words].filter((w) => w !== null).join("\n");
      const frame = root.getBoundingClientRect();
      tip.style.left = `${Math.min(event.clientX - frame.left + 14, frame.width - 190)}px`;
      tip.style.top = `${event.clientY - frame.top + 14}px`;
    };
    canvas.onmouseleave = () => (tip.style.display = "none");
    canvas.onclick = (event) => {
      const trial = under(event)?.trial;
      if (trial !== null && trial !== undefined) choose(trial === selected() ? null : trial);
    };
  }
  choice.onchange = rate.onchange = later;
  toggle.onclick = () => {
    model.set("importance", !model.get("importance"));
    model.save_changes();
  };
  ofPhase.onchange = () => {
    model.set("importance_phase", ofPhase.value === "" ? null : Number(ofPhase.value));
    model.save_changes();
  };
  store.changed.add(later);
  model.on("change:selected change:error change:importance change:importance_phase", later);
  const resized = new ResizeObserver(later);
  resized.observe(root);
  const themed = new MutationObserver(later); // JupyterLab names its theme on the body
  themed.observe(document.body, { attributes: true });
  later();
  return () => {
    cancelAnimationFrame(due);
    store.changed.delete(later);
    model.off("change:selected change:error change:importance change:importance_phase", later);
    resized.disconnect();
    themed.disconnect();
  };
}

function initialize({ model }) {
  const store = makeStore(model);
  stores.set(model.get("_key"), store);
  return () => {
    store.close();
    stores.delete(model.get("_key"));
  };
}

export default { initialize, render };
