// The store: what the kernel tells, in order, thinned, and asked for again where some of it was lost.

import assert from "node:assert/strict";
import { test } from "node:test";

import { META, NOTHING, front, makeModel, message, table, trial } from "./front.mjs";

// A store whose timers go off only when `later` is called.
function opened(t) {
  const due = new Map();
  t.mock.method(globalThis, "setTimeout", (act, ms) => due.set(act, ms) && act);
  t.mock.method(globalThis, "clearTimeout", (act) => due.delete(act));
  const later = (upTo = 2000) => [...due].forEach(([act, ms]) => ms <= upTo && due.delete(act) && act());
  const model = makeModel();
  return { model, later, store: front.makeStore(model) };
}

test("a snapshot is asked for at once, and again until it comes", (t) => {
  const { model, store, later } = opened(t);
  assert.deepEqual(model.sent, [{ type: "snapshot" }]);
  later();
  assert.equal(model.sent.length, 2);
  model.tell(message("snapshot", 7), NOTHING);
  later();
  assert.equal(model.sent.length, 2);
  assert.equal(store.number, 7);
});

test("a page that is asked whether it shows the model says so", (t) => {
  const { model } = opened(t);
  model.tell({ type: "seen?" });
  assert.deepEqual(model.sent.at(-1), { type: "seen" });
});

test("a delta in order is applied, and everyone who draws is told", (t) => {
  const { model, store } = opened(t);
  let drawn = 0;
  store.changed.add(() => drawn++);
  model.tell(message("snapshot", 7, { trials: [trial(0)] }), NOTHING);
  model.tell(message("delta", 8, { trials: [trial(0, { state: "stopped" }), trial(1)] }), NOTHING);
  assert.equal(store.trials.get(0).state, "stopped");
  assert.equal(drawn, 2);
});

test("names and sizes are those told last", (t) => {
  const { model, store } = opened(t);
  model.tell(message("snapshot", 7, { trials: [trial(0)] }), NOTHING);
  const before = store.version;
  const grown = { ...META, n_trials: 8, expected: [8, 6], hyperparameters: ["lr", "gamma"], minimise: true };
  model.tell(message("delta", 8, { meta: structuredClone(grown), trials: [trial(1, { config: { lr: 1, config_id: 7 } })] }), NOTHING);
  assert.deepEqual(store.meta, grown); // the number of a configuration in a table of curves is no hyperparameter
  assert.ok(store.version > before); // or ranks would stay as they were
  model.tell(message("delta", 9), NOTHING);
  assert.equal(store.meta.n_trials, 8);
});

test("what ran when its study ended is cut off, and runs again when that goes on", (t) => {
  const { model, store } = opened(t);
  const states = () => [...store.trials.values()].map(({ state }) => state);
  model.tell(message("snapshot", 7, { trials: [trial(0), trial(1, { state: "stopped" })] }), NOTHING);
  model.tell(message("delta", 8, { state: "paused" }), NOTHING);
  assert.deepEqual(states(), ["running", "stopped"]);
  model.tell(message("delta", 9, { state: "ended" }), NOTHING); // no row comes of what did not change
  assert.deepEqual(states(), ["cut off", "stopped"]);
  model.tell(message("delta", 10, { state: "running", trials: [trial(0)] }), NOTHING);
  assert.deepEqual(states(), ["running", "stopped"]);
});

test("what is between two phases is set aside while its study is paused", (t) => {
  const { model, store } = opened(t);
  const states = () => [...store.trials.values()].map(({ state }) => state);
  model.tell(message("snapshot", 7, { trials: [trial(0), trial(1, { in_phase: false }), trial(2, { in_phase: false, state: "held" })] }), NOTHING);
  assert.deepEqual(states(), ["running", "running", "held"]); // on its way to a slot
  model.tell(message("delta", 8, { state: "paused" }), NOTHING);
  assert.deepEqual(states(), ["running", "set aside", "held"]);
  model.tell(message("delta", 9, { state: "abandoned" }), NOTHING);
  assert.deepEqual(states(), ["cut off", "cut off", "held"]);
  model.tell(message("delta", 10, { state: "running" }), NOTHING);
  assert.deepEqual(states(), ["running", "running", "held"]);
});

