// The views: what is under the pointer, and the choices behind what is drawn.

import assert from "node:assert/strict";
import { test } from "node:test";

import { META, NOTHING, front, makeCanvas, makeModel, message, table, trial } from "./front.mjs";

const COLORS = { ink: "#000", soft: "#666", line: "#ccc", ground: "#fff", neutral: "#444", phases: ["#111", "#222"] };
const LOOK = { axis: "seconds", smooth: 0, logY: false, bands: false, expanded: true, rate: "frames_per_s", against: "lr" };

// What a view is given: the store, what is visible and selected, colours and looks.
function scene(store, { filter = "", selected = [], ...look } = {}) {
  const model = makeModel();
  Object.assign(model.state, { filter, selected });
  const own = front.makeSelection(model, store);
  own.update();
  return { store, own, colors: COLORS, look: { ...LOOK, ...look } };
}

globalThis.window = { devicePixelRatio: 1 };

function storeOf(more, [spans, points] = NOTHING) {
  const model = makeModel();
  const store = front.makeStore(model);
  model.tell(message("snapshot", 1, more), [spans, points]);
  store.close();
  return store;
}

// Everything a view answers over its whole canvas: words by trial.
function found(hit, width = 640, height = 300) {
  const told = new Map();
  for (let x = 0; x < width; x += 2) {
    for (let y = 0; y < height; y += 2) {
      const under = hit(x, y);
      if (under) told.set(under.trial, under.words);
    }
  }
  return told;
}

test("slots of a node stand together, nodes in the order of their slots", () => {
  const { rows, height } = front.slotRows([[2, "b"], [0, "a"], [3, "b"], [1, "c"]]);
  assert.deepEqual(rows.map((row) => [row.slot, row.label, row.y]), [[0, "a", 0], [1, "c", 1], [2, "b · 2", 2.5], [3, "b · 3", 3.5]]);
  assert.equal(height, 4.5);
});

test("an empty study says so in every view", () => {
  const views = [front.drawGantt, front.drawSurvival, front.drawCurves, front.drawBest, front.drawScores, front.drawRates, front.drawOccupancy, front.drawParallel];
  for (const view of views) {
    const { canvas, words } = makeCanvas();
    const hit = view(canvas, scene(storeOf({})));
    assert.equal(hit(100, 100), null);
    assert.match(words().join(), /no slot|no phase|no score|not reported/, view.name);
  }
});

test("a bar of the Gantt chart is found under the pointer, waste is hatched", () => {
  const spans = table([0, 0, 7, 0, 0, 4, 0], [1, 0, 8, 1, 5, NaN, 0], [2, 1, 9, 0, 2, 6, 2]);
  const store = storeOf({ slots: [[0, "a", 0, null], [1, "b", 0, null]] }, [spans, table()]);
  const { canvas, calls } = makeCanvas();
  const told = found(front.drawGantt(canvas, scene(store)));
  assert.deepEqual([...told.keys()].sort(), [7, 8, 9]);
  assert.deepEqual(told.get(7), ["phase 0 on slot 0: done", "0:00–0:04 (0:04)"]);
  assert.deepEqual(told.get(8), ["phase 1 on slot 0: done", "0:05–0:10 (0:05)"]); // still running: until now
  assert.equal(calls.filter(([name]) => name === "clip").length, 1);
});

// Where the words stand that a view has written at the same height: from and to, from left to right.
function placed(calls, written) {
  const found = calls.filter(([name, words]) => name === "fillText" && written(words)).map(([, words, x]) => [x - 3 * words.length, x + 3 * words.length]);
  return found.sort((a, b) => a[0] - b[0]);
}

function apart(places, gap = 0) {
  return places.every(([from], k) => k === 0 || from >= places[k - 1][1] + gap);
}

test("names of axes stand beside each other, and within the canvas", () => {
  const names = ["initial_learning_rate", "b".repeat(80), "c".repeat(80), "score_of_d"];
  const trials = [0, 1].map((n) => trial(n, { last: n, config: Object.fromEntries(names.map((name) => [name, n + 1])) }));
  const { canvas, calls } = makeCanvas();
  const store = storeOf({ trials, meta: { ...structuredClone(META), hyperparameters: names } });
  front.drawParallel(canvas, scene(store));
  const places = placed(calls, (words) => /[a-z]/.test(words));
  assert.equal(places.length, 5);
  assert.ok(apart(places) && places[0][0] >= 0 && places[4][1] <= 640, JSON.stringify(places));
});

