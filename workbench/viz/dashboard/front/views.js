// Time and phases: slots, survival, occupancy, the best score, importance, throughput. A view draws a scene on a canvas
// (the store, what is visible and selected, the theme's colours, the looks chosen) and returns `hit(x, y)`: the trial and
// words under the pointer; `hit.brush`, where there is one, turns a rectangle into [what it replaces, token] of the filter.

const WASTED = ["held", "lost", "stopped"]; // time of a slot that bought nothing
const BOX = { left: 52, top: 8, right: 10, bottom: 34 };
const FIGURE = 176; // pixels: a figure of the upper row
const TAB = 172; // one in a tab

function boxOf(width, height, left = BOX.left, bottom = BOX.bottom) {
  return { left, top: BOX.top, width: width - left - BOX.right, height: height - BOX.top - bottom };
}

function none(pen, width, height, colors, words) {
  pen.fillStyle = colors.soft;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const lines = wrapped(pen, words, width - 24);
  lines.forEach((line, k) => pen.fillText(line, width / 2, height / 2 + 15 * (k - (lines.length - 1) / 2)));
  return () => null;
}

// Rows of the Gantt chart: slots in order, those of a node together with a gap around them.
function slotRows(slots) {
  const nodes = new Map();
  for (const [slot, node] of slots) {
    if (!nodes.has(node)) nodes.set(node, new Set());
    nodes.get(node).add(slot);
  }
  const rows = [];
  let y = 0;
  const ordered = [...nodes].sort((a, b) => Math.min(...a[1]) - Math.min(...b[1]));
  ordered.forEach(([node, held], k) => {
    if (k && held.size > 1) y += 0.5;
    for (const slot of [...held].sort((a, b) => a - b)) {
      rows.push({ slot, node, y, label: held.size > 1 ? `${node} · ${slot}` : node });
      y += 1;
    }
  });
  return { rows, height: y };
}

// When each slot lived, in order, and on which node: slot → [{node, joined, lost}].
function livesOf(slots) {
  const lives = new Map();
  for (const [slot, node, joined, lost] of slots) {
    if (!lives.has(slot)) lives.set(slot, []);
    lives.get(slot).push({ node, joined, lost });
  }
  return lives;
}

// Finds the row of a slot at an instant: a study that is resumed numbers its slots anew, and they may be on other nodes.
function rowFinder(slots, rows) {
  const known = new Map(rows.map((row) => [`${row.slot} ${row.node}`, row]));
  const lives = livesOf(slots);
  for (const [slot, of] of lives) for (const life of of) life.row = known.get(`${slot} ${life.node}`);
  return (slot, at) => lives.get(slot)?.findLast(({ joined }) => Math.fround(joined) <= Math.fround(at))?.row; // bars are told in float32
}

// The stretch of the study's time that the Gantt chart shows: the filter's, or all of it.
function stretchOf(own, now) {
  const token = own.filter().split(/\s+/).find((word) => word.startsWith("time:"));
  const range = token && rangeIn(token.slice(5));
  if (!range) return [0, now];
  const [first, last] = [Math.max(0, range.low), Math.min(now, range.high)];
  return first < last ? [first, last] : [0, now]; // an instant, or one to come, has no length to be drawn
}

