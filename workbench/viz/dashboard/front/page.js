// The dashboard's page: a line of numbers, the trial table as its spine, the views around it, detail at the right.

// The time left as an interval, to no more digits than can be meant; null: nobody knows how long at most.
function leftOf([low, high]) {
  if (high === null) return low < 1 ? "time left not known yet" : `at least ${duration(low)} left`;
  return high < 1 ? "about to end" : `${duration(low)}–${duration(high)} left`;
}

// The line at the top: what leads, how busy the slots are, how long it takes.
function headline(store) {
  const { now, meta } = store;
  const parts = [store.silent ? "no kernel" : (STANDING[now.state] ?? now.state), duration(now.at_s)];
  if (now.left_s && !store.silent) parts.push(leftOf(now.left_s));
  const ended = now.state === "ended";
  const besides = now.trials_started - now.trials_asked; // for people: clones, and trials that confirm others
  const most = `${meta.may_be_fewer ? "at most " : ""}${Math.max(meta.n_trials, now.trials_asked)}`;
  const asked = `${now.trials_asked} of ${most} trials begun${besides ? ` and ${besides} besides` : ""}`;
  const started = meta.n_trials && !ended ? asked : soMany(now.trials_started, "trial");
  const phases = now.expected_phases && !ended ? `${now.phases_ended} of ${about(now.expected_phases, "phase")}` : soMany(now.phases_ended, "phase");
  parts.push(started, `${phases} ended`);
  const [busy, alive] = now.busy;
  if (now.state === "running" && alive && !store.silent) parts.push(`${busy} of ${alive} slots busy`);
  if (now.waits && !store.silent) parts.push(now.waits);
  if (now.occupancy !== null) parts.push(`${(100 * now.occupancy).toFixed(0)} % occupied${ended ? "" : " so far"}`);
  if (now.frames_per_s && !store.silent) parts.push(`${Math.round(now.frames_per_s).toLocaleString("en")} frames/s`);
  if (now.failed) parts.push(`${now.failed} failed`);
  return parts.join(" · ");
}

// The trial of the best score: of equals the first in time, as the kernel tells.
function leaderOf(store) {
  return store.trials.get(store.now.best.at(-1)?.[2]) ?? null;
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

function stateLegend(place, store, own) {
  return whenChanged((states, hidden) => {
    place.replaceChildren();
    for (const state of states) {
      const turn = () => hideState(own, state, !hiddenStates(own.filter()).includes(state));
      const made = button(place, `${MARKS[state]} ${state}`, "show or hide in every view", turn, "wb-state");
      made.dataset.state = state;
      made.style.setProperty("--wb-swatch", store.meta.states[state]);
      made.setAttribute("aria-pressed", String(!hidden.includes(state)));
    }
  });
}

function hiddenStates(query) {
  const tokens = query.split(/\s+/).filter((word) => word.startsWith("-state:"));
  return tokens.flatMap((token) => token.slice(7).split(",")).filter(Boolean).map((s) => s.replace("-", " "));
}

// Hide a state or show it; the other hidden ones stay as they are.
function hideState(own, state, hide) {
  const others = hiddenStates(own.filter()).filter((s) => s !== state);
  const hidden = hide ? [...others, state] : others;
  own.brush("-state:", hidden.length ? `-state:${hidden.map((s) => s.replace(" ", "-")).join(",")}` : "");
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
  input.onkeydown = (event) => event.key === "Escape" && own.setFilter("");
  hide.onchange = () => hideState(own, "stopped", hide.checked);
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
      say(count, words);
      count.classList.toggle("wb-trouble", own.problem !== "");
    },
  };
}

function curveChoices(head, look, touched) {
  const axis = choice(head, "axis of the learning curves", Object.entries(AXES));
  const smooth = choice(head, "smoothing", [["0", "as reported"], ["0.6", "smooth"], ["0.9", "smoother"]]);
  const log = toggle(head, "log", "logarithmic scores");
  const bands = toggle(head, "bands", "the middle 80 % and the median of the visible trials at the end of every phase");
  bands.checked = look.bands;
  axis.onchange = () => touched((look.axis = axis.value));
  smooth.onchange = () => touched((look.smooth = Number(smooth.value)));
  log.onchange = () => touched((look.logY = log.checked));
  bands.onchange = () => touched((look.bands = bands.checked));
}

