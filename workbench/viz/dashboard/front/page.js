// The dashboard's page: a line of numbers, the trial table as its spine, the views around it, detail at the right.

const stores = new Map(); // a model's key → its store and selection: views of one model share them

function make(tag, name, parent, words) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (words !== undefined) element.textContent = words; // never HTML: words come from a log
  parent?.append(element);
  return element;
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

function figure(parent, title, label) {
  const section = make("section", "wb-panel", parent);
  const head = make("h4", "", section, title);
  const place = make("div", "wb-place", section);
  const canvas = make("canvas", "", place);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  return { section, head, canvas, label };
}

function choice(parent, label, options) {
  const select = make("select", "", parent);
  select.setAttribute("aria-label", label);
  select.replaceChildren(...options.map(([value, words]) => new Option(words, value)));
  return select;
}

function toggle(parent, words, title) {
  const label = make("label", "wb-toggle", parent);
  const box = make("input", "", label);
  box.type = "checkbox";
  label.append(words);
  label.title = title;
  return box;
}

const STANDING = { paused: "paused by a person", abandoned: "its driver died: resume it" };

// The time left as an interval, to no more digits than can be meant.
function leftOf([low, high]) {
  return high < 1 ? "about to end" : `${duration(low)}–${duration(high)} left`;
}

function gone(store) {
  if (!store.silent) return "";
  if (!store.now) return "no kernel answers: run the cell again";
  return `no word from the kernel since ${store.heardAt.toLocaleTimeString("en-GB")}: what stands here is of then. It may be dead or restarted: run the cell again`;
}

// The line at the top: what leads, how busy the slots are, how long it takes.
function headline(store) {
  const { now, meta } = store;
  const parts = [store.silent ? "no kernel" : (STANDING[now.state] ?? now.state), duration(now.at_s)];
  if (now.left_s && !store.silent) parts.push(leftOf(now.left_s));
  const ended = now.state === "ended";
  const started = meta.n_trials && !ended ? `${now.trials_started} of ${Math.max(meta.n_trials, now.trials_started)} trials begun` : `${now.trials_started} trials`;
  parts.push(started, `${now.phases_ended}${now.expected_phases && !ended ? ` of about ${Math.round(now.expected_phases)}` : ""} phases ended`);
  const [busy, alive] = now.busy;
  if (now.state === "running" && alive && !store.silent) parts.push(`${busy} of ${alive} slots busy`);
  if (now.occupancy !== null) parts.push(`${(100 * now.occupancy).toFixed(0)} % occupied${ended ? "" : " so far"}`);
  if (now.frames_per_s && !store.silent) parts.push(`${Math.round(now.frames_per_s).toLocaleString("en")} frames/s`);
  const failed = store.now.survival.reduce((sum, phase) => sum + phase.failed, 0);
  if (failed) parts.push(`${failed} failed`);
  return parts.join(" · ");
}

function leaderOf(store) {
  const scored = [...store.trials.values()].filter((t) => t.best !== null);
  if (!scored.length) return null;
  const sign = store.meta.minimise ? -1 : 1;
  return scored.reduce((a, b) => (sign * (b.best - a.best) > 0 ? b : a));
}

function listOf(lines, choose, nothing) {
  lines.tabIndex = 0; // it scrolls
  return whenChanged((latest, mine) => {
    lines.replaceChildren();
    if (!latest.length) make("li", "wb-soft", lines, nothing);
    for (const { at, trial, phase, what, why, accepted } of [...latest].reverse()) {
      const line = make("li", trial !== null && mine.includes(trial) ? "wb-mine" : "", lines);
      line.dataset.what = accepted === undefined ? what : accepted ? "accepted" : "refused";
      make("span", "wb-soft", line, duration(at));
      const whose = [trial === null ? null : `trial ${trial}`, phase === null ? null : `phase ${phase}`].filter((w) => w !== null);
      make("span", "", line, ` ${whose.length ? `${whose.join(", ")}: ` : ""}${what}`);
      if (why) make("span", "wb-soft", line, ` (${why})`);
      if (trial !== null) line.onclick = (event) => choose(trial, event.ctrlKey || event.metaKey);
    }
  });
}