test("what waits for a slot when its study goes on is cut off no more, though no row comes of it", (t) => {
  const { model, store } = opened(t);
  const states = () => [...store.trials.values()].map(({ state }) => state);
  model.tell(message("snapshot", 7, { trials: [trial(0), trial(1), trial(2, { state: "held" })] }), NOTHING);
  model.tell(message("delta", 8, { state: "interrupted" }), NOTHING);
  assert.deepEqual(states(), ["cut off", "cut off", "held"]);
  const before = store.version;
  model.tell(message("delta", 9, { state: "running", trials: [trial(0)] }), NOTHING);
  assert.deepEqual(states(), ["running", "running", "held"]);
  assert.ok(store.version > before + 1); // the rows are drawn anew
  model.tell(message("delta", 10, { state: "abandoned" }), NOTHING);
  model.tell(message("delta", 11, { state: "paused" }), NOTHING);
  assert.deepEqual(states(), ["running", "running", "held"]);
});

test("a delta that was lost brings a snapshot, and what comes before it is not applied", (t) => {
  const { model, store } = opened(t);
  model.tell(message("snapshot", 7), NOTHING);
  model.tell(message("delta", 9, { trials: [trial(3)] }), NOTHING);
  assert.deepEqual([model.sent.length, store.number, store.trials.size], [2, null, 0]);
  model.tell(message("delta", 10, { trials: [trial(3)] }), NOTHING);
  assert.equal(store.trials.size, 0);
  model.tell(message("snapshot", 10, { trials: [trial(4)] }), NOTHING);
  assert.deepEqual([...store.trials.keys()], [4]);
});

test("a beat draws nothing, and tells of a loss", (t) => {
  const { model, store } = opened(t);
  model.tell(message("snapshot", 7), NOTHING);
  let drawn = 0;
  store.changed.add(() => drawn++);
  model.tell({ type: "beat", number: 7 });
  assert.deepEqual([drawn, model.sent.length], [0, 1]);
  model.tell({ type: "beat", number: 8 });
  assert.deepEqual([drawn, model.sent.length], [0, 2]);
});

test("spans and points are read from tables that begin anywhere", (t) => {
  const { model, store } = opened(t);
  const spans = table([1, 0, 5, 2, 1.5, NaN, 1]);
  const points = table([5, 0, -1, 0, NaN, 0], [5, 2, 3, 1, NaN, 0], [6, 1, 4, 0, NaN, 0]);
  model.tell(message("snapshot", 1, { trials: [trial(5), trial(6)] }), [spans, points]);
  assert.deepEqual(store.spans[1], { slot: 0, trial: 5, phase: 2, from: 1.5, to: NaN, outcome: META.outcomes[1] });
  assert.deepEqual(store.curves.get(5), { x: [0, 2], y: [-1, 3], end: [false, true], frames: [NaN, NaN], from: [0, 0] });
  model.tell(message("delta", 2, { dropped: [6] }), NOTHING);
  assert.deepEqual([...store.curves.keys()], [5]);
});

test("what is packed is read beside the tables, and what a delta leaves out stands as it was", (t) => {
  const { model, store } = opened(t);
  const { type, number, ...content } = message("snapshot", 1, { trials: [trial(5)], slots: [[0, "ö", 0, null]] });
  model.tell({ type, number }, [...NOTHING, new DataView(new TextEncoder().encode(JSON.stringify(content)).buffer)]);
  assert.deepEqual([...store.trials.keys()], [5]);
  model.tell({ type: "delta", number: 2, at_s: 11, trials: [], rates: [false, []], log: [] }, NOTHING);
  assert.deepEqual([store.now.at_s, store.now.slots], [11, [[0, "ö", 0, null]]]);
});

