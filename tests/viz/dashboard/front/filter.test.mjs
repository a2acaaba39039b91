// The one filter and the one selection: what a line of words leaves, in which order, and what is told of it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { NOTHING, front, makeModel, message, table, trial } from "./front.mjs";

const TRIALS = [
  trial(0, { state: "finished", last: 5, best: 6, phases: 2, config: { learning_rate: 1e-3, net: "small" } }),
  trial(1, { state: "stopped", last: 1, best: 1, phases: 1, why: "WSM: rank 0.2", config: { learning_rate: 1e-2, net: "large" } }),
  trial(2, { state: "set aside", last: 3, best: 4, phases: 1, config: { learning_rate: 1e-5, net: "small" } }),
  trial(3, { state: "running", config: { learning_rate: 1e-4, net: "large" } }),
];

function opened(spans = table()) {
  const model = makeModel();
  const store = front.makeStore(model);
  model.tell(message("snapshot", 1, { trials: TRIALS }), [spans, NOTHING[1]]);
  store.close();
  store.meta.hyperparameters = ["learning_rate", "net"];
  const own = front.makeSelection(model, store);
  const left = (query) => {
    model.set("filter", query);
    own.update();
    return own.order.map((t) => t.trial);
  };
  return { model, store, own, left };
}

test("words, numbers, ranges, states and their opposites", () => {
  const { left } = opened();
  assert.deepEqual(left(""), [0, 2, 1, 3]); // by rank, those without a score last
  assert.deepEqual(left("state:running"), [3]);
  assert.deepEqual(left("state:set-aside,running"), [2, 3]);
  assert.deepEqual(left("-state:stopped"), [0, 2, 3]);
  assert.deepEqual(left("lr>=1e-3"), [0, 1]); // by its initials
  assert.deepEqual(left("learning_rate:1e-5..1e-4"), [2, 3]);
  assert.deepEqual(left("learning:..1e-4 -net:large"), [2]);
  assert.deepEqual(left("score>1 score<5"), [2]); // no score is no number
  assert.deepEqual(left("net:small"), [0, 2]);
  assert.deepEqual(left("rank"), [1]); // in a verdict
  assert.deepEqual(left("trial:0,2-3"), [0, 2, 3]);
  assert.deepEqual(left("top:2"), [0, 2]);
});

test("a word after = is meant in full, one after : may be how a value begins", () => {
  const { store, left } = opened();
  store.meta.hyperparameters = ["study"]; // in a comparison
  ["pong", "pong-longer", "Pong", "breakout"].forEach((study, k) => store.trials.set(k, { ...store.trials.get(k), config: { study } }));
  assert.deepEqual(left("study:pong"), [0, 2, 1]);
  assert.deepEqual(left("study=pong"), [0, 2]);
  assert.deepEqual(left("study=pong-longer,breakout"), [1, 3]);
  assert.deepEqual(left("-study=pong"), [1, 3]);
});

test("what a trial does not have is no number", () => {
  const { store, left } = opened();
  store.trials.set(3, { ...store.trials.get(3), config: { net: "large" } });
  assert.deepEqual(left("last:0"), []); // trial 3 has no score yet
  assert.deepEqual(left("lr:0..1"), [0, 2, 1]); // nor a learning rate
  assert.deepEqual(left("lr:..1"), [0, 2, 1]);
});

test("trials are found by the time they ran", () => {
  const { left } = opened(table([0, 0, 0, 0, 0, 10, 1], [1, 0, 1, 0, 10, 20, 1], [2, 0, 3, 0, 25, NaN, 0]));
  assert.deepEqual(left("time:12..22"), [1]);
  assert.deepEqual(left("time:22.."), [3]);
  assert.deepEqual(left("time:15"), [1]); // at that second
});

test("what is not understood is said and leaves the rest", () => {
  const { own, left } = opened();
  assert.deepEqual(left("nonsense>3 state:running"), [3]);
  assert.equal(own.problem, "not understood: nonsense>3");
  left("lr>fast");
  assert.equal(own.problem, "not understood: lr>fast");
});