function drawGantt(canvas, { store, own, colors, look }) {
  const { rows, height: tall } = slotRows(store.now.slots);
  const row = look.expanded ? 20 : Math.max(3, Math.min(6, Math.floor(100 / Math.max(1, tall))));
  const { pen, width, height } = ready(canvas, BOX.top + BOX.bottom + row * Math.max(2, tall));
  if (!rows.length) return none(pen, width, height, colors, "no slot has joined yet");
  pen.font = FONT;
  const left = look.expanded ? Math.min(170, 22 + Math.max(...rows.map((r) => pen.measureText(r.label).width))) : 52;
  const now = Math.max(store.now.at_s, 1e-9);
  const [first, last] = stretchOf(own, now);
  const unit = clock(last);
  const [head, foot] = inSight(canvas, height);
  const box = { ...boxOf(width, height, left), foot };
  const x = { low: first / unit.seconds, high: last / unit.seconds, title: `time since the study began [${unit.unit}]` };
  const seen = (r) => BOX.top + row * r.y >= head - 100 && BOX.top + row * (r.y + 1) <= foot + 1; // pixels are whole, heights are not
  const shown = (look.expanded ? rows : rows.filter((_, k) => k % Math.ceil(14 / row) === 0)).filter(seen);
  const y = { low: tall, high: 0, title: look.expanded ? "" : "slot", ticks: shown.map((r) => r.y + 0.5), labels: shown.map((r) => (look.expanded ? fitting(pen, r.label, left - 22) : String(r.slot))) };
  const { px, py } = axes(pen, box, x, y, colors);
  const top = new Map(rows.filter(seen).map((r) => [r, py(r.y) + 0.5]));
  const rowOf = rowFinder(store.now.slots, rows);
  const at = (seconds) => px(Math.max(first, Math.min(last, seconds)) / unit.seconds);
  pen.fillStyle = colors.line;
  for (const [slot, , joined, lost] of store.now.slots) {
    const on = top.get(rowOf(slot, joined));
    if (on !== undefined) pen.fillRect(at(joined), on, at(lost ?? now) - at(joined), row - 1);
  }
  const bars = [];
  for (const bar of store.spans) {
    const until = Number.isNaN(bar?.to) ? now : bar?.to;
    const on = bar && top.get(rowOf(bar.slot, bar.from));
    if (on === undefined || bar.from > last || until < first) continue;
    const [from, to] = [at(bar.from), at(until)];
    const place = { x: from, y: on, width: Math.max(1, to - from - 0.7), height: row - 1, bar };
    pen.globalAlpha = own.visible(bar.trial) ? 1 : 0.2;
    pen.fillStyle = colors.phases[Math.min(bar.phase, colors.phases.length - 1)];
    pen.fillRect(place.x, place.y, place.width, place.height);
    if (WASTED.includes(bar.outcome)) hatch(pen, place, store.meta.states[bar.outcome === "lost" ? "failed" : bar.outcome] ?? colors.soft, colors);
    if (look.expanded && place.width > 26) numbered(pen, place, bar.trial, colors);
    bars.push(place);
  }
  pen.globalAlpha = 1;
  for (const place of bars) if (own.selected.has(place.bar.trial)) frame(pen, place, colors, row < 12 ? 0.4 : 1);
  const hit = (mx, my) => {
    const found = bars.find((b) => mx >= b.x && mx <= b.x + b.width && my >= b.y && my <= b.y + b.height);
    if (!found) return null;
    const { trial, phase, slot, from, to, outcome } = found.bar;
    const over = Number.isNaN(to) ? now : to;
    return { trial, words: [`phase ${phase} on slot ${slot}: ${outcome}`, `${duration(from)}–${duration(over)} (${duration(over - from)})`, ...whatItIs(store.trials.get(trial))] };
  };
  hit.brush = (x0, _, x1) => {
    const seconds = (mx) => Math.round(Math.max(x.low, Math.min(x.high, x.low + ((mx - box.left) / box.width) * (x.high - x.low))) * unit.seconds * 10) / 10;
    const [from, to] = [seconds(x0), seconds(x1)];
    return ["time:", from < to ? `time:${from}..${to}` : ""];
  };
  return hit;
}

// From where to where rows are seen, above the room of the axis: of many slots a part is, and a file has them all.
function inSight(canvas, height) {
  const place = canvas.parentElement;
  if (!canvas.isConnected) return [0, height - BOX.bottom];
  return [place.scrollTop, Math.min(height, place.scrollTop + place.clientHeight) - BOX.bottom];
}

