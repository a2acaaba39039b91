// The front end as the widget sends it: its parts in one module, with what the tests name exported besides.

import { readFileSync } from "node:fs";

const place = new URL("../../../../workbench/viz/dashboard/", import.meta.url);
const [, names] = /^PARTS = (\[[^\]]*\])$/m.exec(readFileSync(new URL("front.py", place), "utf8"));
const read = (name) => readFileSync(new URL(`front/${name}`, place), "utf8").replace(/^export .*$/m, "");
const parts = JSON.parse(names.replace(/,\s*\]/, "]")).map(read);
const known = [...parts.join("\n").matchAll(/^(?:function|const) (\w+)/gm)].map(([, name]) => name);
const source = `${parts.join("\n")}\nexport { ${known.join(", ")} };`;

export const front = await import(`data:text/javascript,${encodeURIComponent(source)}`);

// A model as anywidget hands one over: `tell` is the kernel speaking, `sent` what it was told.
export function makeModel() {
  const heard = new Set();
  return {
    sent: [],
    state: {},
    get(name) {
      return this.state[name];
    },
    set(name, value) {
      this.state[name] = value;
    },
    save_changes() {},
    send(content) {
      this.sent.push(content);
    },
    on: (_, callback) => heard.add(callback),
    off: (_, callback) => heard.delete(callback),
    tell: (content, buffers) => heard.forEach((callback) => callback(content, buffers)),
    listeners: heard,
  };
}

// A float32 table as it comes out of a message: it may begin at any byte.
export function table(...rows) {
  const numbers = new Uint8Array(Float32Array.from(rows.flat()).buffer);
  const message = new Uint8Array(numbers.length + 1);
  message.set(numbers, 1);
  return new DataView(message.buffer, 1);
}

export const META = {
  name: "study", hyperparameters: ["lr"], fields: [], outcomes: ["done", "held", "lost"], rates: ["frames_per_s", "pps"], expected: [4, 3], minimum: [2, 1],
  phases_on_light: ["#111111", "#222222"], phases_on_dark: ["#888888", "#999999"], minimise: false, states: { running: "#0a0", stopped: "#a00", finished: "#00a" },
};

export function trial(number, more) {
  return { trial: number, state: "running", in_phase: true, pips: "", config: { lr: 0.1 }, phases: 0, last: null, best: null, parent: null, candidate: null, why: "", ...more };
}

export function message(type, number, more) {
  const empty = { trials: [], rates: [false, []], log: [], dropped: [], at_s: 10, state: "running", slots: [], survival: [], best: [] };
  return { type, number, ...(type === "snapshot" ? { meta: structuredClone(META) } : {}), ...empty, ...more };
}

export const NOTHING = [table(), table()];

// A canvas whose pen remembers: [name, ...arguments] of every call.
export function makeCanvas(width = 640) {
  const calls = [];
  const pen = new Proxy({ measureText: (words) => ({ width: 6 * words.length }) }, {
    get: (own, name) => own[name] ?? ((...given) => void calls.push([name, ...given])),
  });
  const canvas = { parentElement: { clientWidth: width }, style: {}, width: 0, height: 0, getContext: () => pen };
  return { canvas, calls, words: () => calls.filter(([name]) => name === "fillText").map(([, words]) => words) };
}