test("the others are left of the best, too", () => {
  const { own, left } = opened();
  assert.deepEqual(left("-top:2"), [1, 3]); // what has no score is not among the best
  assert.deepEqual([...own.among], [1, 3]);
  assert.deepEqual(left("score>1 -top:1"), [2]);
  assert.deepEqual(left("top:2 -top:1"), [2]);
});

test("of several studies side by side no times are told, and none are understood", () => {
  const { store, own, left } = opened();
  store.now.studies = [];
  for (const query of ["time:60..300", "-time:5"]) assert.deepEqual([left(query).length, own.problem], [4, `not understood: ${query}`]);
});

test("a list of no trials leaves none, and what is no list is said", () => {
  const { model, own, left } = opened();
  assert.deepEqual([left("trial:"), own.problem], [[], ""]);
  assert.deepEqual(model.get("visible"), []);
  assert.deepEqual(left("-trial:"), [0, 2, 1, 3]);
  for (const query of ["trial:3-", "trial:x", "trial:-2"]) {
    assert.deepEqual([left(query).length, own.problem], [4, `not understood: ${query}`]);
  }
});

test("a sign that a name does not know is not understood", () => {
  const { store, own, left } = opened(table([0, 0, 0, 0, 0, 10, 1]));
  for (const query of ["time>5", "time=5", "time:5..x", "top=2", "top:", "top>1", "-top=2", "state>running", "tag<x", "toString<x", "lr:1..x", "lr:1..2..3"]) {
    assert.deepEqual([left(query).length, own.problem], [4, `not understood: ${query}`]);
  }
  assert.deepEqual(left("state=running"), [3]);
  assert.deepEqual(left("time:5.."), [0]);
  store.meta.hyperparameters = ["learning_rate", "net", "top"]; // unless it is a hyperparameter's
  store.trials.set(1, trial(1, { last: 1, config: { top: 7 } }));
  assert.deepEqual([left("top>5"), left("top:1")], [[1], [0]]);
});

test("a stretch of time that is not understood zooms nothing", () => {
  const { model, own } = opened();
  const zoomed = (query) => (model.set("filter", query), front.stretchOf(own, 10));
  assert.deepEqual([zoomed("time:2..5"), zoomed("time:2..x"), zoomed("lr>1")], [[2, 5], [0, 10], [0, 10]]);
});

test("an instant, or a time that has not come, leaves the chart all of its time", () => {
  const { model, own } = opened();
  const zoomed = (query) => (model.set("filter", query), front.stretchOf(own, 10));
  assert.deepEqual([zoomed("time:5"), zoomed("time:20..30"), zoomed("time:8.."), zoomed("time:..4")], [[0, 10], [0, 10], [8, 10], [0, 4]]);
});

test("what is visible is told in the table's order, and nothing of everything", () => {
  const { model, own, left } = opened();
  left("");
  assert.equal(model.get("visible") ?? null, null);
  left("net:large");
  assert.deepEqual(model.get("visible"), [1, 3]);
  own.setSort("config.learning_rate");
  left("");
  assert.deepEqual(model.get("visible"), [2, 3, 0, 1]);
  own.setSort("config.learning_rate");
  assert.deepEqual(left(""), [1, 0, 3, 2]);
  own.setSort("config.learning_rate"); // the third click goes back to the ranks
  assert.deepEqual(left(""), [0, 2, 1, 3]);
});

test("a hyperparameter may be called as a column of the table is", () => {
  const { store, own, left } = opened();
  for (const [k, best] of [3, 1, 2, 4].entries()) store.trials.set(k, trial(k, { last: k, best: k, config: { best } }));
  own.setSort("config.best");
  assert.deepEqual(left(""), [1, 2, 0, 3]);
  assert.deepEqual(["lr", "best", "time", "tag", "two words", "a:b", "-lr"].map(front.canBeAsked), [true, false, false, false, false, false, false]);
});

test("a study that minimises has its least score first", () => {
  const { store, own, left } = opened();
  store.meta.minimise = true;
  assert.deepEqual(left(""), [1, 2, 0, 3]);
  assert.deepEqual(left("top:1"), [1]);
  void own;
});

