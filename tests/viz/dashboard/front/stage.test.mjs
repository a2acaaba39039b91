// What all pages share: which keys are theirs.

import assert from "node:assert/strict";
import { test } from "node:test";

import { front } from "./front.mjs";

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
