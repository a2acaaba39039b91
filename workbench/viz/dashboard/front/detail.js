// What is selected: one trial in full, or several side by side where they differ.

const MOST_BESIDE = 6; // trials side by side; of more the first ones

function makeDetail(parent, store, own) {
  const facing = make("div", "wb-detail", parent);
  facing.tabIndex = 0; // it scrolls
  facing.setAttribute("role", "group");
  facing.setAttribute("aria-label", "selected trials");
  const one = (trial) => {
    make("h4", "", facing, `Trial ${trial.trial}: ${trial.state}`);
    const rows = [["rank", trial.rank ?? "–"], ["phases ended", trial.phases], ["last score", short(trial.last ?? NaN)], ["best score", short(trial.best ?? NaN)]];
    if (trial.parent !== null) rows.push(["comes from", `trial ${trial.parent}`]); // its weights, or a clone's configuration
    if (trial.candidate !== null) rows.push([trial.confirms ? "confirms" : "seed of", `trial ${trial.candidate}`]); // one configuration
    if (trial.why) rows.push(["last verdict", trial.why]);
    if (trial.error) rows.push(["error", trial.error]);
    for (const [name, value] of Object.entries(trial.config)) rows.push([name, written(value)]);
    const table = make("table", "", facing);
    for (const [name, value] of rows) {
      const row = make("tr", "", table);
      make("th", "", row, name).scope = "row";
      make("td", "", row, String(value));
    }
  };
  const many = (trials, all) => {
    const { same, rows } = differences(trials);
    make("h4", "", facing, `${all} trials selected${all > trials.length ? `, the first ${trials.length} shown` : ""}`);
    const table = make("table", "wb-beside", facing);
    const body = bodyUnder(table, ["", ...trials.map((t) => `trial ${t.trial}`)]);
    for (const [name, values] of rows) {
      const row = make("tr", "", body);
      make("th", "", row, name).scope = "row";
      for (const value of values) make("td", Number.isNaN(Number(value)) ? "" : "wb-whole", row, value);
    }
    make("p", "wb-soft", facing, same.length ? `the same in all: ${same.join(", ")}` : "no hyperparameter is the same in all");
  };
  const shown = whenChanged((trials, all) => {
    facing.replaceChildren();
    if (!trials.length) {
      make("h4", "", facing, "No trial selected");
      make("p", "wb-soft", facing, "Click a row, a bar, a curve or a point; with Ctrl or Shift for several. Arrows move, Escape clears, / filters.");
    } else if (trials.length === 1) one(trials[0]);
    else many(trials, all);
  });
  return () => {
    const chosen = [...own.selected].map((n) => store.trials.get(n)).filter(Boolean);
    shown(chosen.slice(0, MOST_BESIDE), chosen.length);
  };
}

// What trials have in common, in words, and rows of where they differ: name, then a value a trial.
function differences(trials) {
  const names = [...new Set(trials.flatMap((t) => Object.keys(t.config)))];
  const differs = (name) => new Set(trials.map((t) => t.config[name])).size > 1;
  const measured = [["state", (t) => t.state], ["phases", (t) => written(t.phases)], ["last score", (t) => short(t.last ?? NaN)], ["best score", (t) => short(t.best ?? NaN)]];
  return {
    same: names.filter((name) => !differs(name)).map((name) => `${name} = ${written(trials[0].config[name])}`),
    rows: [...measured.map(([name, of]) => [name, trials.map(of)]), ...names.filter(differs).map((name) => [name, trials.map((t) => written(t.config[name]))])],
  };
}