test("words that begin alike are told apart where there is little room", () => {
  const nets = ["convolutional_network_small", "convolutional_network_large", "dense"];
  const trials = nets.map((net, n) => trial(n, { last: n, config: { net } }));
  const { canvas, calls, words } = makeCanvas(400);
  front.drawScores(canvas, scene(storeOf({ trials, meta: { ...structuredClone(META), hyperparameters: ["net"] } }), { against: "net" }));
  const shown = words().filter((word) => word.startsWith("conv"));
  assert.equal(new Set(shown).size, 2);
  assert.ok(apart(placed(calls, (word) => shown.includes(word) || word === "dense")));
});

test("phases have as many numbers as there is room for", () => {
  const fates = { continued: 1, finished: 0, stopped: 0, failed: 0, running: 0 };
  const survival = Array.from({ length: 200 }, (_, phase) => ({ phase, began: 1, mode: null, reported: null, collecting_reports: null, ...fates }));
  const { canvas, calls } = makeCanvas(300);
  front.drawSurvival(canvas, scene(storeOf({ survival })));
  const bottom = Math.max(...calls.filter(([name, words]) => name === "fillText" && /^\d+$/.test(words)).map(([, , , y]) => y));
  assert.ok(apart(placed(calls.filter(([, , , y]) => y === bottom), () => true), 6));
});

test("a bar stands on the node where its slot was then", () => {
  const spans = table([0, 0, 7, 0, 0.1, 4, 0], [1, 0, 8, 0, 5.1, 9, 0], [2, 1, 9, 0, 5.1, 9, 0]);
  const slots = [[0, "a", 0.1, 5], [1, "b", 0.1, 5], [0, "b", 5.1, null], [1, "a", 5.1, null]]; // resumed, they came in another order
  const hit = front.drawGantt(makeCanvas().canvas, scene(storeOf({ slots }, [spans, table()])));
  const at = new Map();
  for (let x = 0; x < 640; x += 2) for (let y = 0; y < 300; y++) if (hit(x, y)) at.set(hit(x, y).trial, Math.min(y, at.get(hit(x, y).trial) ?? y));
  const order = [...at].sort((a, b) => a[1] - b[1]).map(([trial]) => trial);
  assert.deepEqual(order, [7, 9, 8]); // a · 0, a · 1, b · 0
  assert.ok(new Set(at.values()).size === 3);
});

test("a picture of many slots has those that are out of sight, too", () => {
  const n = 60;
  const spans = table(...Array.from({ length: n }, (_, k) => [k, k, k, 0, 0, 10, 0]));
  const store = storeOf({ slots: Array.from({ length: n }, (_, k) => [k, `n${k}`, 0, null]) }, [spans, table()]);
  const bars = (calls) => calls.filter(([name, , , wide, tall]) => name === "fillRect" && wide > 100 && tall === 19).length / 2; // each on its slot's life
  const { canvas, calls } = makeCanvas();
  Object.assign(canvas, { isConnected: true, parentElement: { clientWidth: 640, scrollTop: 0, clientHeight: 150 } });
  const seen = scene(store);
  front.drawGantt(canvas, seen);
  assert.ok(bars(calls) < n / 2);
  const sheet = makeCanvas();
  sheet.canvas.parentElement = null;
  globalThis.document = { createElement: () => sheet.canvas };
  try {
    assert.equal(front.sheetOf(canvas, front.drawGantt, seen), sheet.canvas);
  } finally {
    delete globalThis.document;
  }
  assert.equal(bars(sheet.calls), n);
  assert.equal(sheet.canvas.getContext("2d").globalCompositeOperation, "destination-over"); // then the ground, under all
});

test("no phase is darker than an earlier one, also beyond those that were meant", () => {
  const spans = table(...[0, 1, 2].map((phase) => [phase, 0, 7, phase, 4 * phase, 4 * phase + 4, 0]));
  const store = storeOf({ slots: [[0, "a", 0, null]], at_s: 12 }, [spans, table()]);
  const { canvas } = makeCanvas();
  const [pen, fills] = [canvas.getContext("2d"), []];
  pen.fillRect = () => fills.push(pen.fillStyle);
  front.drawGantt(canvas, scene(store, { expanded: false }));
  assert.deepEqual(fills.slice(1), ["#111", "#222", "#222"]); // after the slot's own bar
});