function renderStudy(given) {
  return stage(given, "study", ({ root, head, store, own, model, touched }) => {
    const look = { axis: "seconds", smooth: 0, logY: false, bands: false, expanded: false, rate: "frames_per_s", against: null };
    const leads = make("button", "wb-leader", head);
    leads.hidden = true;
    const facts = make("span", "wb-facts", head);
    const news = make("div", "wb-unseen", root);
    news.setAttribute("aria-live", "polite");
    const page = make("div", "wb-page", root);
    const main = make("div", "wb-main", page);
    const side = make("aside", "wb-side", page);
    side.setAttribute("aria-label", "selected trials, controls and verdicts");

    const bar = filterBar(main, store, own);
    const table = makeTable(main, store, own);
    const { gantt, unzoom, expectation, reading, views } = glance(main, own, look, touched);
    const more = moreTabs(main, model, store, own, look, touched);
    const detail = makeDetail(side, store, own);
    const controls = trialControls(side, store, own);
    const remarks = remarkForm(side, store, own);
    const study = studyControls(side, store);
    make("h4", "", side, "Latest verdicts");
    const verdicts = listOf(make("ol", "wb-log wb-verdicts", side), own.choose, "no trial has been stopped yet");

    const announce = whenChanged((state, trial, score) => {
      news.textContent = `The study is ${STANDING[state] ?? state}.${trial === null ? "" : ` Trial ${trial} has had the best score, ${short(score)}, in the luckiest phase.`}`;
    });

    function header() {
      root.dataset.state = store.now.state;
      const leader = leaderOf(store);
      const config = leader && Object.entries(leader.config).map(([key, value]) => `${key} ${written(value)}`).join(", ");
      leads.hidden = !leader;
      leads.textContent = leader ? `▲ trial ${leader.trial}: luckiest phase ${short(leader.best)} (${config})` : "";
      leads.title = "the best score of any phase, which may be luck: the configuration to take may be another";
      leads.onclick = () => own.select([leader.trial]);
      facts.textContent = headline(store);
      announce(store.now.state, leader?.trial ?? null, leader?.best ?? null);
      unzoom.hidden = !own.filter().includes("time:");
      reading.textContent = store.now.reading ? "ends of phases; the rest is being read …" : "";
      expectation.textContent = store.meta.expected.length ? "line: expected, dots: fewest" : "";
    }

    function update() {
      header();
      bar.update();
      more.update();
      table();
      detail();
      controls();
      remarks();
      study();
      verdicts(store.log.filter((line) => line.list === "decisions").slice(-12), [...own.selected]);
    }
    return { views: [[gantt, drawGantt], ...views, ...more.views], update, look, filter: bar.input };
  });
}

// What is seen without a click: curves, phases, slots.
function glance(main, own, look, touched) {
  const row = make("div", "wb-figures", main);
  const curves = figure(row, "Learning curves", "learning curves of the visible trials; the table holds their scores");
  const reading = make("span", "wb-soft wb-note", curves.head);
  curveChoices(curves.head, look, touched);
  const survival = figure(row, "Trials in each phase", "how many trials began each phase and what became of them");
  const expectation = make("span", "wb-soft wb-note", survival.head);
  const occupancy = figure(row, "Slots in use", "slots that ran, were held or idle over time");
  const gantt = figure(main, "Slots over time", "which trial had which slot when; the table names every trial's phases");
  make("span", "wb-soft wb-note", gantt.head, "phases from dark to light; hatched: held, lost or stopped; drag to zoom");
  gantt.canvas.parentElement.classList.add("wb-gantt");
  const expand = button(gantt.head, "expand", "", () => {
    look.expanded = gantt.canvas.parentElement.classList.toggle("wb-expanded");
    expand.textContent = look.expanded ? "shrink" : "expand";
    touched();
  });
  const unzoom = button(gantt.head, "reset the zoom", "", () => own.brush("time:", ""));
  gantt.canvas.parentElement.onscroll = touched; // it draws the rows in sight
  return { gantt, unzoom, expectation, reading, views: [[survival, drawSurvival], [occupancy, drawOccupancy], [curves, drawCurves]] };
}

// What is a click away.
function moreTabs(main, model, store, own, look, touched) {
  const [forests, throughput, against, parallel, best, decided, troubled] = tabs(
    make("div", "wb-more", main),
    ["Importance", "Throughput", "Score against", "Parallel", "Best score", "Decisions", "Crashes"],
    touched,
  );
  const importance = figure(forests, "", "how much each hyperparameter explains of the scores");
  const ofPhase = choice(importance.head, "scores to explain", [["", "last score of every trial"]]);
  const skill = make("span", "wb-soft", importance.head);
  const rates = figure(throughput, "", "rates over time");
  const rate = choice(rates.head, "rate", Object.entries(RATES));
  rate.onchange = () => touched((look.rate = rate.value));
  const scores = figure(against, "", "last scores against a hyperparameter");
  const name = choice(scores.head, "hyperparameter", []);
  name.onchange = () => touched((look.against = name.value));
  const lines = figure(parallel, "", "trials through their hyperparameters to their last score");
  const record = figure(best, "", "best score over time");
  ofPhase.onchange = touched;
  const decisions = listOf(make("ol", "wb-log wb-decisions", decided), own.choose, "none so far");
  const failures = make("div", "wb-failures", troubled);
  const troubles = listOf(make("ol", "wb-log wb-troubles", troubled), own.choose, "none so far");
  const explained = () => (store.now.importance ?? []).find((found) => String(found.phase ?? "") === ofPhase.value) ?? null;

  function update() {
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
    failures.textContent = store.now.failures.join("; ");
    const mine = [...own.selected];
    decisions(store.log.filter((line) => line.list !== "troubles").slice(-100), mine);
    troubles(store.log.filter((line) => line.list === "troubles").slice(-100), mine);
  }
  const views = [
    [record, drawBest], [rates, drawRates], [scores, drawScores], [lines, drawParallel],
    [importance, (canvas, scene) => drawImportance(canvas, scene, model.get("importance"), explained())],
  ];
  return { views, update };
}

const PAGES = { dashboard: renderStudy, comparison: renderComparison, home: renderHome };

function render(given) {
  return PAGES[given.model.get("_kind") ?? "dashboard"](given);
}

export { forget, render };
