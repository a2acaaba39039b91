// What is visible and what is selected: one filter, one order and one selection for all views of a study, kept in the
// model, so that Python reads and sets them too.

const BY_RANK = { by: "rank", down: false };
const SET = "config."; // what begins a sorting by a hyperparameter: one may be called `best`

function sortValue(trial, by) {
  if (by === "state" || by === "why") return trial[by];
  return (by.startsWith(SET) ? trial.config[by.slice(SET.length)] : MEASURES[by](trial)) ?? null;
}

function inOrder(trials, { by, down }) {
  const sign = down ? -1 : 1;
  return [...trials].sort((a, b) => {
    const [va, vb] = [sortValue(a, by), sortValue(b, by)];
    if (va === null || vb === null) return (va === null) - (vb === null) || a.trial - b.trial;
    const order = typeof va === "number" && typeof vb === "number" ? va - vb : String(va).localeCompare(String(vb));
    return sign * order || a.trial - b.trial;
  });
}

// Whether a trial is one of the search: those that confirm others tell of these, not of what was tried.
function searches(trial) {
  return !trial?.confirms;
}

// Give every trial its rank by its last score, the best first; those without a score come last, and those that confirm others.
function rank(store) {
  const sign = store.meta.minimise ? -1 : 1;
  const lost = -sign * Infinity;
  const scoreOf = (trial) => (searches(trial) ? (trial.last ?? lost) : lost);
  const scored = [...store.trials.values()].sort((a, b) => sign * (scoreOf(b) - scoreOf(a)) || a.trial - b.trial);
  scored.forEach((trial, k) => (trial.rank = scoreOf(trial) === lost ? null : k + 1));
}

// Of these trials the best, so many, but for the very best of them, so many; null: no such limit.
function amongBest(trials, top, butTop) {
  const best = inOrder(trials.filter((t) => t.rank !== null), BY_RANK);
  const out = new Set(best.slice(0, butTop ?? 0));
  return (top === null ? trials : best.slice(0, top)).filter((t) => !out.has(t));
}

function makeSelection(model, store) {
  let [known, chosen] = [null, new Set()]; // what the model holds, as a set
  const own = {
    sort: BY_RANK,
    order: [], // visible trials as the table has them
    among: null, // the same as a set of numbers; null: every trial
    problem: "", // of the filter
    // Asked of the model: a click or key may follow another, or what Python sets, before the next frame.
    get selected() {
      const numbers = model.get("selected") ?? known;
      if (numbers !== known) [known, chosen] = [numbers, new Set(numbers)];
      return chosen;
    },
    touched: false, // by a person since it was drawn: then it is drawn at once
    filter: () => model.get("filter") ?? "",
    visible: (number) => own.among === null || own.among.has(number),
    focus: () => [...own.selected].pop() ?? null, // the one selected last
  };

  let reckoned = ""; // of what the order was reckoned last

  // Reckon anew what is visible, if trials, filter or order have changed.
  own.update = () => {
    const key = [store.version, own.sort.by, own.sort.down, own.filter().includes("time:") ? store.now.at_s : "", own.filter()].join("/");
    if (key === reckoned) return;
    reckoned = key;
    rank(store);
    const { tests, top, butTop, problem } = parseFilter(own.filter(), store.meta.hyperparameters, !store.now.studies);
    own.problem = problem;
    const spans = own.filter().includes("time:") ? spansByTrial(store) : new Map();
    let found = [...store.trials.values()].filter((trial) => tests.every((test) => test(trial, spans)));
    const ranked = top !== null || butTop !== null;
    if (ranked) found = amongBest(found, top, butTop);
    own.order = inOrder(found, own.sort);
    own.among = tests.length || ranked ? new Set(found.map((t) => t.trial)) : null;
    tell();
  };

  function tell() {
    if (store.now.partial) return; // the other trials are on their way
    const plain = own.among === null && own.sort === BY_RANK;
    const told = plain ? null : own.order.map((t) => t.trial);
    if (JSON.stringify(told) === JSON.stringify(model.get("visible") ?? null)) return;
    model.set("visible", told);
    model.save_changes();
  }

  own.setFilter = (query) => {
    model.set("filter", query);
    model.save_changes();
  };
  own.brush = (begin, token) => own.setFilter(withToken(own.filter(), begin, token));
  // A column's first click sorts by it, the second turns it round, the third goes back to the ranks.
  own.setSort = (by) => {
    const first = ["last", "best", "phases"].includes(by) && !store.meta.minimise;
    if (own.sort.by !== by || by === "rank") own.sort = by === "rank" ? BY_RANK : { by, down: first };
    else own.sort = own.sort.down === first ? { by, down: !first } : BY_RANK;
    own.touched = true;
    for (const callback of store.changed) callback();
  };
  own.select = (numbers) => {
    model.set("selected", [...numbers]);
    model.save_changes();
  };
  // A click: alone it selects one, or nothing where that one was selected; with `add` it adds or takes away.
  own.choose = (number, add) => {
    const had = own.selected.has(number);
    if (add) own.select(had ? [...own.selected].filter((n) => n !== number) : [...own.selected, number]);
    else own.select(had && own.selected.size === 1 ? [] : [number]);
  };
  return own;
}

function spansByTrial(store) {
  const found = new Map();
  for (const bar of store.spans) {
    if (!bar) continue;
    if (!found.has(bar.trial)) found.set(bar.trial, []);
    found.get(bar.trial).push(bar);
  }
  return found;
}