test("rates are added to, or come anew", (t) => {
  const { model, store } = opened(t);
  model.tell(message("snapshot", 1, { rates: [true, [[0, 1], [1, 2]]] }), NOTHING);
  model.tell(message("delta", 2, { rates: [false, [[2, 3]]] }), NOTHING);
  assert.equal(store.rates.length, 3);
  model.tell(message("delta", 3, { rates: [true, [[0, 1]]] }), NOTHING);
  assert.deepEqual(store.rates, [[0, 1]]);
});

test("a long log keeps the latest of each list", (t) => {
  const { model, store } = opened(t);
  const lines = Array.from({ length: 1300 }, (_, k) => ({ at: k, list: k < 10 ? "troubles" : k % 2 ? "decisions" : "continues" }));
  model.tell(message("snapshot", 1, { log: lines }), NOTHING);
  const of = (list) => store.log.filter((line) => line.list === list);
  assert.deepEqual(["decisions", "continues", "troubles"].map((list) => of(list).length), [300, 300, 10]);
  assert.deepEqual(store.log.slice(-3).map((line) => line.at), [1297, 1298, 1299]);
});

test("a wish is pending until the kernel hears it, asked until the log answers", (t) => {
  const { model, store } = opened(t);
  model.tell(message("snapshot", 1), NOTHING);
  store.wish("stop", { trial: 3 });
  assert.deepEqual([store.wished, model.sent.at(-1)], [["stop trial 3"], { type: "ask", action: "stop", trial: 3 }]);
  model.tell({ type: "asked", request: "r1", action: "stop", trial: 3 });
  assert.deepEqual([store.wished, [...store.asked]], [[], [["r1", "stop trial 3"]]]);
  model.tell(message("delta", 2, { log: [{ at: 1, list: "decisions", request: "r1" }] }), NOTHING);
  assert.equal(store.asked.size, 0);
});

test("what was asked last is awaited, by action and trial, until the log answers", (t) => {
  const { model, store } = opened(t);
  const awaited = () => [store.awaits("stop", 3), store.awaits("stop", 4), store.awaits("pause study")];
  model.tell(message("snapshot", 1), NOTHING);
  store.wish("stop", { trial: 3 });
  assert.deepEqual(awaited(), [true, false, false]);
  model.tell({ type: "asked", request: "r1", action: "stop", trial: 3 });
  assert.deepEqual(awaited(), [true, false, false]);
  store.wish("pause study");
  assert.deepEqual(awaited(), [false, false, true]);
  model.tell({ type: "asked", request: "r2", action: "pause study", trial: null });
  const log = ["r1", "r2"].map((request) => ({ at: 1, list: "decisions", request }));
  model.tell(message("delta", 2, { log }), NOTHING);
  assert.deepEqual(awaited(), [false, false, false]);
});

test("an answer that overtook the confirmation is not waited for", (t) => {
  const { model, store } = opened(t);
  model.tell(message("snapshot", 1, { log: [{ at: 1, list: "decisions", request: "r1" }] }), NOTHING);
  store.wish("scale", { nodes: 3 });
  model.tell({ type: "asked", request: "r1", action: "scale", trial: null });
  assert.equal(store.asked.size, 0);
});

test("a refusal is shown until the next wish", (t) => {
  const { model, store } = opened(t);
  store.wish("scale", { nodes: 0 });
  model.tell({ type: "refused", why: "nodes >= 1" });
  assert.deepEqual([store.refused, store.wished], ["nodes >= 1", []]);
  store.wish("pause study");
  assert.equal(store.refused, "");
});