test("the leader is the trial whose score came first, of equal ones too", () => {
  const { store } = opened();
  store.now.best = [];
  assert.equal(front.leaderOf(store), null);
  for (const number of [1, 2]) store.trials.set(number, trial(number, { best: 99 }));
  store.now.best = [[3, 5, 0, 0], [9, 99, 2, 0]];
  assert.equal(front.leaderOf(store).trial, 2);
});

test("the line at the top tells the time left as far as it is known", () => {
  const { store } = opened();
  Object.assign(store.now, { busy: [0, 0], occupancy: null, trials_started: 4, phases_ended: 0 });
  for (const [left, words] of [[[60, 120], "1:00–2:00 left"], [[60, null], "at least 1:00 left"], [[0, null], "time left not known yet"]]) {
    store.now.left_s = left;
    assert.ok(front.headline(store).includes(` · ${words} · `), words);
  }
});

test("the line at the top tells how many trials have failed, of whatever phase", () => {
  const { store } = opened();
  Object.assign(store.now, { busy: [0, 0], occupancy: null, trials_started: 4, phases_ended: 0 });
  assert.ok(!front.headline(store).includes("failed"));
  store.now.failed = 2;
  assert.ok(front.headline(store).endsWith(" · 2 failed"));
});

test("the line at the top tells what the study waits for, while somebody is there to tell it", () => {
  const { store } = opened();
  Object.assign(store.now, { busy: [0, 0], occupancy: null, trials_started: 4, phases_ended: 0, waits: "waiting for workers" });
  assert.ok(front.headline(store).endsWith(" · waiting for workers"));
  store.silent = true;
  assert.ok(!front.headline(store).includes("waiting"));
});

test("the line at the top counts what people asked for beside the scheduler's trials", () => {
  const { store } = opened();
  store.meta.n_trials = 40;
  Object.assign(store.now, { busy: [0, 0], occupancy: null, trials_started: 12, trials_asked: 10, phases_ended: 0 });
  assert.ok(front.headline(store).includes(" · 10 of 40 trials begun and 2 besides · "));
  store.now.trials_started = 10;
  assert.ok(front.headline(store).includes(" · 10 of 40 trials begun · "));
});

test("a click selects, another lets go, with a key several are selected", () => {
  const { model, own } = opened();
  const click = (number, add) => {
    own.choose(number, add);
    own.update();
    return model.get("selected");
  };
  assert.deepEqual(click(3), [3]);
  assert.deepEqual(click(1, true), [3, 1]);
  assert.equal(own.focus(), 1);
  assert.deepEqual(click(3, true), [1]);
  assert.deepEqual(click(1), []);
});

test("tokens replace those that begin alike, and numbers are written in runs", () => {
  assert.equal(front.withToken("a time:1..2 b", "time:", "time:3..4"), "a b time:3..4");
  assert.equal(front.withToken("time:1..2", "time:", ""), "");
  assert.equal(front.listed([9, 3, 5, 6, 7]), "3,5-7,9");
});

test("a state is hidden beside those that are, and shown without them", () => {
  const { model, own } = opened();
  model.set("filter", "-state:failed lr>0 -state:set-aside");
  front.hideState(own, "stopped", true);
  assert.equal(own.filter(), "lr>0 -state:failed,set-aside,stopped");
  assert.deepEqual(front.hiddenStates(own.filter()), ["failed", "set aside", "stopped"]);
  front.hideState(own, "set aside", false);
  assert.equal(own.filter(), "lr>0 -state:failed,stopped");
  for (const state of ["failed", "stopped"]) front.hideState(own, state, false);
  assert.equal(own.filter(), "lr>0");
});

test("trials side by side show where they differ", () => {
  const { same, rows } = front.differences([TRIALS[0], TRIALS[2]]);
  assert.deepEqual(same, ["net = small"]);
  assert.deepEqual(rows.find(([name]) => name === "learning_rate"), ["learning_rate", ["0.001", "1e-5"]]);
});

test("trials side by side have their whole numbers in full", () => {
  const [one, other] = [65536, 65540].map((batch_size, k) => trial(k, { config: { batch_size, seed: 123456 } }));
  const { same, rows } = front.differences([one, other]);
  assert.deepEqual(same, ["seed = 123456"]);
  assert.deepEqual(rows.at(-1), ["batch_size", ["65536", "65540"]]);
});