test("of more slots than have room rows are drawn above the axis, which stands at the lower edge of what is seen", () => {
  const slots = Array.from({ length: 100 }, (_, slot) => [slot, `node-${slot}`, 0, null]);
  const store = storeOf({ slots });
  const drawn = (place) => {
    const { canvas, calls } = makeCanvas();
    Object.assign(canvas, { isConnected: Boolean(place), parentElement: { ...canvas.parentElement, ...place } });
    front.drawGantt(canvas, scene(store));
    const title = calls.find(([name, words]) => name === "fillText" && words.startsWith("time since"));
    const rows = calls.filter(([name]) => name === "fillRect").map(([, , y]) => y);
    return [title[3], rows.length, Math.max(...rows) < title[3] - 17];
  };
  assert.deepEqual(drawn({ clientHeight: 400, scrollTop: 600 }), [600 + 400 - 34 + 17, 22, true]);
  assert.deepEqual(drawn(null), [8 + 100 * 20 + 17, 100, true]); // a file
});

test("slots in use: what was held lies on what ran, not beneath it, and idles are neither", () => {
  const spans = table([0, 0, 7, 0, 0, 10, 0], [1, 0, 8, 0, 0, 10, 1]);
  const slots = [0, 1, 2].map((slot) => [slot, "a", 0, null]);
  const { canvas, calls } = makeCanvas();
  const hit = front.drawOccupancy(canvas, scene(storeOf({ slots }, [spans, table()])));
  const bands = [];
  for (const [name, , y] of calls) {
    if (name === "beginPath") bands.push([]);
    if (name === "lineTo") bands.at(-1).push(y);
  }
  const [alive, ran, held] = bands.slice(-3).map((ys) => [Math.min(...ys), Math.max(...ys)].map(Math.round));
  const [bottom, slot] = [alive[1], (alive[1] - alive[0]) / 3];
  assert.deepEqual([ran, held].flat(), [bottom - slot, bottom, bottom - 2 * slot, bottom - slot].map(Math.round));
  assert.deepEqual(hit(300).words.slice(1), ["1 of 3 slots ran", "1 held"]);
});

test("HyperTrick's modes have the paper's names", () => {
  const phase = { mode: "collecting", reported: 3, collecting_reports: 7.5 };
  assert.deepEqual([front.modeOf(phase, true), front.modeOf(phase, false)], ["DCM 3/7.5", "DCM"]);
  assert.deepEqual(["selecting", "finished", "barrier"].map((mode) => front.modeOf({ ...phase, mode }, true)), ["WSM", "last", "barrier"]);
  assert.equal(front.modeOf({ mode: "selecting" }, true), "selecting"); // another scheduler's word
  const next = (more) => front.nextIn({ ...phase, ...more });
  assert.deepEqual(next({}), ["collecting (DCM): 3 of 7.5 reports"]);
  assert.deepEqual(next({ mode: "selecting" }), ["selecting (WSM): the next report is ranked among 3"]);
  assert.deepEqual(next({ mode: "finished" }), []);
  const median = { mode: "collecting", collecting_reports: null }; // as Python's None comes
  assert.equal(front.modeOf({ ...phase, ...median }, true), "collecting");
  for (const mode of ["collecting", "selecting", "promoted"]) assert.deepEqual(next({ ...median, mode }), []);
});

test("survival tells fates, what was expected and the selected trial", () => {
  const fates = { continued: 1, waiting: 1, finished: 0, stopped: 1, failed: 0, running: 1 };
  const phases = [{ phase: 0, began: 4, mode: "collecting", reported: 3, collecting_reports: 4, ...fates }];
  const store = storeOf({ survival: phases }, [table([0, 0, 7, 0, 0, 4, 0]), table()]);
  const words = front.drawSurvival(makeCanvas().canvas, scene(store, { selected: [7] }))(300, 100).words;
  assert.deepEqual(words, [
    "phase 0: 4 began", "1 went on", "1 waiting", "1 stopped", "1 running", "4 expected", "2 at least", "collecting (DCM): 3 of 4 reports", "a selected trial is among them",
  ]);
});

test("the nearest point of a curve is found, with what its trial is", () => {
  const points = table([5, 0, 0, 0, NaN, 0], [5, 60, 10, 1, NaN, 0], [6, 60, -10, 1, NaN, 0]);
  const trials = [trial(5, { state: "stopped", why: "rank 3", config: { lr: 0.25, optimizer: "adam" } }), trial(6)];
  const told = found(front.drawCurves(makeCanvas().canvas, scene(storeOf({ trials }, [table(), points]), { selected: [5] })));
  assert.deepEqual([...told.keys()].sort(), [5, 6]);
  assert.deepEqual(told.get(5), ["score of a phase: 10", "after 1:00", "stopped: rank 3", "lr = 0.25", "optimizer = adam"]);
});

