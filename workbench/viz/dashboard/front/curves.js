// Scores: learning curves against time, frames or phases, and against hyperparameters; brushes write into the filter.

const AXES = { seconds: "training time", frames: "frames", phases: "phases ended" };
const DASHES = { running: [], "cut off": [5, 2, 1, 2], held: [6, 3], paused: [2, 3], "set aside": [8, 3, 2, 3], stopped: [4, 2], finished: [], failed: [1, 2] };

// The phases of which a trial took over the weights: it begins with the next one.
function phasesTaken(trial) {
  return /^-*/.exec(trial?.pips ?? "")[0].length;
}

// A curve's places along the axis chosen; NaN where it cannot be placed. A phase under way is as long as the one before.
function along(curve, axis, taken = 0) {
  if (axis === "seconds") return curve.x;
  if (axis === "frames") return curve.frames;
  const trained = curve.x.map((x, k) => x - curve.from[k]); // in the phase
  const lengths = trained.filter((_, k) => curve.end[k]);
  let [phase, length] = [0, lengths[0] ?? trained[trained.length - 1] ?? 1];
  return trained.map((soFar, k) => {
    length = lengths[phase] ?? Math.max(length, soFar * 1.01);
    const at = taken + phase + (length > 0 ? soFar / length : 1);
    if (curve.end[k]) phase += 1;
    return at;
  });
}

// An exponential mean of what was reported; ends of phases stay as they are.
function smoothed(curve, weight) {
  if (!weight) return curve.y;
  let mean = null;
  return curve.y.map((y, k) => {
    mean = mean === null || Number.isNaN(mean) ? y : weight * mean + (1 - weight) * y;
    return curve.end[k] ? y : mean;
  });
}

function quantile(sorted, share) {
  const at = (sorted.length - 1) * share;
  const below = Math.floor(at);
  return sorted[below] + (at - below) * ((sorted[below + 1] ?? sorted[below]) - sorted[below]);
}

// The scores of the curves shown at the end of every phase: phase, place, 10 %, median, 90 %, trials.
function phaseBands(curves) {
  const phases = [];
  for (const { xs, curve, taken = 0 } of curves) {
    let phase = taken;
    curve.end.forEach((ends, k) => {
      if (!ends) return;
      const ended = (phases[phase++] ??= { x: [], y: [] });
      if (Number.isNaN(curve.y[k])) return;
      ended.x.push(xs[k]);
      ended.y.push(curve.y[k]);
    });
  }
  return phases.filter((p) => p?.y.length > 1).map(({ x, y }) => {
    y.sort((a, b) => a - b);
    x.sort((a, b) => a - b);
    return { x: quantile(x, 0.5), low: quantile(y, 0.1), middle: quantile(y, 0.5), high: quantile(y, 0.9), n: y.length };
  });
}

