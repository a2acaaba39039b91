// Axes and words: ticks at round numbers, numbers and times as a person writes them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { front, makeCanvas } from "./front.mjs";

const COLORS = { ink: "#000", soft: "#666", line: "#ccc", ground: "#fff" };

test("ticks are round numbers within the range", () => {
  assert.deepEqual(front.niceTicks(1, 11, 5), [2, 4, 6, 8, 10]);
  assert.deepEqual(front.niceTicks(-3, 3, 3), [-2, 0, 2]);
  assert.deepEqual(front.niceTicks(0.1, 0.35, 5).map((tick) => tick.toFixed(2)), ["0.10", "0.15", "0.20", "0.25", "0.30", "0.35"]);
  assert.deepEqual(front.niceTicks(5, 5, 4), [5]);
  assert.deepEqual(front.niceTicks(0.9, 0.9000000000000001, 4), [0.9]); // two means of the same returns: no step is so small
  assert.deepEqual(front.niceTicks(1e12, 1e12 + 2, 2), [1e12, 1e12 + 1, 1e12 + 2]);
  assert.deepEqual(front.niceTicks(0.5, 2.05, 4, true), [1, 2]); // slots and trials are counted
  assert.deepEqual(front.niceTicks(0.5, 42, 4, true), [20, 40]);
  assert.deepEqual(front.niceTicks(1, 40, 1.5), [20, 40]); // one tick tells no scale
  assert.deepEqual(front.niceTicks(0.5, 1.4, 1, true), [1]);
});

test("numbers are short", () => {
  const written = [0, 1234.567, 0.00012, 0.000234567, -2.5e7, 1e6, 999999.9, 21, NaN, Infinity].map(front.short);
  assert.deepEqual(written, ["0", "1235", "1.2e-4", "2.346e-4", "-2.5e7", "1e6", "1e6", "21", "–", "–"]);
});

test("no zero takes the place of a digit before the point", () => {
  const written = [12345, -12345.6, 999999.4, 100000, 9999.96, 1234567].map((value) => front.short(value));
  assert.deepEqual(written, ["12345", "-12346", "999999", "100000", "10000", "1.235e6"]);
});

test("what is counted is one or several", () => {
  assert.deepEqual([0, 1, 2].map((n) => front.soMany(n, "phase")), ["0 phases", "1 phase", "2 phases"]);
});

test("halves of phases expected become even, as follow() tells them", () => {
  const told = [10.5, 11.5, 10.51, 1, 0.5].map((n) => front.about(n, "phase"));
  assert.deepEqual(told, ["about 10 phases", "about 12 phases", "about 11 phases", "about 1 phase", "about 0 phases"]);
});

test("whole numbers of a configuration are written in full, others are short", () => {
  assert.deepEqual([65536, 12345, 1048576, -2000000, 0, 0.00025, 0.1234567, 1e20].map(front.written), ["65536", "12345", "1048576", "-2000000", "0", "2.5e-4", "0.1235", "1e20"]);
  assert.deepEqual([0.99999, 0.99951, 1e-5, 126.99203, 12345.6, -0.999999999].map(front.written), ["0.99999", "0.9995", "1e-5", "126.99", "12345.6", "-0.999999999"]);
  assert.deepEqual(["adam", true, undefined].map(front.written), ["adam", "true", "–"]);
});

test("ticks have the digits of their step", () => {
  const labels = (low, high, wanted) => front.tickLabels(front.niceTicks(low, high, wanted));
  assert.deepEqual(labels(12000, 12030, 6), ["12000", "12005", "12010", "12015", "12020", "12025", "12030"]);
  assert.deepEqual(labels(0.98761, 0.98789, 3), ["0.9877", "0.9878"]);
  assert.deepEqual(labels(0.98761, 0.98765, 4), ["0.98762", "0.98764"]);
  assert.deepEqual(labels(-0.1, 0.3, 4), ["-0.1", "0", "0.1", "0.2", "0.3"]);
  assert.deepEqual(labels(0, 2e6, 4), ["0", "500000", "1.0e6", "1.5e6", "2.0e6"]);
  assert.deepEqual(labels(3000001, 3000003, 2), ["3000001", "3000002", "3000003"]);
  assert.deepEqual(labels(0, 1.2e39, 3), ["0", "5e38", "1e39"]);
  assert.deepEqual(labels(1e-5, 3e-5, 2), ["1.0e-5", "2.0e-5", "3.0e-5"]);
  assert.deepEqual([labels(12005, 12005, 1), labels(0, 0, 1)], [["12005"], ["0"]]);
});