test("a file of the visible trials can be read by a spreadsheet, and is no formula there", () => {
  const hostile = trial(7, { rank: 1, state: "failed", last: -2.5, error: '=1+1 "x", y', config: { learning_rate: 1e-3 }, tags: ["good"], notes: [{ text: "=2" }] });
  const [head, row] = front.csvOf([hostile], ["learning_rate"]).split("\r\n");
  assert.equal(head, "rank,trial,state,phases,last_score,best_score,learning_rate,verdict,error,tags,notes");
  assert.equal(row, `1,7,failed,0,-2.5,,0.001,,"'=1+1 ""x"", y",good,'=2`);
});

test("curves lie along time, frames or phases; bands are over the ends of phases", () => {
  const curve = { x: [5, 10, 14], y: [1, 2, 3], end: [false, true, false], frames: [50, 100, NaN], from: [0, 0, 10] };
  assert.deepEqual(front.along(curve, "seconds"), [5, 10, 14]);
  assert.deepEqual(front.along(curve, "frames"), [50, 100, NaN]);
  assert.deepEqual(front.along(curve, "phases").map((p) => p.toFixed(1)), ["0.5", "1.0", "1.4"]);
  assert.deepEqual(front.smoothed(curve, 0.5), [1, 2, 2.25]);
  const heir = { ...curve, x: [45, 50, 54], from: [40, 40, 50] }; // of weights that were trained for 40 s, in three phases
  assert.deepEqual(front.along(heir, "phases", 3).map((p) => p.toFixed(1)), ["3.5", "4.0", "4.4"]);
  assert.equal(front.phasesTaken({ pips: "---cr" }), 3);
  assert.deepEqual(front.phaseBands([0, 1].map((taken) => ({ xs: curve.x, curve, taken }))), []); // one in each phase
  const other = { ...curve, y: [0, 4, 0] };
  const [band] = front.phaseBands([curve, other].map((c) => ({ xs: c.x, curve: c })));
  assert.deepEqual([band.n, band.middle, band.x], [2, 3, 10]);
});

test("occupancy over time counts what ran, is held and lives", () => {
  const spans = table([0, 0, 0, 0, 0, 5, 0], [1, 0, 1, 0, 5, NaN, 1]);
  const model = makeModel();
  const store = front.makeStore(model);
  model.tell(message("snapshot", 1, { slots: [[0, "a", 0, null], [1, "a", 5, null]] }), [spans, NOTHING[1]]);
  store.close();
  const used = front.occupancyOf(store, 10, 2);
  assert.deepEqual([[...used.ran].slice(0, 2), [...used.held].slice(0, 2), [...used.alive].slice(0, 2)], [[1, 0], [0, 1], [1, 2]]);
});

test("what ran on a slot that was lost counts no longer than the slot lived", () => {
  const spans = table([0, 0, 0, 0, 0, 8, 0], [1, 1, 1, 0, 0, 10, 0]); // the first was given up 3 s after its slot
  const model = makeModel();
  const store = front.makeStore(model);
  model.tell(message("snapshot", 1, { slots: [[0, "a", 0, 5], [1, "a", 0, null]] }), [spans, NOTHING[1]]);
  store.close();
  const used = front.occupancyOf(store, 10, 2);
  assert.deepEqual([[...used.ran].slice(0, 2), [...used.alive].slice(0, 2)], [[2, 1], [2, 1]]);
});

test("a tag finds the trials that bear it, a word those whose notes say it", () => {
  const [good, bad] = [trial(0, { tags: ["Good", "late"], notes: [] }), trial(1, { tags: ["goodish"], notes: [{ text: "Diverges" }] })];
  const found = (query) => [good, bad].filter((t) => front.parseFilter(query, ["lr"]).tests.every((fits) => fits(t))).map((t) => t.trial);
  assert.deepEqual(found("tag:good"), [0]);
  assert.deepEqual(found("-tag:good"), [1]);
  assert.deepEqual(found("tag:late,goodish"), [0, 1]);
  assert.deepEqual(found("diverges"), [1]);
});