function drawCurves(canvas, { store, own, colors, look }) {
  const { pen, width, height } = ready(canvas, FIGURE);
  const asked = [...store.curves]
    .filter(([trial, curve]) => own.visible(trial) && curve.x.length)
    .map(([trial, curve]) => ({ trial, curve, taken: phasesTaken(store.trials.get(trial)), ys: smoothed(curve, look.smooth) }))
    .map((one) => ({ ...one, xs: along(one.curve, look.axis, one.taken) }));
  if (!asked.length) return none(pen, width, height, colors, store.curves.size ? "the filter leaves no curve" : "no score has been reported yet");
  const curves = asked.filter(({ xs, ys }) => xs.some((x, k) => Number.isFinite(x) && !Number.isNaN(ys[k])));
  if (!curves.length) return none(pen, width, height, colors, `no ${AXES[look.axis]} were reported with the scores`);
  let [longest, low, high] = [0, Infinity, -Infinity];
  for (const { xs, ys } of curves) {
    for (let k = 0; k < xs.length; k++) {
      if (!Number.isFinite(xs[k]) || Number.isNaN(ys[k])) continue; // in older logs a score may be none
      longest = Math.max(longest, xs[k]);
      low = Math.min(low, ys[k]);
      high = Math.max(high, ys[k]);
    }
  }
  const unit = look.axis === "seconds" ? clock(longest) : { unit: "", seconds: 1 };
  const log = look.logY && low > 0;
  const without = asked.length - curves.length;
  const title = AXES[look.axis] + (unit.unit && ` [${unit.unit}]`) + (without ? ` (${without} of ${asked.length} curves report none)` : "");
  const x = { low: 0, high: longest / unit.seconds || 1, title, whole: look.axis === "phases" };
  const y = log ? { low: low / 1.1, high: high * 1.1, log, ticks: logTicks(low, high), title: "score (log)" } : { ...span([low, high]), title: look.logY ? "score (not all above 0: linear)" : "score" };
  const { px, py } = axes(pen, boxOf(width, height), x, y, colors);
  const at = (value) => px(value / unit.seconds);
  const faint = look.bands ? 0.25 : own.selected.size ? 0.4 : 0.85;
  curves.sort((a, b) => own.selected.has(a.trial) - own.selected.has(b.trial)); // the selected ones on top
  const many = curves.length > 400; // then neither dashes nor marks can be told apart
  for (const { trial, curve, xs, ys } of curves) {
    const { color, dash } = looksOf(store, store.trials.get(trial));
    const mine = own.selected.has(trial);
    const path = () => {
      pen.beginPath();
      let drawn = -Infinity; // pixels
      for (let k = 0; k < xs.length; k++) {
        const x = at(xs[k]);
        if (!Number.isFinite(x) || Number.isNaN(ys[k]) || (many && !mine && x < drawn + 4 && !curve.end[k])) continue;
        if (drawn > -Infinity) pen.lineTo(x, py(ys[k]));
        else pen.moveTo(x, py(ys[k]));
        drawn = x;
      }
      pen.stroke();
    };
    if (mine) halo(pen, colors, path);
    pen.setLineDash(many ? [] : dash);
    pen.strokeStyle = pen.fillStyle = color ?? colors.soft;
    pen.globalAlpha = mine ? 1 : faint;
    pen.lineWidth = mine ? 2 : 1;
    path();
    pen.setLineDash([]);
    if (xs.length === 1) dot(pen, { x: at(xs[0]), y: py(ys[0]) }, 2, pen.fillStyle); // a line of one point
    for (let k = 0; k < xs.length && !many; k++) if (curve.end[k] && !Number.isNaN(ys[k])) pen.fillRect(at(xs[k]) - 1.5, py(ys[k]) - 1.5, 3, 3);
  }
  pen.globalAlpha = 1;
  if (look.bands) {
    const searched = curves.filter(({ trial }) => searches(store.trials.get(trial)));
    const groups = store.now.studies?.map(({ color }, k) => [searched.filter(({ trial }) => store.trials.get(trial)?.study === k), color]);
    for (const [of, color] of groups ?? [[searched, colors.ink]]) drawBands(pen, phaseBands(of), at, py, color);
  }
  const hit = (mx, my) => {
    const found = nearestPoint(curves, at, py, mx, my);
    if (!found) return null;
    const { trial, k, curve, ys } = found;
    const whose = curve.end[k] ? "score of a phase" : look.smooth ? "smoothed score so far" : "score so far in its phase";
    return { trial, words: [`${whose}: ${short(ys[k])}`, `after ${duration(curve.x[k])}${Number.isFinite(curve.frames[k]) ? `, ${short(curve.frames[k])} frames` : ""}`, ...whatItIs(store.trials.get(trial))] };
  };
  // Every curve with a point in the rectangle.
  hit.brush = (x0, y0, x1, y1) => {
    const inside = curves.filter(({ xs, ys }) => xs.some((x, k) => at(x) >= x0 && at(x) <= x1 && py(ys[k]) >= y0 && py(ys[k]) <= y1));
    return brushed(inside);
  };
  return hit;
}