test("of words that are too long both ends stay", () => {
  const pen = { measureText: (words) => ({ width: 6 * [...words].length }) };
  assert.equal(front.fitting(pen, "learning_rate", 78), "learning_rate");
  assert.equal(front.fitting(pen, "learning_rate", 54), "lear…rate");
  assert.equal(front.fitting(pen, "😀😀😀😀😀", 24), "😀😀…😀");
  assert.equal(front.fitting(pen, "learning_rate", 1), "l…e");
});

test("labels leave the axis its title", () => {
  const { canvas, calls } = makeCanvas();
  const box = { left: 52, top: 10, width: 500, height: 200 };
  const most = (title) => {
    front.axes(canvas.getContext("2d"), box, { low: 0, high: 1, title: "x" }, { low: 0, high: 1e6, title }, COLORS);
    return calls.filter(([name, words, , , most]) => name === "fillText" && words === "0" && most).at(-1)[4];
  };
  assert.deepEqual([most("score"), most("")], [30, 44]);
});

test("an axis never says the same of two ticks", () => {
  const { canvas, words } = makeCanvas();
  front.axes(canvas.getContext("2d"), { left: 50, top: 10, width: 500, height: 200 }, { low: 12000, high: 12030, title: "x" }, { low: 0.98761, high: 0.98789, title: "y" }, COLORS);
  assert.equal(new Set(words()).size, words().length);
});

test("times are clocks, and axes have the unit that suits them", () => {
  assert.deepEqual([0, 59.6, 61, 3600, 36061, null, undefined].map(front.duration), ["0:00", "1:00", "1:01", "1:00:00", "10:01:01", "–", "–"]);
  assert.deepEqual([10, 300, 10800].map((s) => front.clock(s).unit), ["s", "min", "h"]);
});

test("a span has a margin, also of one value and of none", () => {
  assert.deepEqual(front.span([0, 10, 5]), { low: -0.5, high: 10.5 });
  assert.deepEqual(front.span([4]), { low: 3.8, high: 4.2 });
  assert.deepEqual(front.span([0]), { low: -0.05, high: 0.05 });
  assert.deepEqual(front.span([], { low: 0, high: 1 }), { low: 0, high: 1 });
});

test("axes turn values into pixels, upwards and by decades", () => {
  const { canvas, words } = makeCanvas();
  const pen = canvas.getContext("2d");
  const box = { left: 50, top: 10, width: 500, height: 200 };
  const x = { low: 0.001, high: 10, log: true, ticks: [0.01, 1], title: "learning rate" };
  const { px, py } = front.axes(pen, box, x, { low: 0, high: 4, title: "score" }, COLORS);
  assert.deepEqual([px(0.001), px(0.1), px(10)].map(Math.round), [50, 300, 550]);
  assert.deepEqual([py(0), py(1), py(4)], [210, 160, 10]);
  assert.ok(["0.01", "1", "learning rate", "score"].every((word) => words().includes(word)));
});

test("a canvas is as sharp as the screen, and resized only when that changes", (t) => {
  const before = globalThis.window;
  globalThis.window = { devicePixelRatio: 2 };
  t.after(() => (globalThis.window = before));
  const { canvas } = makeCanvas(300);
  assert.deepEqual([front.ready(canvas, 100).width, canvas.width, canvas.height, canvas.style.height], [300, 600, 200, "100px"]);
  const narrow = makeCanvas(10).canvas;
  assert.equal(front.ready(narrow, 100).width, 160);
});