// The trial's number in its bar, on a patch of the ground, so that it can be read on every lightness.
function numbered(pen, place, trial, colors) {
  const words = String(trial);
  const wide = pen.measureText(words).width + 4;
  pen.fillStyle = colors.ground;
  pen.fillRect(place.x + 2, place.y + 3, wide, place.height - 6);
  pen.fillStyle = colors.ink;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.fillText(words, place.x + 4, place.y + place.height / 2 + 0.5);
}

function hatch(pen, { x, y, width, height }, color, colors) {
  pen.fillStyle = colors.ground;
  pen.fillRect(x, y, width, height);
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.strokeStyle = color;
  pen.lineWidth = 2;
  for (let at = x - height; at < x + width; at += 5) rule(pen, at, y + height, at + height, y);
  pen.restore();
}

// HyperTrick's two modes, by their short names in the paper: no other scheduler says how many reports it collects first.
// Of others what they wrote.
function modeOf(phase, roomy) {
  const hypertrick = phase.collecting_reports != null;
  if (hypertrick && phase.mode === "collecting") return roomy ? `DCM ${phase.reported}/${phase.collecting_reports}` : "DCM";
  if (hypertrick && phase.mode === "selecting") return "WSM";
  return phase.mode === "finished" ? "last" : phase.mode;
}

// The same, in words: what the next report of the phase meets.
function nextIn(phase) {
  if (phase.collecting_reports == null || !["collecting", "selecting"].includes(phase.mode)) return [];
  if (phase.mode === "selecting") return [`selecting (WSM): the next report is ranked among ${phase.reported}`];
  return [`collecting (DCM): ${phase.reported} of ${phase.collecting_reports} reports`];
}

const FATES = [["continued", "went on"], ["waiting", "waiting"], ["finished", "finished"], ["stopped", "stopped"], ["failed", "failed"], ["running", "running"]];

function drawSurvival(canvas, { store, own, colors }) {
  const { pen, width, height } = ready(canvas, FIGURE);
  const phases = store.now.survival;
  if (!phases.length) return none(pen, width, height, colors, "no phase has begun yet");
  const { expected, minimum } = store.meta;
  const under = standingIn(store.now.state, "running", true); // what is under way, or was when the study broke off
  const color = { ...store.meta.states, continued: colors.neutral, waiting: store.meta.states.paused, running: store.meta.states[under] };
  const most = Math.max(1, ...phases.map((p) => p.began), ...expected);
  const box = boxOf(width, height, 48, 48);
  const room = box.width / phases.length;
  const x = { low: -0.5, high: phases.length - 0.5, title: "phase", bare: true, low2: true };
  const labelled = phases.filter((p) => p.phase % Math.ceil((phases.length > 100 ? 28 : 18) / room) === 0);
  [x.ticks, x.labels] = [labelled.map((p) => p.phase), labelled.map((p) => String(p.phase))];
  const { px, py } = axes(pen, box, x, { low: 0, high: most * 1.05, title: "trials", whole: true }, colors);
  const bar = Math.min(60, room * 0.72);
  phases.forEach((phase) => {
    let below = 0;
    for (const [key] of FATES) {
      pen.fillStyle = color[key];
      const [y0, y1] = [py(below), py((below += phase[key]))];
      pen.fillRect(px(phase.phase) - bar / 2, y1, bar, Math.max(0, y0 - y1 - (phase[key] ? 1 : 0)));
    }
    pen.fillStyle = colors.soft;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const mode = modeOf(phase, room > 60);
    if (mode && pen.measureText(mode).width + 6 < room) pen.fillText(mode, px(phase.phase), box.top + box.height + 16);
  });
  for (const [heights, dash] of [[expected, []], [minimum, [2, 3]]]) {
    pen.setLineDash(dash);
    pen.strokeStyle = colors.ink;
    pen.lineWidth = 2;
    pen.beginPath();
    heights.slice(0, phases.length).forEach((value, k) => pen.lineTo(px(k), py(value)));
    pen.stroke();
  }
  pen.setLineDash([]);
  const reached = new Set(!own.selected.size ? [] : store.spans.filter((s) => s && own.selected.has(s.trial)).map((s) => s.phase)); // by selected trials
  pen.strokeStyle = colors.ink;
  pen.lineWidth = 3;
  for (const phase of reached) rule(pen, px(phase) - bar / 2, py(0) + 1.5, px(phase) + bar / 2, py(0) + 1.5);
  return (mx) => {
    const phase = phases[Math.round(((mx - box.left) / box.width) * phases.length - 0.5)];
    if (!phase) return null;
    const words = FATES.filter(([key]) => phase[key]).map(([key, name]) => `${phase[key]} ${key === "running" ? under : name}`);
    if (expected.length > phase.phase) words.push(`${short(expected[phase.phase])} expected`);
    if (minimum.length > phase.phase) words.push(`${short(minimum[phase.phase])} at least`);
    words.push(...nextIn(phase));
    if (reached.has(phase.phase)) words.push("a selected trial is among them");
    return { trial: null, words: [`phase ${phase.phase}: ${phase.began} began`, ...words] };
  };
}