// What a rectangle over trials writes into the filter: of none, nothing.
function brushed(inside) {
  return ["trial:", inside.length ? `trial:${listed(inside.map(({ trial }) => trial))}` : ""];
}

function drawBands(pen, bands, at, py, color) {
  if (bands.length < 1) return;
  pen.fillStyle = pen.strokeStyle = color;
  pen.globalAlpha = 0.16;
  pen.beginPath();
  bands.forEach(({ x, high }) => pen.lineTo(at(x), py(high)));
  [...bands].reverse().forEach(({ x, low }) => pen.lineTo(at(x), py(low)));
  pen.fill();
  pen.globalAlpha = 1;
  pen.lineWidth = 2;
  pen.beginPath();
  bands.forEach(({ x, middle }) => pen.lineTo(at(x), py(middle)));
  pen.stroke();
}

function nearestPoint(curves, at, py, mx, my) {
  let [found, nearest] = [null, 144]; // pixels squared
  for (const one of curves) {
    for (let k = 0; k < one.xs.length; k++) {
      const distance = (at(one.xs[k]) - mx) ** 2 + (py(one.ys[k]) - my) ** 2;
      if (distance < nearest) [found, nearest] = [{ ...one, k }, distance];
    }
  }
  return found;
}

// A trial in words: its state, why the last verdict on it fell, its configuration.
function whatItIs(trial) {
  if (!trial) return [];
  const config = Object.entries(trial.config).map(([name, value]) => `${name} = ${written(value)}`);
  return [`${trial.state}${trial.why ? `: ${trial.why}` : ""}`, ...config];
}

function drawScores(canvas, { store, own, colors, look }) {
  const { pen, width, height } = ready(canvas, TAB);
  const name = look.against;
  const ended = own.order.filter((t) => t.last !== null && searches(t));
  const scored = ended.filter((t) => name in t.config);
  if (!scored.length) return none(pen, width, height, colors, ended.length ? `${name} applies to no visible trial` : "no phase of a visible trial has ended yet");
  const values = scored.map((t) => t.config[name]);
  const kind = kindOf(values);
  const x = { title: name, bare: true, ...axisOf(kind) };
  const box = boxOf(width, height);
  if (kind.words) x.labels = x.labels.map((label) => fitting(pen, label, box.width / kind.order.length - 8));
  const place = (value) => (kind.named ? kind.order.indexOf(value) : value);
  const { px, py } = axes(pen, box, x, { ...span(scored.map((t) => t.last)), title: "last score" }, colors);
  const marks = scored.map((t) => {
    const mark = { x: px(place(t.config[name])), y: py(t.last), trial: t.trial, score: t.last, value: t.config[name] };
    const draw = (size) => (t.state === "stopped" || t.state === "failed" ? cross(pen, mark, size, pen.strokeStyle) : dot(pen, mark, size, pen.strokeStyle));
    pen.globalAlpha = own.selected.size && !own.selected.has(t.trial) ? 0.5 : 1;
    if (own.selected.has(t.trial)) ring(pen, mark, 7, colors);
    pen.strokeStyle = store.meta.states[t.state] ?? colors.soft;
    draw(3.5);
    return mark;
  });
  pen.globalAlpha = 1;
  const hit = (mx, my) => {
    const mark = nearestOf(marks, mx, my);
    return mark && { trial: mark.trial, words: [`last score ${short(mark.score)}`, `${name} = ${written(mark.value)}`] };
  };
  hit.brush = (x0, y0, x1, y1) => {
    const inside = marks.filter((m) => m.x >= x0 && m.x <= x1 && m.y >= y0 && m.y <= y1);
    return brushed(inside);
  };
  return hit;
}

