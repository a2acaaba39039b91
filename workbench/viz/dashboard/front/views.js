// The views. Each draws the store on a canvas and returns `hit(x, y)`: the trial and words under the pointer.

const WASTED = ["held", "lost", "stopped"]; // time of a slot that bought nothing
const BOX = { left: 52, top: 8, right: 10, bottom: 36 };

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

// Words in lines that are no wider than given.
function wrapped(pen, words, most) {
  const lines = [""];
  for (const word of words.split(" ")) {
    const longer = `${lines[lines.length - 1]} ${word}`.trim();
    if (pen.measureText(longer).width <= most || !lines[lines.length - 1]) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
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

function drawGantt(canvas, store, selected, colors) {
  const { rows, height: tall } = slotRows(store.now.slots);
  const row = Math.max(5, Math.min(20, 420 / Math.max(1, tall)));
  const { pen, width, height } = ready(canvas, BOX.top + BOX.bottom + row * Math.max(2, tall));
  if (!rows.length) return none(pen, width, height, colors, "no slot has joined yet");
  pen.font = FONT;
  const left = Math.min(170, 22 + Math.max(...rows.map((r) => pen.measureText(r.label).width)));
  const now = Math.max(store.now.at_s, 1e-9);
  const unit = clock(now);
  const box = boxOf(width, height, left);
  const x = { low: 0, high: now / unit.seconds, title: `time since the study began [${unit.unit}]` };
  const every = Math.max(1, Math.ceil(12 / row));
  const shown = rows.filter((_, k) => k % every === 0);
  const y = { low: tall, high: 0, title: "", ticks: shown.map((r) => r.y + 0.5), labels: shown.map((r) => r.label) };
  const { px, py } = axes(pen, box, x, y, colors);
  const top = new Map(rows.map((r) => [r.slot, py(r.y) + 1]));
  const at = (seconds) => px(seconds / unit.seconds);
  pen.fillStyle = colors.line;
  for (const [slot, , joined, lost] of store.now.slots) {
    pen.fillRect(at(joined), top.get(slot), at(lost ?? now) - at(joined), row - 2);
  }
  const bars = [];
  for (const bar of store.spans) {
    if (!bar || !top.has(bar.slot)) continue;
    const [from, to] = [at(bar.from), at(Number.isNaN(bar.to) ? now : bar.to)];
    const place = { x: from, y: top.get(bar.slot), width: Math.max(1, to - from - 0.7), height: row - 2, bar };
    const wasted = WASTED.includes(bar.outcome);
    pen.globalAlpha = selected === null || bar.trial === selected ? 1 : 0.4;
    pen.fillStyle = store.meta.phase_colors[bar.phase % store.meta.phase_colors.length];
    pen.fillRect(place.x, place.y, place.width, place.height);
    if (wasted) hatch(pen, place, colors);
    bars.push(place);
  }
  pen.globalAlpha = 1;
  return (mx, my) => {
    const found = bars.find((b) => mx >= b.x && mx <= b.x + b.width && my >= b.y && my <= b.y + b.height);
    if (!found) return null;
    const { trial, phase, from, to, outcome } = found.bar;
    const over = Number.isNaN(to) ? now : to;
    return { trial, words: [`phase ${phase}: ${outcome}`, `${short(from)}–${short(over)} s (${short(over - from)} s)`] };
  };
}

function hatch(pen, { x, y, width, height }, colors) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.strokeStyle = colors.ground;
  pen.lineWidth = 1.5;
  for (let at = x - height; at < x + width; at += 6) rule(pen, at, y + height, at + height, y);
  pen.restore();
}

function phasesOf(store, trial) {
  return new Set(store.spans.filter((bar) => bar?.trial === trial).map((bar) => bar.phase));
}

// HyperTrick's two modes, by their short names in the paper: no other scheduler says how many reports it collects first.
// Of others what they wrote.
function modeOf(phase, roomy) {
  const hypertrick = phase.collecting_reports != null;
  if (hypertrick && phase.mode === "collecting") return roomy ? `DCM ${phase.reported}/${short(phase.collecting_reports)}` : "DCM";
  if (hypertrick && phase.mode === "selecting") return "WSM";
  return phase.mode === "finished" ? "last" : phase.mode;
}

// The same, in words: what the next report of the phase meets.
function nextIn(phase) {
  if (phase.collecting_reports == null || !["collecting", "selecting"].includes(phase.mode)) return [];
  if (phase.mode === "selecting") return [`selecting (WSM): the next report is ranked among ${phase.reported}`];
  return [`collecting (DCM): ${phase.reported} of ${short(phase.collecting_reports)} reports`];
}

const FATES = [["continued", "went on", "#0072B2"], ["finished", "finished"], ["stopped", "stopped"], ["failed", "failed"], ["running", "running"]];

function drawSurvival(canvas, store, selected, colors) {
  const { pen, width, height } = ready(canvas, 250);
  const phases = store.now.survival;
  if (!phases.length) return none(pen, width, height, colors, "no phase has begun yet");
  const { expected, minimum } = store.meta;
  const most = Math.max(1, ...phases.map((p) => p.began), ...expected);
  const box = boxOf(width, height, 46, 50);
  const x = { low: -0.5, high: phases.length - 0.5, title: "phase", bare: true, low2: true };
  x.ticks = phases.map((p) => p.phase);
  x.labels = phases.map((p) => String(p.phase));
  const { px, py } = axes(pen, box, x, { low: 0, high: most * 1.05, title: "trials" }, colors);
  const bar = Math.min(60, (box.width / phases.length) * 0.72);
  phases.forEach((phase) => {
    let below = 0;
    for (const [key, , color] of FATES) {
      pen.fillStyle = color ?? store.meta.states[key];
      const [y0, y1] = [py(below), py((below += phase[key]))];
      pen.fillRect(px(phase.phase) - bar / 2, y1, bar, y0 - y1);
    }
    pen.fillStyle = colors.soft;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const room = box.width / phases.length;
    const mode = modeOf(phase, room > 60);
    if (mode && room > 30) pen.fillText(mode, px(phase.phase), box.top + box.height + 17);
  });
  for (const [heights, dash] of [[expected, []], [minimum, [2, 3]]]) {
    pen.setLineDash(dash);
    pen.strokeStyle = colors.mark;
    pen.lineWidth = 2;
    pen.beginPath();
    heights.slice(0, phases.length).forEach((value, k) => pen.lineTo(px(k), py(value)));
    pen.stroke();
  }
  pen.setLineDash([]);
  const reached = phasesOf(store, selected); // by the selected trial: a line under their bars
  pen.strokeStyle = colors.ink;
  pen.lineWidth = 3;
  for (const phase of reached) rule(pen, px(phase) - bar / 2, py(0) + 1.5, px(phase) + bar / 2, py(0) + 1.5);
  return (mx) => {
    const phase = phases[Math.round(((mx - box.left) / box.width) * phases.length - 0.5)];
    if (!phase) return null;
    const words = FATES.filter(([key]) => phase[key]).map(([key, name]) => `${phase[key]} ${name}`);
    if (expected.length > phase.phase) words.push(`${short(expected[phase.phase])} expected`);
    if (minimum.length > phase.phase) words.push(`${short(minimum[phase.phase])} at least`);
    words.push(...nextIn(phase));
    if (reached.has(phase.phase)) words.push(`trial ${selected} among them`);
    return { trial: null, words: [`phase ${phase.phase}: ${phase.began} began`, ...words] };
  };
}

function drawCurves(canvas, store, selected, colors) {
  const { pen, width, height } = ready(canvas, 250);
  const curves = [...store.curves].filter(([, curve]) => curve.x.length);
  if (!curves.length) return none(pen, width, height, colors, "no score has been reported yet");
  let longest = 0;
  for (const [, curve] of curves) longest = Math.max(longest, curve.x[curve.x.length - 1]);
  const unit = clock(longest);
  const box = boxOf(width, height);
  const values = (function* () {
    for (const [, curve] of curves) yield* curve.y;
  })();
  const x = { low: 0, high: longest / unit.seconds, title: `training time [${unit.unit}]` };
  const { px, py } = axes(pen, box, x, { ...span(values), title: "score" }, colors);
  // The selected curve last, so that it lies on top.
  curves.sort(([a], [b]) => (a === selected) - (b === selected));
  for (const [trial, curve] of curves) {
    const mine = trial === selected;
    pen.strokeStyle = pen.fillStyle = store.meta.states[store.trials.get(trial)?.state] ?? colors.soft;
    pen.globalAlpha = mine ? 1 : selected === null ? 0.75 : 0.35;
    pen.lineWidth = mine ? 2.5 : 1;
    pen.beginPath();
    curve.x.forEach((at, k) => pen.lineTo(px(at / unit.seconds), py(curve.y[k])));
    pen.stroke();
    if (curve.x.length === 1) dot(pen, { x: px(curve.x[0] / unit.seconds), y: py(curve.y[0]) }, 2, pen.fillStyle); // a line of one point
    curve.end.forEach((ends, k) => {
      if (ends) pen.fillRect(px(curve.x[k] / unit.seconds) - 2, py(curve.y[k]) - 2, 4, 4);
    });
  }
  pen.globalAlpha = 1;
  return (mx, my) => {
    let found = null;
    let nearest = 144; // pixels squared
    for (const [trial, curve] of curves) {
      for (let k = 0; k < curve.x.length; k++) {
        const distance = (px(curve.x[k] / unit.seconds) - mx) ** 2 + (py(curve.y[k]) - my) ** 2;
        if (distance < nearest) [found, nearest] = [{ trial, k, curve }, distance];
      }
    }
    if (!found) return null;
    const { trial, k, curve } = found;
    return { trial, words: [`score ${short(curve.y[k])} after ${duration(curve.x[k])}`, ...whatItIs(store.trials.get(trial))] };
  };
}

// A trial in words: its state, why the last verdict on it fell, its configuration.
function whatItIs(trial) {
  if (!trial) return [];
  const config = Object.entries(trial.config).map(([name, value]) => `${name} = ${typeof value === "number" ? short(value) : value}`);
  return [`${trial.state}${trial.why ? `: ${trial.why}` : ""}`, ...config];
}

function drawBest(canvas, store, selected, colors) {
  const { pen, width, height } = ready(canvas, 250);
  const best = store.now.best; // [at_s, score, trial, phase]
  if (!best.length) return none(pen, width, height, colors, "no phase has ended yet");
  const now = Math.max(store.now.at_s, best[best.length - 1][0]);
  const unit = clock(now);
  const x = { low: 0, high: now / unit.seconds, title: `time since the study began [${unit.unit}]` };
  const y = { ...span(best.map((b) => b[1])), title: "best score" };
  const { px, py } = axes(pen, boxOf(width, height), x, y, colors);
  pen.strokeStyle = pen.fillStyle = "#0072B2";
  pen.lineWidth = 2;
  pen.beginPath();
  best.forEach(([at, score], k) => {
    if (k) pen.lineTo(px(at / unit.seconds), py(best[k - 1][1]));
    pen.lineTo(px(at / unit.seconds), py(score));
  });
  pen.lineTo(px(now / unit.seconds), py(best[best.length - 1][1]));
  pen.stroke();
  const marks = best.map(([at, score, trial, phase]) => {
    const mark = { x: px(at / unit.seconds), y: py(score), trial, score, at, phase };
    dot(pen, mark, trial === selected ? 6 : 3.5, trial === selected ? colors.ink : "#0072B2");
    return mark;
  });
  return (mx, my) => {
    const mark = nearestOf(marks, mx, my);
    return mark && { trial: mark.trial, words: [`score ${short(mark.score)} after phase ${mark.phase}`, `at ${duration(mark.at)}`] };
  };
}

function drawScores(canvas, store, selected, colors, name) {
  const { pen, width, height } = ready(canvas, 250);
  const scored = [...store.trials.values()].filter((t) => t.last !== null && name in t.config);
  if (!scored.length) return none(pen, width, height, colors, "no phase has ended yet");
  const ends = scored.flatMap((t) => endsOf(store.curves.get(t.trial), t).map(([score, phase]) => [t, score, phase]));
  const values = scored.map((t) => t.config[name]);
  const words = values.some((v) => typeof v !== "number");
  const order = [...new Set(values)].sort((a, b) => (words ? String(a).localeCompare(String(b)) : a - b));
  const x = { title: name, bare: true, ...axisOf(order, words, values.length) };
  const at = (value) => (x.labels ? order.indexOf(value) : value);
  const { px, py } = axes(pen, boxOf(width, height), x, { ...span(ends.map((end) => end[1])), title: "score" }, colors);
  const marks = ends.map(([t, score, phase]) => {
    const mark = { x: px(at(t.config[name])), y: py(score), trial: t.trial, score, phase, value: t.config[name] };
    pen.globalAlpha = selected === null || t.trial === selected ? 0.9 : 0.4;
    const color = store.meta.phase_colors[phase % store.meta.phase_colors.length];
    const size = t.trial === selected ? 6 : 4;
    const cut = phase === t.phases - 1 && (t.state === "stopped" || t.state === "failed");
    if (cut) cross(pen, mark, size, color);
    else dot(pen, mark, size, color);
    return mark;
  });
  pen.globalAlpha = 1;
  return (mx, my) => {
    const mark = nearestOf(marks, mx, my);
    const value = mark && (typeof mark.value === "number" ? short(mark.value) : String(mark.value));
    return mark && { trial: mark.trial, words: [`score ${short(mark.score)} after phase ${mark.phase}`, `${name} = ${value}`] };
  };
}

// As workbench.viz.figures.scales: log over a factor of 20, categories for words and a few unevenly set numbers.
function axisOf(order, words, n) {
  const [first, last] = [order[0], order[order.length - 1]];
  const gaps = order.slice(1).map((value, k) => value - order[k]);
  const uneven = order.length > 2 && order.length <= 10 && n > order.length && Math.max(...gaps) / Math.min(...gaps) > order.length;
  if (!words && first > 0 && last / first > 20) {
    const decades = [];
    for (let k = Math.ceil(Math.log10(first)); k <= Math.log10(last); k++) decades.push(10 ** k);
    return { low: first / 1.3, high: last * 1.3, log: true, ticks: decades };
  }
  if (words || uneven) {
    return { low: -0.5, high: order.length - 0.5, ticks: order.map((_, k) => k), labels: order.map((v) => String(v).slice(0, 14)) };
  }
  return span(order);
}

// Scores at the ends of a trial's phases; of very many phases the curve may hold only some: then the last stands for all.
function endsOf(curve, trial) {
  const ends = curve ? curve.y.filter((_, k) => curve.end[k]) : [];
  return ends.length === trial.phases ? ends.map((score, phase) => [score, phase]) : [[trial.last, trial.phases - 1]];
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

function drawImportance(canvas, on, found, colors) {
  const { pen, width, height } = ready(canvas, Math.max(90, 60 + 34 * (found?.rows.length ?? 0)));
  if (!on) return none(pen, width, height, colors, "switched off: it takes some computing");
  if (!found) return none(pen, width, height, colors, "growing forests …");
  if (!found.rows.length) return none(pen, width, height, colors, found.told);
  const { rows } = found;
  pen.font = FONT;
  const left = Math.min(170, 22 + Math.max(...rows.map((row) => pen.measureText(row.hyperparameter).width)));
  const box = boxOf(width, height, left);
  const high = Math.max(...rows.flatMap((row) => [row.high, row.permutation_high, row.permutation]));
  const low = Math.min(0, ...rows.map((row) => row.permutation_low));
  const y = { low: rows.length, high: 0, title: "", ticks: rows.map((_, k) => k + 0.5), labels: rows.map((row) => row.hyperparameter) };
  const { px, py } = axes(pen, box, { low, high: high * 1.03, title: "importance [share; fall of R²]" }, y, colors);
  const bars = [["importance", "low", "high", "#0072B2", 0.14], ["permutation", "permutation_low", "permutation_high", "#E69F00", 0.52]];
  rows.forEach((row, k) => {
    for (const [value, from, to, color, down] of bars) {
      const [top, tall] = [py(k + down), py(k + down + 0.32) - py(k + down)];
      pen.fillStyle = color;
      pen.fillRect(Math.min(px(0), px(row[value])), top, Math.abs(px(row[value]) - px(0)), tall);
      pen.strokeStyle = colors.ink;
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

function drawRates(canvas, store, selected, colors, name) {
  const { pen, width, height } = ready(canvas, 250);
  const column = 1 + store.meta.rates.indexOf(name);
  const known = store.rates.filter((sample) => sample[column] !== null);
  if (!known.length) return none(pen, width, height, colors, "not reported so far");
  const now = Math.max(store.now.at_s, known[known.length - 1][0]);
  const unit = clock(now);
  const x = { low: 0, high: now / unit.seconds, title: `time since the study began [${unit.unit}]` };
  const high = Math.max(...known.map((sample) => sample[column]), 1e-9);
  const { px, py } = axes(pen, boxOf(width, height, 60), x, { low: 0, high: high * 1.05, title: RATES[name] }, colors);
  pen.fillStyle = colors.mark; // while the selected trial ran
  pen.globalAlpha = 0.22;
  for (const { from, to } of store.spans.filter((bar) => bar?.trial === selected)) {
    const [left, right] = [px(from / unit.seconds), px((Number.isNaN(to) ? now : to) / unit.seconds)];
    pen.fillRect(left, py(high * 1.05), right - left, py(0) - py(high * 1.05));
  }
  pen.globalAlpha = 1;
  pen.strokeStyle = "#0072B2";
  pen.lineWidth = 1.5;
  pen.beginPath();
  known.forEach((sample) => pen.lineTo(px(sample[0] / unit.seconds), py(sample[column])));
  pen.stroke();
  const marks = known.map((sample) => ({ x: px(sample[0] / unit.seconds), y: py(sample[column]), sample }));
  return (mx, my) => {
    const mark = nearestOf(marks, mx, my);
    return mark && { trial: null, words: [`${short(mark.sample[column])} ${RATES[name].split(",")[0]}`, `at ${duration(mark.sample[0])}`] };
  };
}