// Slots that run, hold or idle in equal stretches of the study's time, each the mean over its stretch.
function occupancyOf(store, now, bins) {
  const width = now / bins;
  const table = { ran: new Float64Array(bins + 1), held: new Float64Array(bins + 1), alive: new Float64Array(bins + 1) };
  const add = (column, from, to) => {
    const [a, b] = [Math.max(0, from) / width, Math.min(now, Number.isNaN(to) || to === null ? now : to) / width];
    for (let k = Math.floor(a); k < Math.min(bins, b); k++) table[column][k] += Math.max(0, Math.min(b, k + 1) - Math.max(a, k));
  };
  for (const [, , joined, lost] of store.now.slots) add("alive", joined, lost);
  const lives = livesOf(store.now.slots);
  for (const bar of store.spans.filter(Boolean)) {
    const until = Number.isNaN(bar.to) ? now : bar.to; // or its slot's end: what ran there may be given up later
    for (const { joined, lost } of lives.get(bar.slot) ?? []) add(bar.outcome === "held" ? "held" : "ran", Math.max(bar.from, joined), Math.min(until, lost ?? now));
  }
  return { width, ...table };
}

function drawOccupancy(canvas, { store, colors }) {
  const { pen, width, height } = ready(canvas, FIGURE);
  const now = store.now.at_s;
  if (!store.now.slots.length || !(now > 0)) return none(pen, width, height, colors, "no slot has joined yet");
  const unit = clock(now);
  const box = boxOf(width, height, 48);
  const bins = Math.max(10, Math.floor(box.width / 3));
  const { ran, held, alive, width: each } = occupancyOf(store, now, bins);
  const most = Math.max(1, ...alive);
  const { px, py } = axes(pen, box, { low: 0, high: now / unit.seconds, title: `study's time [${unit.unit}]` }, { low: 0, high: most * 1.05, title: "slots", whole: true }, colors);
  const edge = (heights) => Array.from({ length: bins }, (_, k) => [k, k + 1].map((at) => [px((at * each) / unit.seconds), py(heights(k))])).flat();
  const band = (low, high, color) => {
    pen.fillStyle = color;
    pen.beginPath();
    for (const [x, y] of [...edge(low), ...edge(high).reverse()]) pen.lineTo(x, y);
    pen.fill();
  };
  band(() => 0, (k) => alive[k], colors.line);
  band(() => 0, (k) => ran[k], colors.neutral);
  band((k) => ran[k], (k) => ran[k] + held[k], store.meta.states.held); // not below what ran: a theme's grey may let it through
  return (mx) => {
    const k = Math.floor(((mx - box.left) / box.width) * bins);
    if (k < 0 || k >= bins) return null;
    const share = alive[k] ? `${Math.round((100 * ran[k]) / alive[k])} % occupied` : "no slot";
    return { trial: null, words: [`${duration(k * each)}–${duration((k + 1) * each)}: ${share}`, `${short(ran[k])} of ${short(alive[k])} slots ran`, ...(held[k] > 0.005 ? [`${short(held[k])} held`] : [])] };
  };
}