test("a score that is no number takes no axis from the others", () => {
  const points = table([5, 60, NaN, 1, NaN, 0], [6, 60, -10, 1, NaN, 0], [6, 90, 10, 1, NaN, 0], [7, 60, 0, 1, NaN, 0]);
  const store = storeOf({ trials: [trial(5), trial(6), trial(7)] }, [table(), points]);
  const { canvas, words } = makeCanvas();
  const told = found(front.drawCurves(canvas, scene(store, { bands: true, smooth: 0.6 })));
  assert.deepEqual([...told.keys()].sort(), [6, 7]);
  assert.ok(words().includes("-10") && words().includes("10"));
  assert.deepEqual(front.phaseBands([...store.curves.values()].map((curve) => ({ xs: curve.x, curve }))).map(({ n }) => n), [2]);
});

test("a file of curves goes on behind a score that is no number", () => {
  const points = table([5, 0, NaN, 0, NaN, 0], [5, 30, 1, 0, NaN, 0], [5, 60, NaN, 1, NaN, 0], [5, 90, 2, 1, NaN, 0]);
  const seen = scene(storeOf({ trials: [trial(5)] }, [table(), points]), { selected: [5] });
  globalThis.document = { createElement: () => ({ getContext: () => ({ measureText: (words) => ({ width: 6 * words.length }) }) }) };
  try {
    const file = front.svgOf(makeCanvas().canvas, front.drawCurves, seen);
    assert.ok(file.includes("<path") && !file.includes("NaN"));
  } finally {
    delete globalThis.document;
  }
});

test("a curve in the table goes on behind a score that is no number", () => {
  const store = storeOf({ trials: [trial(5)] }, [table(), table([5, 0, 1, 0, NaN, 0], [5, 30, NaN, 1, NaN, 0], [5, 60, 2, 1, NaN, 0])]);
  const told = [];
  globalThis.document = { createElementNS: () => ({ setAttribute: (...given) => told.push(given), append() {} }) };
  try {
    front.sparkline({ dataset: {}, replaceChildren() {}, append() {} }, store, store.trials.get(5));
  } finally {
    delete globalThis.document;
  }
  assert.match(told.find(([name]) => name === "points")[1], /^[\d.]+,[\d.]+ [\d.]+,[\d.]+$/);
});

test("a curve of one point is a dot", () => {
  const { canvas, calls } = makeCanvas();
  front.drawCurves(canvas, scene(storeOf({ trials: [trial(5)] }, [table(), table([5, 60, 10, 0, NaN, 0])])));
  assert.equal(calls.filter(([name]) => name === "arc").length, 1);
});

test("words that are too long for a view go on in the next line", () => {
  const { canvas, words } = makeCanvas(200);
  front.drawImportance(canvas, scene(storeOf({})), true, { rows: [], told: "no forest predicts unseen trials better than their mean does" });
  assert.ok(words().length > 1);
  assert.ok(words().every((line) => 6 * line.length <= 176));
  assert.equal(words().join(" "), "no forest predicts unseen trials better than their mean does");
});

test("the best score is a staircase of marks", () => {
  const store = storeOf({ best: [[1, -2, 3, 0], [9, 5, 4, 1]] });
  const told = found(front.drawBest(makeCanvas().canvas, scene(store)));
  assert.deepEqual([...told], [[3, ["score -2 after phase 0", "at 0:01"]], [4, ["score 5 after phase 1", "at 0:09"]]]);
});

test("an axis is logarithmic over a factor of 20, and has categories for words", () => {
  const axis = (...values) => front.axisOf(front.kindOf(values));
  assert.deepEqual(axis(0.001, 1).ticks, [0.001, 0.01, 0.1, 1]);
  assert.deepEqual(axis(0.001, 0.05).ticks, [0.001, 0.002, 0.005, 0.01, 0.02, 0.05]);
  assert.deepEqual(front.logTicks(1e-9, 1e12), [1e-9, 1e-6, 1e-3, 1, 1e3, 1e6, 1e9, 1e12]);
  assert.deepEqual(front.logTicks(1e-200, 1e200), [1e-180, 1e-135, 1e-90, 1e-45, 1, 1e45, 1e90, 1e135, 1e180]);
  assert.deepEqual(axis("rmsprop", "adam", "adam").labels, ["adam", "rmsprop"]);
  assert.deepEqual(axis(0.9, 0.999, 0.95, 0.99, 0.9).labels, ["0.9", "0.95", "0.99", "0.999"]); // unevenly set
  assert.deepEqual(axis(0, 10), { low: -0.5, high: 10.5 });
});