test("a kernel that says nothing is told to be silent, until it speaks again", (t) => {
  const { model, store, later } = opened(t);
  let drawn = 0;
  store.changed.add(() => drawn++);
  model.tell(message("snapshot", 7), NOTHING);
  later(6000);
  assert.deepEqual([store.silent, drawn], [true, 2]);
  model.tell({ type: "beat", number: 7 });
  assert.deepEqual([store.silent, drawn], [false, 3]);
  model.tell(message("delta", 8, { state: "ended" }), NOTHING);
  later(6000);
  assert.equal(store.silent, false); // nothing more is to come
});

test("of an ended study a kernel is told to be silent that does not hear what is asked", (t) => {
  const { model, store, later } = opened(t);
  model.tell(message("snapshot", 7, { state: "ended" }), NOTHING);
  store.wish("note", { trial: 3, words: "diverges" });
  model.tell({ type: "asked", request: "r1", action: "note", trial: 3 });
  later(6000);
  assert.equal(store.silent, false); // it has heard, and has no more to say
  store.wish("tag", { trial: 3, words: "good" });
  later(6000);
  assert.equal(store.silent, true);
  model.tell({ type: "asked", request: "r2", action: "tag", trial: 3 });
  assert.equal(store.silent, false);
});

test("a kernel that looks rarely may be silent for longer", (t) => {
  const { model, store, later } = opened(t);
  model.state._every = 8;
  model.tell(message("snapshot", 7), NOTHING);
  later(23_999);
  assert.equal(store.silent, false);
  later(24_000);
  assert.equal(store.silent, true);
});

test("without any kernel it is said as well", (t) => {
  const { store, later } = opened(t);
  later(6000);
  assert.deepEqual([store.silent, store.now], [true, null]);
});

test("lines whose place another took are forgotten", (t) => {
  const { model, store } = opened(t);
  model.tell(message("snapshot", 1, { log: [{ n: 1, list: "troubles" }, { n: 2, list: "decisions" }] }), NOTHING);
  model.tell(message("delta", 2, { void: [1], log: [{ n: 3, list: "troubles" }] }), NOTHING);
  assert.deepEqual(store.log.map((line) => line.n), [2, 3]);
});

test("a closed store neither asks nor listens", (t) => {
  const { model, store, later } = opened(t);
  store.close();
  later();
  assert.deepEqual([model.sent.length, model.listeners.size], [1, 0]);
});

test("thinning halves a curve and keeps its extremes and the ends of its phases", () => {
  const y = Array.from({ length: 400 }, (_, k) => Math.sin(k) + (k === 201 ? 9 : 0) - (k === 302 ? 9 : 0));
  const curve = { x: y.map((_, k) => k), y, end: y.map((_, k) => k === 33 || k === 399), frames: y.map((_, k) => 4 * k), from: y.map(() => 0) };
  const kept = front.thinned(curve);
  assert.ok(kept.x.length >= 200 && kept.x.length <= 202, `${kept.x.length} points`);
  assert.deepEqual([Math.max(...kept.y), Math.min(...kept.y)], [Math.max(...y), Math.min(...y)]);
  assert.deepEqual(kept.x.filter((_, k) => kept.end[k]), [33, 399]);
  assert.deepEqual(kept.x, [...kept.x].sort((a, b) => a - b));
  kept.x.forEach((at, k) => assert.equal(kept.y[k], y[at]));
});

test("a curve of more phases than there is room for keeps their ends, and is not thinned at every point", (t) => {
  const { model, store } = opened(t);
  model.tell(message("snapshot", 1, { trials: Array.from({ length: 2000 }, (_, k) => trial(k)) }), NOTHING); // 64 points each
  let [known, thinned] = [null, 0];
  for (let phase = 0; phase < 400; phase++) {
    model.tell(message("delta", 2 + phase), [table(), table([5, phase + 0.5, 0, 0, NaN, 0], [5, phase + 1, 1, 1, NaN, 0])]);
    if (store.curves.get(5) !== known) [known, thinned] = [store.curves.get(5), thinned + 1];
  }
  assert.equal(known.end.filter(Boolean).length, 400);
  assert.ok(thinned < 20, `${thinned} times`);
});