// Tabs: panels of which one is shown; arrows move among them.
function tabs(parent, names, changed) {
  const bar = make("div", "wb-tabs", parent);
  bar.setAttribute("role", "tablist");
  const id = `wb-tab-${Math.random().toString(36).slice(2)}`;
  const made = names.map((name, k) => {
    const button = make("button", "", bar, name);
    const panel = make("div", "wb-tab", parent);
    Object.assign(button, { type: "button", id: `${id}-${k}` });
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", (panel.id = `${id}-${k}-panel`));
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", button.id);
    button.onclick = () => show(k);
    return { button, panel };
  });
  function show(k) {
    made.forEach(({ button, panel }, j) => {
      button.setAttribute("aria-selected", String(j === k));
      button.tabIndex = j === k ? 0 : -1;
      panel.hidden = j !== k;
    });
    changed();
  }
  bar.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.stopPropagation();
    const k = (made.findIndex(({ panel }) => !panel.hidden) + step + made.length) % made.length;
    show(k);
    made[k].button.focus();
  };
  show(0);
  return made.map(({ panel }) => panel);
}

function stateLegend(place, store, own) {
  return whenChanged((states, hidden) => {
    place.replaceChildren();
    for (const state of states) {
      const button = make("button", "wb-state", place, `${MARKS[state]} ${state}`);
      button.type = "button";
      button.dataset.state = state;
      button.style.setProperty("--wb-swatch", store.meta.states[state]);
      button.setAttribute("aria-pressed", String(!hidden.includes(state)));
      button.title = "show or hide in every view";
      button.onclick = () => {
        const now = hidden.includes(state) ? hidden.filter((s) => s !== state) : [...hidden, state];
        own.brush("-state:", now.length ? `-state:${now.map((s) => s.replace(" ", "-")).join(",")}` : "");
      };
    }
  });
}

function hiddenStates(query) {
  const token = query.split(/\s+/).find((word) => word.startsWith("-state:"));
  return token ? token.slice(7).split(",").map((s) => s.replace("-", " ")) : [];
}

// What the bar above the table holds: the filter, what it hides most often, and the looks of the curves.
function filterBar(parent, store, own) {
  const bar = make("div", "wb-filter", parent);
  bar.setAttribute("role", "search");
  const input = make("input", "", bar);
  Object.assign(input, { type: "search", placeholder: "filter: state:running lr>1e-3 -adam top:10   ( / )", spellcheck: false });
  input.setAttribute("aria-label", "filter of trials");
  const states = make("span", "wb-states", bar);
  const hide = toggle(bar, "hide stopped", "hide stopped trials in every view");
  const top = choice(bar, "only the best", [["", "all"], ...[5, 10, 20, 50].map((n) => [n, `top ${n}`])]);
  csvButton(bar, store, own);
  const count = make("span", "wb-soft wb-found", bar);
  count.setAttribute("role", "status");
  input.oninput = () => own.setFilter(input.value);
  input.onkeydown = (event) => {
    event.stopPropagation();
    if (event.key === "Escape") own.setFilter("");
  };
  hide.onchange = () => own.brush("-state:", hide.checked ? "-state:stopped" : "");
  top.onchange = () => own.brush("top:", top.value ? `top:${top.value}` : "");
  const legend = stateLegend(states, store, own);
  return {
    input,
    update() {
      const query = own.filter();
      if (input.value.trim() !== query.trim()) input.value = query;
      const hidden = hiddenStates(query);
      hide.checked = hidden.includes("stopped");
      top.value = /(?:^|\s)top:(\d+)/.exec(query)?.[1] ?? "";
      const seen = new Set([...store.trials.values()].map((t) => t.state));
      legend(Object.keys(store.meta.states).filter((state) => seen.has(state)), hidden);
      const words = own.problem || (own.among === null ? "" : `${own.order.length} of ${store.trials.size} trials`);
      if (count.textContent !== words) count.textContent = words;
      count.classList.toggle("wb-trouble", own.problem !== "");
    },
  };
}