test("a few unevenly set numbers stand apart among the hyperparameters, and scores where they lie", () => {
  const gammas = [0.9, 0.99, 0.999, 0.9999, 0.9];
  const trials = gammas.map((lr, k) => trial(k, { phases: 1, last: gammas[k], config: { lr } }));
  const { canvas, calls } = makeCanvas();
  front.drawParallel(canvas, scene(storeOf({ trials })));
  const ends = (what) => calls.filter(([name]) => name === what).map(([, , y]) => y).slice(0, 4);
  const [lr, score] = [ends("moveTo"), ends("lineTo")];
  const apart = ([highest, next, , lowest]) => Math.round((1000 * (next - highest)) / (lowest - highest)) / 1000;
  assert.deepEqual([apart(lr), apart(score)], [0.333, 0.009]);
});

test("scores against a hyperparameter: its value and phase, those cut off crossed out", () => {
  const trials = [trial(5, { state: "stopped", phases: 1, last: 2 }), trial(6, { phases: 1, last: 3, config: { lr: 0.2 } })];
  const { canvas, calls } = makeCanvas();
  const told = found(front.drawScores(canvas, scene(storeOf({ trials }))));
  assert.deepEqual(told.get(5), ["last score 2", "lr = 0.1"]);
  assert.deepEqual(told.get(6), ["last score 3", "lr = 0.2"]);
  assert.equal(calls.filter(([name]) => name === "arc").length, 1);
});

test("a hyperparameter that applies to no visible trial is said to, and no phase to be missing", () => {
  const store = storeOf({ trials: [trial(5, { phases: 1, last: 2 }), trial(6, { phases: 1, last: 3, config: { momentum: 0.9 } })] });
  const { canvas, words } = makeCanvas();
  front.drawScores(canvas, scene(store, { filter: "trial:5", against: "momentum" }));
  assert.deepEqual(words(), ["momentum applies to no visible trial"]);
});

test("trials that confirm others are no points, lines or bands of a search", () => {
  const trials = [trial(5, { phases: 1, last: 2 }), trial(6, { phases: 1, last: 3, confirms: true, candidate: 5 })];
  const store = storeOf({ trials }, [table(), table([5, 60, 2, 1, NaN, 0], [6, 60, 3, 1, NaN, 0])]);
  for (const view of [front.drawScores, front.drawParallel]) assert.deepEqual([...found(view(makeCanvas().canvas, scene(store))).keys()], [5]);
  const drawn = (bands) => {
    const { canvas, calls } = makeCanvas();
    assert.ok(found(front.drawCurves(canvas, scene(store, { bands }))).has(6));
    return calls;
  };
  assert.deepEqual(drawn(true), drawn(false)); // one trial has no middle
});

test("whole hyperparameters are told in full, in tips, cells and at the ends of axes", () => {
  const trials = [65536, 65540].map((lr, k) => trial(k, { phases: 1, last: k, config: { lr } }));
  const store = storeOf({ trials });
  const told = (view) => found(view(makeCanvas().canvas, scene(store)));
  assert.ok(told(front.drawScores).get(0).includes("lr = 65536"));
  assert.ok(told(front.drawParallel).get(1).includes("lr = 65540"));
  const { canvas, words } = makeCanvas();
  front.drawParallel(canvas, scene(store));
  assert.ok(["65536", "65540"].every((end) => words().includes(end)));
  const cell = { style: { setProperty() {} } };
  front.valueCell(cell, 1048576, null);
  assert.equal(cell.textContent, "1048576");
});

test("a hyperparameter's name of any length stands whole under its figure, or how it begins and ends", () => {
  for (const [letters, whole] of [[100, true], [200, false]]) {
    const name = `begin${"_".repeat(letters - 8)}end`;
    const store = storeOf({ trials: [1, 2, 3].map((k) => trial(k, { last: k, config: { [name]: k } })) });
    const { canvas, calls } = makeCanvas();
    front.drawScores(canvas, scene(store, { against: name }));
    const [, words, x] = calls.find(([call, said]) => call === "fillText" && String(said).startsWith("begin"));
    assert.equal(words === name, whole);
    assert.ok(words.endsWith("end"));
    assert.ok(x - 3 * words.length >= 0 && x + 3 * words.length <= 640, `${x} ${words.length}`);
  }
});

