// Several studies in one page: hue means the study here. Their trials stand in one table, under one filter.

// What hue and dash mean: a trial's state, or, where studies stand side by side, its study.
function looksOf(store, trial) {
  const studies = store.now.studies;
  if (!studies) return { color: store.meta.states[trial?.state], dash: DASHES[trial?.state] ?? [] };
  const { color, dash = [] } = studies[trial?.study] ?? {};
  return { color, dash };
}

function renderComparison(given) {
  return stage(given, "comparison of studies", ({ root, store, own, touched }) => {
    const look = { axis: "seconds", smooth: 0, logY: false, bands: true, against: null };
    const page = make("div", "wb-page wb-wide", root);
    const sides = make("table", "wb-sides", page);
    const main = make("div", "wb-main", page);
    const bar = filterBar(main, store, own);
    const table = makeTable(main, store, own);
    const row = make("div", "wb-figures wb-two", main);
    const curves = figure(row, "Learning curves", "learning curves of the visible trials of every study; the table holds their scores");
    curveChoices(curves.head, look, touched);
    const cost = figure(row, "Best score against node-hours", "the best score so far of every study against what it had cost");
    const importance = figure(row, "Importance", "how much each hyperparameter explains of every study's scores");
    const parallel = figure(row, "All trials", "trials of all studies through their hyperparameters to their last score");
    make("span", "wb-soft wb-note", parallel.head, "drag over an axis to filter");
    const beside = whenChanged((studies) => {
      sides.replaceChildren();
      const body = bodyUnder(sides, ["study", "state", "trials", "phases ended", "luckiest phase", "node-hours to it", "in all", "occupied", "importance"]);
      studies.forEach((study) => sideRow(make("tr", "", body), study));
    });
    function update() {
      bar.update();
      table();
      beside(store.now.studies);
    }
    const views = [[curves, drawCurves], [cost, drawCost], [importance, drawSides], [parallel, drawParallel]];
    return { views, update, look, filter: bar.input };
  });
}

function sideRow(row, study) {
  const name = make("th", "", row);
  name.scope = "row";
  const swatch = document.createElementNS(SVG, "svg");
  const line = document.createElementNS(SVG, "path");
  const drawn = { d: "M0 4H24", stroke: study.color, "stroke-width": 3, "stroke-dasharray": study.dash };
  for (const [key, value] of Object.entries(drawn)) line.setAttribute(key, value);
  for (const [key, value] of [["width", 24], ["height", 8], ["aria-hidden", true]]) swatch.setAttribute(key, value);
  swatch.append(line);
  name.append(swatch);
  make("strong", "", name, ` ${study.title}`);
  const last = study.best[study.best.length - 1];
  const cells = [
    STANDING[study.state] ?? study.state,
    study.trials_started,
    study.phases_ended,
    short(last?.[1] ?? NaN),
    short(last?.[0] ?? NaN),
    short(study.node_h),
    study.occupancy === null ? "–" : `${Math.round(100 * study.occupancy)} %`,
    mattersMost(study),
  ];
  for (const words of cells) make("td", "", row, String(words));
}

// The hyperparameter that matters most, or why none is named: nothing is computed before as many trials have a score.
function mattersMost(study) {
  const found = study.importance.find(({ phase }) => phase === null);
  if (!found) return study.scored < 20 ? "from 20 trials with a score on" : "being computed";
  return found.rows.length ? found.rows[0].hyperparameter : found.told;
}

function drawCost(canvas, { store, colors }) {
  const { pen, width, height } = ready(canvas, FIGURE);
  const studies = store.now.studies.filter((study) => study.best.length);
  if (!studies.length) return none(pen, width, height, colors, "no phase has ended yet");
  const x = { low: 0, high: Math.max(...studies.map((s) => s.node_h)) || 1, title: "node-hours since the study began" };
  const y = { ...span(studies.flatMap((s) => s.best.map(([, score]) => score))), title: "best score" };
  const { px, py } = axes(pen, boxOf(width, height), x, y, colors);
  const marks = [];
  for (const study of studies) {
    const own = study.best.map(([hours, score]) => ({ x: px(hours), y: py(score), hours, score, study }));
    pen.strokeStyle = study.color;
    pen.setLineDash(study.dash);
    stairs(pen, own, px(study.node_h));
    pen.setLineDash([]);
    marks.push(...own);
  }
  for (const mark of marks) dot(pen, mark, 3, mark.study.color);
  return (mx, my) => {
    const mark = nearestOf(marks, mx, my);
    return mark && { trial: null, words: [mark.study.title, `best score ${short(mark.score)}`, `after ${short(mark.hours)} node-hours`] };
  };
}

function drawSides(canvas, { store, colors }) {
  const studies = store.now.studies
    .map((study) => ({ ...study, rows: study.importance.find((found) => found.phase === null)?.rows ?? [] }))
    .filter((study) => study.rows.length);
  const most = new Map();
  for (const { rows } of studies) for (const { hyperparameter: name, importance } of rows) most.set(name, Math.max(most.get(name) ?? 0, importance));
  const names = [...most.keys()].sort((a, b) => most.get(b) - most.get(a));
  const { pen, width, height } = ready(canvas, Math.max(FIGURE, 44 + names.length * (8 + 9 * studies.length)));
  if (!names.length) return none(pen, width, height, colors, "computed once a study has 20 trials with a score, where the scores follow anything");
  pen.font = FONT;
  const left = Math.min(150, 22 + Math.max(...names.map((name) => pen.measureText(name).width)));
  const box = boxOf(width, height, left);
  const high = Math.max(...studies.flatMap(({ rows }) => rows.map((row) => row.high)));
  const y = { low: names.length, high: 0, title: "", ticks: names.map((_, k) => k + 0.5), labels: names.map((name) => fitting(pen, name, left - 22)) };
  const { px, py } = axes(pen, box, { low: 0, high: high * 1.03, title: "importance [share of variance reduction], 95 % intervals" }, y, colors);
  const tall = 0.8 / studies.length;
  const bars = [];
  studies.forEach((study, j) => {
    for (const row of study.rows) {
      const top = py(names.indexOf(row.hyperparameter) + 0.1 + j * tall);
      const bar = { x: px(0), y: top, width: px(row.importance) - px(0), height: py(tall) - py(0) - 1, row, study };
      pen.fillStyle = study.color;
      pen.fillRect(bar.x, bar.y, bar.width, bar.height);
      pen.strokeStyle = colors.ink;
      pen.lineWidth = 1;
      rule(pen, px(row.low), top + bar.height / 2, px(row.high), top + bar.height / 2);
      bars.push(bar);
    }
  });
  return (mx, my) => {
    const bar = bars.find((b) => my >= b.y && my <= b.y + b.height && mx >= box.left);
    return bar ? { trial: null, words: [bar.study.title, bar.row.hyperparameter, `importance ${short(bar.row.importance)} (95 %: ${short(bar.row.low)} to ${short(bar.row.high)})`] } : null;
  };
}