function drawBest(canvas, { store, own, colors }) {
  const { pen, width, height } = ready(canvas, TAB);
  const best = store.now.best; // [at_s, score, trial, phase]
  if (!best.length) return none(pen, width, height, colors, "no phase has ended yet");
  const now = Math.max(store.now.at_s, best[best.length - 1][0]);
  const unit = clock(now);
  const x = { low: 0, high: now / unit.seconds, title: `time since the study began [${unit.unit}]` };
  const { px, py } = axes(pen, boxOf(width, height), x, { ...span(best.map((b) => b[1])), title: "best score" }, colors);
  const marks = best.map(([at, score, trial, phase]) => ({ x: px(at / unit.seconds), y: py(score), trial, score, at, phase }));
  pen.strokeStyle = colors.neutral;
  stairs(pen, marks, px(now / unit.seconds));
  for (const mark of marks) {
    if (own.selected.has(mark.trial)) ring(pen, mark, 7, colors);
    dot(pen, mark, 3.5, colors.neutral);
  }
  return (mx, my) => {
    const mark = nearestOf(marks, mx, my);
    return mark && { trial: mark.trial, words: [`score ${short(mark.score)} after phase ${mark.phase}`, `at ${duration(mark.at)}`] };
  };
}

// A line that stays where a mark is until the next one, and behind the last up to `end`.
function stairs(pen, marks, end) {
  pen.lineWidth = 2;
  pen.beginPath();
  marks.forEach(({ x, y }, k) => {
    if (k) pen.lineTo(x, marks[k - 1].y);
    pen.lineTo(x, y);
  });
  pen.lineTo(end, marks[marks.length - 1].y);
  pen.stroke();
}

function cross(pen, { x, y }, size, color) {
  pen.strokeStyle = color;
  pen.lineWidth = 2;
  rule(pen, x - size, y - size, x + size, y + size);
  rule(pen, x - size, y + size, x + size, y - size);
}