test("the nearest mark wins, within 12 pixels", () => {
  const marks = [{ x: 10, y: 10 }, { x: 16, y: 10 }];
  assert.equal(front.nearestOf(marks, 14, 10), marks[1]);
  assert.equal(front.nearestOf(marks, 10, 23), null);
});

test("importance: off, growing, refused, and a row a hyperparameter", () => {
  const drawn = (on, told, trials = []) => {
    const { canvas, words } = makeCanvas();
    return [front.drawImportance(canvas, scene(storeOf({ trials })), on, told), words().join("|")];
  };
  assert.match(drawn(false, null)[1], /switched off/);
  assert.match(drawn(true, null)[1], /once 20 trials/);
  const many = Array.from({ length: 20 }, (_, k) => trial(k, { last: k }));
  assert.match(drawn(true, null, many)[1], /being computed/);
  assert.match(drawn(true, { rows: [], told: "too few trials" })[1], /too few trials/);
  const row = { hyperparameter: "lr", importance: 0.8, low: 0.7, high: 0.9, permutation: 0.5, permutation_low: 0.4, permutation_high: 0.6 };
  const [hit, words] = drawn(true, { rows: [row], told: "" });
  assert.match(words, /\blr\b/);
  assert.deepEqual(hit(300, 20).words, ["lr", "importance 0.8 (95 %: 0.7 to 0.9)", "permutation 0.5 (95 %: 0.4 to 0.6)"]);
});

test("beside other studies a line has its own study's colour and dash, in every view", () => {
  const side = (name, color, dash) => ({ name, title: name, color, dash, importance: [], node_h: 1, best: [[0.5, 1, 60], [1, 2, 120]] });
  const studies = [side("one", "#00f", []), side("none yet", "#0f0", [1, 2]), side("two", "#f00", [6, 3])];
  studies[1].best = [];
  const trials = [trial(0, { study: 0, last: 1, config: { study: "b", lr: 0.1 } }), trial(200000, { study: 2, last: 2, config: { study: "a", lr: 0.2 } })];
  const points = table([0, 1, 1, 1, NaN, 0], [0, 2, 2, 1, NaN, 0], [200000, 1, 3, 1, NaN, 0], [200000, 2, 4, 1, NaN, 0]);
  const store = storeOf({ studies, trials }, [table(), points]);
  for (const view of [front.drawCost, front.drawCurves, front.drawParallel]) {
    const { canvas, calls } = makeCanvas();
    view(canvas, scene(store));
    const dashes = calls.filter(([name]) => name === "setLineDash").map(([, dash]) => dash.join());
    assert.ok(dashes.includes("6,3") && !dashes.includes("1,2"), `${view.name}: ${dashes}`);
  }
});

test("importance beside other studies: when it comes, by what it waits for", () => {
  const told = (scored, ...importance) => front.mattersMost({ trials_started: 30, phases_ended: 60, scored, importance });
  assert.equal(told(19), "from 20 trials with a score on"); // of 30 trials that began, most failed
  assert.equal(told(20), "being computed");
  assert.equal(told(20, { phase: null, rows: [], told: "too few trials" }), "too few trials");
  assert.equal(told(40, { phase: 0, rows: [], told: "" }, { phase: null, rows: [{ hyperparameter: "lr" }], told: "" }), "lr");
});

test("rates: one of several columns, where it was reported", () => {
  const store = storeOf({ rates: [true, [[1, 100, null], [5, 200, 30]]] });
  const told = found(front.drawRates(makeCanvas().canvas, scene(store, { rate: "pps" })));
  assert.deepEqual(told.get(null), ["30 predictions/s", "at 0:05"]);
});

test("rates: no line across a time in which nobody told any", () => {
  const store = storeOf({ rates: [true, [[1, null, 1], [2, 5, 1], [3, 6, 1], [4, null, 1], [5, 7, 1], [6, null, 1]]] });
  const lines = (rate) => {
    const { canvas, calls } = makeCanvas();
    front.drawRates(canvas, scene(store, { rate }));
    const path = calls.slice(calls.findLastIndex(([name]) => name === "beginPath"));
    return path.map(([name]) => name).filter((name) => name.endsWith("To")).join(" ");
  };
  assert.equal(lines("frames_per_s"), "moveTo lineTo lineTo moveTo lineTo");
  assert.equal(lines("pps"), `moveTo${" lineTo".repeat(6)}`);
});

