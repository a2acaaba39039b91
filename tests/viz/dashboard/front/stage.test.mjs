// What all pages share: which keys are theirs, and who looks at a model.

import assert from "node:assert/strict";
import { test } from "node:test";

import { front, makeModel } from "./front.mjs";

// Whether the notebook hears of a key that is pressed on an element of this name.
function heard(name, keys) {
  const [key, ...held] = keys.split("+").reverse();
  let goesOn = true;
  const target = { matches: (names) => names.split(", ").includes(name) };
  const modifiers = Object.fromEntries(["ctrl", "alt", "meta", "shift"].map((each) => [`${each}Key`, held.includes(each)]));
  front.keepKey({ key, target, ...modifiers, stopPropagation: () => (goesOn = false) });
  return goesOn;
}

test("a page keeps the keys by which a notebook cuts, turns and moves cells, wherever they are pressed", () => {
  for (const name of ["div", "select", "input", "button"]) {
    for (const keys of ["x", "m", "Enter", "ArrowDown", "shift+ArrowDown", "shift+M", "PageUp", "Tab"]) assert.ok(!heard(name, keys), `${keys} on ${name}`);
    for (const keys of ["ctrl+s", "meta+s", "alt+1", "Escape"]) assert.ok(heard(name, keys), `${keys} on ${name}`);
  }
});

test("a field undoes what is typed into it, and runs no cell", () => {
  for (const keys of ["shift+Enter", "ctrl+Enter", "ctrl+z", "ctrl+shift+Z", "ctrl+y"]) {
    assert.deepEqual(["input", "textarea", "select", "div"].map((name) => heard(name, keys)), [false, false, true, true], keys);
  }
});

test("the last view of a model that leaves a page tells the kernel, and no other does", (t) => {
  t.mock.method(globalThis, "setTimeout", () => 1);
  const handles = [makeModel(), makeModel()];
  for (const handle of handles) handle.state._key = "key";
  const leaves = handles.map((handle) => front.join(handle).leave);
  const told = () => handles.map(({ sent }) => sent.filter(({ type }) => type === "unseen").length);
  leaves[0]();
  assert.deepEqual(told(), [0, 0]);
  leaves[1]();
  assert.deepEqual(told(), [0, 1]);
});

test("a view leaves though nobody is there to be told", (t) => {
  t.mock.method(globalThis, "setTimeout", () => 1);
  const handle = makeModel();
  const { leave } = front.join(handle);
  handle.send = () => {
    throw new Error("the kernel is gone");
  };
  leave();
  assert.equal(handle.listeners.size, 0);
});