function curveChoices(head, look, touched) {
  const axis = choice(head, "axis of the learning curves", Object.entries(AXES));
  const smooth = choice(head, "smoothing", [["0", "as reported"], ["0.6", "smooth"], ["0.9", "smoother"]]);
  const log = toggle(head, "log", "logarithmic scores");
  const bands = toggle(head, "bands", "the middle 80 % and the median of the visible trials at the end of every phase");
  axis.onchange = () => touched((look.axis = axis.value));
  smooth.onchange = () => touched((look.smooth = Number(smooth.value)));
  log.onchange = () => touched((look.logY = log.checked));
  bands.onchange = () => touched((look.bands = bands.checked));
}

function render({ model, el }) {
  const { store, own } = shared(model);
  const look = { axis: "seconds", smooth: 0, logY: false, bands: false, expanded: false, rate: "frames_per_s", against: null };
  let due = 0;
  const later = () => {
    if (!due) due = requestAnimationFrame(draw);
  };
  const touched = () => {
    own.touched = true; // by a person, or from Python: it is shown at once
    later();
  };

  const root = make("div", "wb", el);
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", "study");
  const head = make("header", "", root);
  const title = make("strong", "wb-title", head);
  const leads = make("button", "wb-leader", head);
  const facts = make("span", "wb-facts", head);
  const trouble = make("div", "wb-trouble", root);
  trouble.setAttribute("role", "alert");
  const news = make("div", "wb-unseen", root);
  news.setAttribute("aria-live", "polite");
  const page = make("div", "wb-page", root);
  const main = make("div", "wb-main", page);
  const side = make("aside", "wb-side", page);
  side.setAttribute("aria-label", "selected trials, controls and verdicts");

  const bar = filterBar(main, store, own);
  const table = makeTable(main, store, own);
  const row = make("div", "wb-figures", main);
  const curves = figure(row, "Learning curves", "learning curves of the visible trials; the table holds their scores");
  curveChoices(curves.head, look, touched);
  const survival = figure(row, "Trials in each phase", "how many trials began each phase and what became of them");
  const expectation = make("span", "wb-soft wb-note", survival.head);
  const occupancy = figure(row, "Slots in use", "slots that ran, were held or idle over time");
  const gantt = figure(main, "Slots over time", "which trial had which slot when; the table names every trial's phases");
  make("span", "wb-soft wb-note", gantt.head, "phases from dark to light; hatched: held, lost or stopped; drag to zoom");
  gantt.canvas.parentElement.classList.add("wb-gantt");
  const expand = make("button", "", gantt.head, "expand");
  const unzoom = make("button", "", gantt.head, "reset the zoom");
  expand.onclick = () => {
    look.expanded = !look.expanded;
    expand.textContent = look.expanded ? "shrink" : "expand";
    touched();
  };
  unzoom.onclick = () => own.brush("time:", "");
  const [forests, throughput, against, parallel, best, decided, troubled] = tabs(
    make("div", "wb-more", main),
    ["Importance", "Throughput", "Score against", "Parallel", "Best score", "Decisions", "Crashes"],
    touched,
  );
  const importance = figure(forests, "", "how much each hyperparameter explains of the scores");
  const ofPhase = choice(importance.head, "scores to explain", [["", "last score of every trial"]]);
  const skill = make("span", "wb-soft", importance.head);
  const rates = figure(throughput, "", "rates over time");
  const rate = choice(rates.head, "rate", Object.entries(RATES).map(([name, words]) => [name, words]));
  rate.onchange = () => touched((look.rate = rate.value));
  const scores = figure(against, "", "last scores against a hyperparameter");
  const name = choice(scores.head, "hyperparameter", []);
  name.onchange = () => touched((look.against = name.value));
  const lines = figure(parallel, "", "trials through their hyperparameters to their last score");
  const record = figure(best, "", "best score over time");
  ofPhase.onchange = touched;

  const detail = makeDetail(side, store, own);
  const controls = trialControls(side, store);
  const study = studyControls(side, store);
  make("h4", "", side, "Latest verdicts");
  const verdicts = listOf(make("ol", "wb-log wb-verdicts", side), own.choose, "no trial has been stopped yet");
  const decisions = listOf(make("ol", "wb-log wb-decisions", decided), own.choose, "none so far");
  const failures = make("div", "wb-failures", troubled);
  const troubles = listOf(make("ol", "wb-log wb-troubles", troubled), own.choose, "none so far");
  const tip = make("div", "wb-tip", root);

  const explained = () => (store.now.importance ?? []).find((found) => String(found.phase ?? "") === ofPhase.value) ?? null;
  const views = [
    [gantt, drawGantt], [survival, drawSurvival], [occupancy, drawOccupancy], [curves, drawCurves], [record, drawBest],
    [rates, drawRates], [scores, drawScores], [lines, drawParallel],
    [importance, (canvas, scene) => drawImportance(canvas, scene, model.get("importance"), explained())],
  ].map(([place, paint]) => ({ ...place, paint, hit: null }));

  let heavy = 0; // milliseconds the last drawing took
  let drawn = 0;
  function draw(at) {
    due = 0;
    trouble.textContent = [gone(store), model.get("error")].filter(Boolean).join("; ");
    root.classList.toggle("wb-silent", store.silent);
    if (!store.now || !root.isConnected) {
      title.textContent = store.now || store.silent ? "" : "waiting for the kernel …";
      return;
    }
    // A large study is drawn less often, so that the page stays free for whoever scrolls it.
    if (at - drawn < 12 * heavy && heavy > 25 && !own.touched) {
      setTimeout(later, 12 * heavy - (at - drawn));
      return;
    }
    const began = performance.now();
    own.touched = false;
    own.update();
    header();
    bar.update();
    choices();
    table();
    const scene = { store, own, look, colors: withPhases(inks(root), store.meta) };
    for (const view of views) view.hit = view.canvas.offsetParent === null ? null : view.paint(view.canvas, scene);
    detail();
    const trial = store.trials.get(own.focus()) ?? null;
    controls(trial);
    study();
    const mine = [...own.selected];
    const told = store.log.filter((line) => line.list === "decisions");
    decisions(told.slice(-100), mine);
    verdicts(told.filter((line) => line.what !== "continue").slice(-12), mine);
    troubles(store.log.filter((line) => line.list === "troubles").slice(-100), mine);
    drawn = at;
    heavy = performance.now() - began;
  }

  function header() {
    title.textContent = store.meta.name;
    root.dataset.state = store.now.state;
    for (const [state, color] of Object.entries(store.meta.states)) root.style.setProperty(`--wb-${state.replace(" ", "-")}`, color);
    const leader = leaderOf(store);
    const config = leader && Object.entries(leader.config).map(([key, value]) => `${key} ${typeof value === "number" ? short(value) : value}`).join(", ");
    leads.hidden = !leader;
    leads.textContent = leader ? `▲ trial ${leader.trial}: ${short(leader.best)} (${config})` : "";
    leads.onclick = () => own.select([leader.trial]);
    facts.textContent = headline(store);
    announce(store.now.state, leader?.trial ?? null, leader?.best ?? null);
    unzoom.hidden = !own.filter().includes("time:");
    expectation.textContent = store.meta.expected.length ? "line: expected, dots: fewest" : "";
    failures.textContent = store.now.failures.join("; ");
  }

  const announce = whenChanged((state, trial, score) => {
    news.textContent = `The study is ${STANDING[state] ?? state}.${trial === null ? "" : ` Trial ${trial} leads with ${short(score)}.`}`;
  });

  function choices() {
    const phases = (store.now.importance ?? []).map(({ phase }) => [phase ?? "", phase === null ? "last score of every trial" : `scores of phase ${phase}`]);
    if (phases.length && ofPhase.options.length !== phases.length) {
      const was = ofPhase.value;
      ofPhase.replaceChildren(...phases.map(([value, words]) => new Option(words, value, false, String(value) === was)));
    }
    const found = explained();
    skill.textContent = found?.rows.length ? found.told : "";
    const names = store.meta.hyperparameters;
    if (name.options.length !== names.length) {
      const varied = (key) => new Set([...store.trials.values()].map((trial) => trial.config[key])).size > 1;
      look.against = names.includes(name.value) ? name.value : (names.find(varied) ?? names[0]);
      name.replaceChildren(...names.map((key) => new Option(key, key, false, key === look.against)));
    }
  }

  root.onkeydown = (event) => {
    if (event.target.matches("input, select, textarea")) return;
    if (event.key === "Escape") own.select([]);
    else if (event.key === "/") bar.input.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  for (const view of views) {
    pointed(view, root, tip, own);
    pngButton(view.head, view.canvas, view.label.split(/[;,]| of /)[0]);
  }
  const traits = "change:selected change:filter change:error change:importance";
  store.changed.add(later);
  model.on(traits, touched);
  const resized = new ResizeObserver(touched);
  resized.observe(root);
  const themed = new MutationObserver(touched); // JupyterLab names its theme on the body
  themed.observe(document.body, { attributes: true });
  const hidden = hideStill(model.get("_key"));
  later();
  return () => {
    cancelAnimationFrame(due);
    store.changed.delete(later);
    model.off(traits, touched);
    resized.disconnect();
    themed.disconnect();
    hidden.remove();
  };
}

// Tips under the pointer, clicks that select, and rectangles that are dragged into the filter.
function pointed(view, root, tip, own) {
  const { canvas } = view;
  let from = null;
  const box = make("div", "wb-brush", canvas.parentElement);
  const within = (event) => {
    const frame = canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  const under = (event) => view.hit?.(...within(event)) ?? null;
  const stretch = ([x, y]) => [Math.min(x, from[0]), Math.min(y, from[1]), Math.max(x, from[0]), Math.max(y, from[1])];
  canvas.onpointerdown = (event) => {
    if (event.button || !view.hit?.brush) return;
    from = within(event);
    canvas.setPointerCapture?.(event.pointerId);
  };
  canvas.onpointermove = (event) => {
    if (from) {
      const [x0, y0, x1, y1] = stretch(within(event));
      box.style.display = x1 - x0 > 4 || y1 - y0 > 4 ? "block" : "none";
      Object.assign(box.style, { left: `${x0}px`, top: `${y0}px`, width: `${x1 - x0}px`, height: `${y1 - y0}px` });
    }
    const found = from ? null : under(event);
    tip.style.display = found ? "block" : "none";
    canvas.style.cursor = found?.trial != null ? "pointer" : "default";
    if (!found) return;
    tip.textContent = [found.trial === null ? null : `trial ${found.trial}`, ...found.words].filter((w) => w !== null).join("\n");
    const frame = root.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX - frame.left + 14, frame.width - 190)}px`;
    tip.style.top = `${event.clientY - frame.top + 14}px`;
  };
  canvas.onpointerleave = () => (tip.style.display = "none");
  canvas.onpointerup = (event) => {
    const rectangle = from && stretch(within(event));
    from = null;
    box.style.display = "none";
    if (rectangle && (rectangle[2] - rectangle[0] > 4 || rectangle[3] - rectangle[1] > 4)) {
      own.brush(...view.hit.brush(...rectangle));
      return;
    }
    const trial = under(event)?.trial;
    if (trial !== null && trial !== undefined) own.choose(trial, event.ctrlKey || event.metaKey || event.shiftKey);
  };
}

// The page that is stored with the notebook stands beside the living one: out of sight as long as this one lives.
function hideStill(key) {
  const style = make("style", "", document.head, `.wb-still[data-of="${key}"] { display: none; }`);
  return style;
}

function shared(model) {
  const key = model.get("_key");
  if (!stores.has(key)) {
    const store = makeStore(model);
    stores.set(key, { store, own: makeSelection(model, store) });
  }
  return stores.get(key);
}

function forget(key) {
  stores.get(key)?.store.close();
  stores.delete(key);
}

export { forget, render };