test("a rectangle over curves, points and axes becomes the filter", () => {
  const done = { state: "stopped", phases: 1 };
  const trials = [trial(5, { ...done, last: 10, config: { lr: 0.1 } }), trial(6, { ...done, last: -10, config: { lr: 0.2 } })];
  const store = storeOf({ trials }, [table(), table([5, 60, 10, 1, NaN, 0], [6, 60, -10, 1, NaN, 0])]);
  const upper = (view) => view(makeCanvas().canvas, scene(store)).brush(0, 0, 640, 85); // its lower half has trial 6
  assert.deepEqual(upper(front.drawCurves), ["trial:", "trial:5"]);
  assert.deepEqual(upper(front.drawScores), ["trial:", "trial:5"]);
  const parallel = front.drawParallel(makeCanvas().canvas, scene(store));
  const [begin, token] = parallel.brush(590, 0, 610, 90); // the last axis, upright
  assert.equal(begin, "score:");
  assert.deepEqual(front.parseFilter(token, ["lr"]).tests.map((fits) => trials.filter((t) => fits(t)).map((t) => t.trial)), [[5]]);
  assert.deepEqual(upper(front.drawParallel)[0], "lr:");
  const nothing = front.drawCurves(makeCanvas().canvas, scene(store)).brush(0, 0, 1, 1);
  assert.deepEqual(nothing, ["trial:", ""]);
});

test("curves that cannot be placed on an axis are counted beside its name", () => {
  const points = (...frames) => table(...frames.map((n, k) => [k, 60, k, 1, n, 0]));
  const drawn = (all, more) => {
    const { canvas, words } = makeCanvas();
    const hit = front.drawCurves(canvas, scene(storeOf({ trials: [0, 1, 2].map((k) => trial(k)) }, [table(), all]), { axis: "frames", ...more }));
    return [words(), [...found(hit).keys()]];
  };
  const [words, trials] = drawn(points(NaN, 500, NaN));
  assert.ok(words.includes("frames (2 of 3 curves report none)"), words.join());
  assert.deepEqual(trials, [1]);
  assert.ok(drawn(points(NaN, 500, NaN), { filter: "trial:1" })[0].includes("frames"));
  assert.ok(drawn(points(NaN, 500, NaN), { filter: "trial:0" })[0].join(" ").includes("no frames were reported"));
  assert.ok(drawn(points(500, 500, 500))[0].includes("frames"));
});

test("a rectangle over slots becomes a stretch of the time that is shown, and nothing where it has no length", () => {
  const store = storeOf({ slots: [[0, "a", 0, null]], at_s: 60 });
  const { brush } = front.drawGantt(makeCanvas().canvas, scene(store));
  assert.deepEqual(brush(0, 0, 2000, 9), ["time:", "time:0..60"]);
  const [, token] = brush(300, 0, 700, 9);
  assert.match(token, /^time:\d+(\.\d)?\.\.60$/);
  for (const [from, to] of [[0, 10], [635, 700], [300, 300]]) assert.deepEqual(brush(from, 0, to, 99), ["time:", ""]);
  const zoomed = front.drawGantt(makeCanvas().canvas, scene(store, { filter: "time:20..40" }));
  assert.deepEqual(zoomed.brush(0, 0, 700, 9), ["time:", "time:20..40"]);
});

test("a stretch of an axis whose name the filter does not mean leaves its trials by their numbers", () => {
  for (const name of ["time", "score", "best", "two words"]) {
    const trials = [1, 2, 3].map((value, k) => trial(k, { phases: 1, last: 10 - k, config: { [name]: value } }));
    const store = storeOf({ trials });
    store.meta.hyperparameters = [name];
    const { brush } = front.drawParallel(makeCanvas().canvas, scene(store));
    assert.deepEqual(brush(30, 0, 50, 100), ["trial:", "trial:1-2"]); // 2 and 3 are the upper half
    assert.equal(brush(590, 0, 610, 100)[0], "score:");
  }
});