function dot(pen, { x, y }, radius, color) {
  pen.fillStyle = color;
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

function nearestOf(marks, mx, my) {
  let [found, nearest] = [null, 144];
  for (const mark of marks) {
    const distance = (mark.x - mx) ** 2 + (mark.y - my) ** 2;
    if (distance < nearest) [found, nearest] = [mark, distance];
  }
  return found;
}

function drawImportance(canvas, { store, colors }, on, found) {
  const { pen, width, height } = ready(canvas, Math.max(TAB - 20, 50 + 30 * (found?.rows.length ?? 0)));
  if (!on) return none(pen, width, height, colors, "switched off: board.importance = True switches it on");
  const scored = [...store.trials.values()].filter((t) => t.last !== null).length;
  if (!found) return none(pen, width, height, colors, scored < 20 ? "computed once 20 trials have a score" : "being computed, by a process that gives way to all others: beside busy processors it takes minutes");
  if (!found.rows.length) return none(pen, width, height, colors, found.told);
  const { rows } = found;
  pen.font = FONT;
  const left = Math.min(170, 22 + Math.max(...rows.map((row) => pen.measureText(row.hyperparameter).width)));
  const box = boxOf(width, height, left);
  const high = Math.max(...rows.flatMap((row) => [row.high, row.permutation_high, row.permutation]));
  const low = Math.min(0, ...rows.map((row) => row.permutation_low));
  const y = { low: rows.length, high: 0, title: "", ticks: rows.map((_, k) => k + 0.5), labels: rows.map((row) => fitting(pen, row.hyperparameter, left - 22)) };
  const { px, py } = axes(pen, box, { low, high: high * 1.03, title: "importance [share of variance reduction; fall of R² when shuffled]" }, y, colors);
  const bars = [["importance", "low", "high", 0.14], ["permutation", "permutation_low", "permutation_high", 0.52]];
  rows.forEach((row, k) => {
    for (const [value, from, to, down] of bars) {
      const [top, tall] = [py(k + down), py(k + down + 0.32) - py(k + down)];
      const place = { x: Math.min(px(0), px(row[value])), y: top, width: Math.abs(px(row[value]) - px(0)), height: tall };
      if (value === "importance") {
        pen.fillStyle = colors.neutral;
        pen.fillRect(place.x, place.y, place.width, place.height);
      } else hatch(pen, place, colors.neutral, colors);
      pen.strokeStyle = colors.ink;
      pen.lineWidth = 1;
      rule(pen, px(row[from]), top + tall / 2, px(row[to]), top + tall / 2);
    }
  });
  return (_, my) => {
    const row = rows[Math.floor(((my - box.top) / box.height) * rows.length)];
    if (!row) return null;
    const range = (name, from, to) => `${name} ${short(row[name])} (95 %: ${short(row[from])} to ${short(row[to])})`;
    return { trial: null, words: [row.hyperparameter, range("importance", "low", "high"), range("permutation", "permutation_low", "permutation_high")] };
  };
}

const RATES = {
  frames_per_s: "frames/s, all trials", pps: "predictions/s, all trials", tps: "updates/s, all trials",
  policy_lag_mean: "policy lag [updates], mean", prediction_queue: "prediction queue [requests], mean", training_queue: "training queue [segments], mean",
};

function drawRates(canvas, { store, own, colors, look }) {
  const { pen, width, height } = ready(canvas, TAB);
  const name = look.rate;
  const column = 1 + store.meta.rates.indexOf(name);
  const known = store.rates.filter((sample) => sample[column] !== null);
  if (!known.length) return none(pen, width, height, colors, "not reported so far");
  const now = Math.max(store.now.at_s, known[known.length - 1][0]);
  const unit = clock(now);
  const x = { low: 0, high: now / unit.seconds, title: `time since the study began [${unit.unit}]` };
  const high = Math.max(...known.map((sample) => sample[column]), 1e-9);
  const { px, py } = axes(pen, boxOf(width, height, 60), x, { low: 0, high: high * 1.05, title: RATES[name] }, colors);
  pen.fillStyle = colors.ink; // while selected trials ran
  pen.globalAlpha = 0.12;
  for (const { from, to } of store.spans.filter((bar) => bar && own.selected.has(bar.trial))) {
    const [left, right] = [px(from / unit.seconds), px((Number.isNaN(to) ? now : to) / unit.seconds)];
    pen.fillRect(left, py(high * 1.05), right - left, py(0) - py(high * 1.05));
  }
  pen.globalAlpha = 1;
  pen.strokeStyle = colors.neutral;
  pen.lineWidth = 1.5;
  pen.beginPath();
  const marks = [];
  store.rates.forEach((sample, k) => {
    if (sample[column] === null) return;
    const mark = { x: px(sample[0] / unit.seconds), y: py(sample[column]), sample };
    if ((store.rates[k - 1]?.[column] ?? null) === null) pen.moveTo(mark.x - 1, mark.y); // no line across a gap; one alone is a dot
    pen.lineTo(mark.x, mark.y);
    marks.push(mark);
  });
  pen.stroke();
  return (mx, my) => {
    const mark = nearestOf(marks, mx, my);
    return mark && { trial: null, words: [`${short(mark.sample[column])} ${RATES[name].split(",")[0]}`, `at ${duration(mark.sample[0])}`] };
  };
}