// Every trial of the search as a line through its hyperparameters to its last score; a stretch of an axis is brushed upright.
function drawParallel(canvas, { store, own, colors }) {
  const { pen, width, height } = ready(canvas, TAB);
  const scored = own.order.filter((t) => t.last !== null && searches(t));
  if (!scored.length) return none(pen, width, height, colors, "no phase of a visible trial has ended yet");
  const varied = store.meta.hyperparameters.filter((name) => new Set(scored.map((t) => t.config[name])).size > 1);
  const kind = (of) => kindOf(scored.map(of).filter((v) => (v ?? null) !== null));
  const axis = (name, of, end, scale) => ({ name, of: (t) => of(t) ?? null, end, scale: rangeOf(scale) });
  const ofHyperparameter = (name, of = (t) => t.config[name]) => axis(name, of, written, kind(of));
  const last = (t) => t.last; // of scores it is looked at how far apart they are
  const drawn = [...varied.map((name) => ofHyperparameter(name)), axis("score", last, short, { ...kind(last), named: false })];
  const box = { left: 40, top: 32, width: width - 80, height: height - 48 };
  const px = (k) => box.left + (drawn.length > 1 ? (k * box.width) / (drawn.length - 1) : box.width / 2);
  const py = ({ of, scale }, t) => (of(t) === null ? NaN : box.top + box.height * (1 - scale.share(of(t)))); // what does not apply is no place
  pen.lineWidth = 1;
  const lines = scored.map((t) => {
    const ys = drawn.map((one) => py(one, t));
    return { trial: t.trial, t, ys, places: ys.map((y, k) => ({ k, x: px(k), y })).filter(({ y }) => !Number.isNaN(y)) };
  });
  lines.sort((a, b) => own.selected.has(a.trial) - own.selected.has(b.trial));
  for (const { trial, t, ys, places } of lines) {
    // From axis to neighbouring axis, or `over` those of what does not apply: the score is reached by every line.
    const path = (over) => {
      pen.beginPath();
      places.forEach(({ k, x, y }, j) => (j && k - places[j - 1].k > 1 === over ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.stroke();
    };
    const mine = own.selected.has(trial);
    if (mine) halo(pen, colors, () => path(false));
    const { color, dash } = looksOf(store, t);
    pen.strokeStyle = color ?? colors.soft;
    pen.setLineDash(store.now.studies ? dash : []);
    pen.globalAlpha = mine ? 1 : own.selected.size ? 0.3 : 0.75;
    pen.lineWidth = mine ? 2 : 1;
    path(false);
    if (places.length < ys.length) {
      pen.setLineDash([2, 4]);
      path(true);
    }
    if (places.length === 1) dot(pen, places[0], 2, pen.strokeStyle); // of all that is seen only the score differs
  }
  pen.setLineDash([]);
  pen.globalAlpha = 1;
  pen.fillStyle = pen.strokeStyle = colors.ink;
  // Words over or under an axis; at the ends they begin, or end, where the canvas does. Numbers are never cut.
  const apart = drawn.length > 1 ? px(1) - px(0) : width;
  const write = (words, k, y, number) => {
    const outermost = k === 0 || k === drawn.length - 1;
    const shown = number ? words : fitting(pen, words, (outermost ? Math.min(apart, apart / 2 + box.left) : apart) - 6);
    const half = pen.measureText(shown).width / 2 + 2;
    pen.fillText(shown, Math.max(half, Math.min(width - half, px(k))), y);
  };
  pen.textAlign = "center";
  drawn.forEach(({ name, end, scale }, k) => {
    rule(pen, px(k), box.top, px(k), box.top + box.height);
    pen.textBaseline = "bottom";
    write(name, k, box.top - 13);
    write(end(scale.high), k, box.top, !scale.words);
    pen.textBaseline = "top";
    write(end(scale.low), k, box.top + box.height + 1, !scale.words);
  });
  const axisAt = (mx) => drawn.reduce((best, _, k) => (Math.abs(px(k) - mx) < Math.abs(px(best) - mx) ? k : best), 0);
  const hit = (mx, my) => {
    const found = nearestOf(lines.map((line) => ({ ...passing(line.places, mx), ...line })), mx, my);
    return found && { trial: found.trial, words: [`last score ${short(found.t.last)}`, ...whatItIs(found.t)] };
  };
  hit.brush = (x0, y0, x1, y1) => {
    const k = axisAt((x0 + x1) / 2);
    const { name, scale } = drawn[k];
    const asked = k === drawn.length - 1 || canBeAsked(name);
    if (!scale.end || !asked) return brushed(lines.filter(({ ys }) => ys[k] >= y0 && ys[k] <= y1));
    const share = (y) => 1 - (y - box.top) / box.height;
    return [`${name}:`, `${name}:${scale.end(share(y1), Math.floor)}..${scale.end(share(y0), Math.ceil)}`];
  };
  return hit;
}

// Where a line passes an upright, or the end of it that is nearest.
function passing(places, x) {
  const next = places.findIndex((place) => place.x >= x);
  if (next < 1) return places.at(next);
  const [from, to] = [places[next - 1], places[next]];
  return { x, y: from.y + ((x - from.x) / (to.x - from.x)) * (to.y - from.y) };
}

// Which axis values ask for, as workbench.viz.figures.scales: log over a factor of 20, and `named`, by their order, where they
// are words or a few unevenly set numbers.
function kindOf(values) {
  const words = values.some((v) => typeof v !== "number");
  const order = [...new Set(values)].sort((a, b) => (words ? String(a).localeCompare(String(b)) : a - b));
  const [low, high] = [order[0], order[order.length - 1]];
  const log = !words && low > 0 && high / low > 20;
  const few = !log && order.length > 2 && order.length <= 10 && values.length > order.length;
  const gaps = few ? order.slice(1).map((value, k) => value - order[k]) : [1];
  return { order, low, high, words, log, named: words || Math.max(...gaps) / Math.min(...gaps) > order.length };
}

// Where values of a kind lie along an axis, 0 to 1. Of numbers by their size `end` gives the end of a brush, rounded outward by
// less than a pixel: whatever lies under the brush passes its filter.
function rangeOf({ order, low, high, words, log, named }) {
  if (named) return { low, high, words, share: (v) => order.indexOf(v) / Math.max(1, order.length - 1) };
  const [to, back] = log ? [Math.log10, (v) => 10 ** v] : [(v) => v, (v) => v];
  const length = to(high) - to(low) || 1;
  const end = (share, outward) => {
    const value = back(to(low) + share * length);
    return rounded(value, log ? value : length, outward);
  };
  return { low, high, words, share: (v) => (to(v) - to(low)) / length, end };
}

// A number rounded up or down to a thousandth of a size, in the decimals that it then has.
function rounded(value, size, outward) {
  const places = 3 - Math.floor(Math.log10(size));
  const unit = 10 ** Math.abs(places);
  if (places <= 0) return outward(value / unit) * unit;
  return Number((outward(value * unit) / unit).toFixed(Math.min(100, places)));
}

const MOST_DECADES = 9; // that have a mark each: of more only some

// Marks of a logarithmic axis: by decades, of fewer than two and a bit also between them, at least at its ends.
function logTicks(low, high) {
  const ticks = [];
  const factors = high / low < 200 ? [1, 2, 5] : [1];
  const every = Math.ceil((Math.log10(high) - Math.log10(low)) / MOST_DECADES);
  for (let k = Math.floor(Math.log10(low)); k <= Math.log10(high); k++) {
    if (every < 2 || k % every === 0) ticks.push(...factors.map((factor) => Number((factor * 10 ** k).toPrecision(1))));
  }
  const inside = ticks.filter((tick) => tick >= low / 1.1 && tick <= high * 1.1);
  return inside.length > 1 ? inside : [...new Set([low, high])];
}

// An axis for values of a kind, with its marks.
function axisOf({ order, low, high, log, named }) {
  if (log) return { low: low / 1.3, high: high * 1.3, log, ticks: logTicks(low, high) };
  if (named) return { low: -0.5, high: order.length - 0.5, ticks: order.map((_, k) => k), labels: order.map(String) };
  return span(order);
}