test("a stretch of an axis leaves the trials that it covers, and no others", () => {
  const left = (values, from, to) => {
    const trials = values.map((lr, k) => trial(k, { phases: 1, last: values[values.length - 1 - k], config: { lr } }));
    const store = storeOf({ trials });
    const { brush } = front.drawParallel(makeCanvas().canvas, scene(store));
    const [top, height] = [32, 172 - 48];
    const tokens = [30, 590].map((x) => brush(x, top + height * (1 - to), x + 20, top + height * (1 - from))[1]); // lr, score
    return tokens.map((filter) => scene(store, { filter }).own.order.map((t) => valueOf(t, filter)).sort((a, b) => a - b));
  };
  const valueOf = (t, filter) => (filter.startsWith("lr:") ? t.config.lr : t.last);
  const twice = (values) => [values, values];
  const scores = [1001.2, 1002.4, 1003.1, 1004.0];
  assert.deepEqual(left(scores, 0.5, 1.1), twice([1003.1, 1004.0]));
  assert.deepEqual(left(scores, -0.1, 0.5), twice([1001.2, 1002.4]));
  assert.deepEqual(left([-0.9829, -0.9824, -0.9815, -0.9811], 0.5, 1), twice([-0.9815, -0.9811]));
  assert.deepEqual(left([3e6 + 1, 3e6 + 2, 3e6 + 3], 0.4, 0.6), twice([3e6 + 2]));
  assert.deepEqual(left([1e-9, 2e-9, 3e-9], 0.4, 1.01), twice([2e-9, 3e-9]));
  assert.deepEqual(left([0.000123456, 0.001, 0.0123456], 0.4, 1), twice([0.001, 0.0123456])); // by decades
  assert.deepEqual(left([16384, 65536, 1048576], 0.2, 1), twice([65536, 1048576]));
});

test("a line goes over the axes of what its trial does not have, to its score", () => {
  const done = { state: "stopped", phases: 1 };
  const trials = [trial(5, { ...done, last: 10, config: { lr: 0.1, momentum: 0.5 } }), trial(6, { ...done, last: -10, config: { lr: 0.2 } }), trial(7, { ...done, last: 0, config: { lr: 0.3, momentum: 0.9 } })];
  const store = storeOf({ trials }, [table(), table()]);
  store.meta.hyperparameters = ["lr", "momentum"];
  const drawn = (look) => {
    const { canvas, calls } = makeCanvas();
    const hit = front.drawParallel(canvas, scene(store, look));
    return { calls, hit, lines: calls.filter(([name]) => ["lineTo", "moveTo", "setLineDash"].includes(name)) };
  };
  const { lines, hit } = drawn({});
  const places = lines.filter(([name]) => name !== "setLineDash").flatMap(([, ...at]) => at);
  assert.ok(places.every(Number.isFinite));
  const score = lines.findIndex(([name, x, y]) => name === "lineTo" && x === 600 && y === 156); // trial 6's, the lowest
  assert.deepEqual(lines[score - 1].slice(1).map(Math.round), [40, 94]); // past the axis of momentum
  assert.deepEqual(lines.slice(0, score).findLast(([name]) => name === "setLineDash"), ["setLineDash", [2, 4]]);
  assert.deepEqual([hit(600, 156), hit(320, 125), hit(35, 94)].map(({ trial }) => trial), [6, 6, 6]);
  assert.equal(hit(20, 94), null); // before its first axis
  const alone = drawn({ filter: "trial:6" }); // nothing but the score is left to differ
  assert.deepEqual(alone.calls.find(([name]) => name === "arc").slice(1, 3).map(Math.round), [320, 156]);
});

test("scores on a logarithmic axis, where all are above nothing", () => {
  const positive = table([5, 30, 1, 0, NaN, 0], [5, 60, 1000, 1, NaN, 0]);
  const drawn = (points, look) => {
    const { canvas, words } = makeCanvas();
    front.drawCurves(canvas, scene(storeOf({ trials: [trial(5)] }, [table(), points]), look));
    return words();
  };
  assert.ok(["1", "10", "100", "1000", "score (log)"].every((tick) => drawn(positive, { logY: true }).includes(tick)));
  const near = table([5, 30, 2.1, 0, NaN, 0], [5, 60, 8, 1, NaN, 0]);
  assert.ok(["2", "5"].every((tick) => drawn(near, { logY: true }).includes(tick))); // within a decade
  const nearer = table([5, 30, 2.4, 0, NaN, 0], [5, 60, 4.1, 1, NaN, 0]);
  assert.ok(["2.4", "4.1"].every((tick) => drawn(nearer, { logY: true }).includes(tick)));
  assert.ok(drawn(positive, {}).includes("score"));
  assert.ok(drawn(table([5, 60, -1, 1, NaN, 0]), { logY: true }).includes("score (not all above 0: linear)"));
});

test("rows of slots are 6 pixels high until the chart is expanded", () => {
  const store = storeOf({ slots: Array.from({ length: 12 }, (_, k) => [k, `n${k}`, 0, null]) });
  const height = (expanded) => {
    const { canvas } = makeCanvas();
    front.drawGantt(canvas, scene(store, { expanded }));
    return parseFloat(canvas.style.height);
  };
  assert.equal(height(true) - height(false), 12 * (20 - 6));
});
