// The trial table: an ARIA grid that draws only the rows in sight, whatever their number.

const ROW = 22; // pixels
const SPARE = 4; // rows drawn beyond either edge
const MARKS = { running: "▶", "cut off": "▷", held: "◆", paused: "∥", "set aside": "◇", stopped: "■", finished: "●", failed: "✕" };
const PIPS = { c: ["continued", "●"], s: ["stopped", "■"], f: ["finished", "★"], x: ["failed", "✕"], r: ["running", "▷"], h: ["held", "◆"], p: ["paused", "∥"] };

function columnsOf(store) {
  const score = (name, key) => ({ name, by: key, width: "76px", number: true, fill: (cell, t) => (cell.textContent = short(t[key] ?? NaN)) });
  return [
    { name: "rank", by: "rank", width: "58px", number: true, fill: (cell, t) => (cell.textContent = t.rank ?? "–") },
    { name: "trial", by: "trial", width: "44px", number: true, fill: (cell, t) => (cell.textContent = t.label ?? t.trial) },
    { name: "state", by: "state", width: "82px", fill: stateCell },
    { name: "phases", by: "phases", width: "78px", fill: pipCell },
    { name: "curve", width: "74px", fill: (cell, t) => sparkline(cell, store, t) },
    score("last", "last"),
    score("best", "best"),
    ...store.meta.hyperparameters.map((name, k) => ({ name, by: SET + name, width: `minmax(${k ? 76 : firstRoom(store)}px, 1fr)`, number: true, fill: (cell, t, scales) => valueCell(cell, t.config[name], scales.get(name)) })),
    ...(remarked(store) ? [{ name: "tags", width: "minmax(60px, 0.8fr)", fill: tagCell }] : []),
    { name: "verdict", by: "why", width: "minmax(120px, 2.2fr)", fill: (cell, t) => (cell.textContent = t.state === "failed" ? t.error : t.why) },
  ];
}

// In a comparison the first column names the studies: of one of many signs its end may be what tells it from another.
function firstRoom({ now }) {
  return Math.max(76, Math.min(220, 10 + 7.5 * Math.max(0, ...(now.studies ?? []).map(({ name }) => name.length))));
}

function remarked(store) {
  for (const t of store.trials.values()) if (t.tags?.length || t.notes?.length) return true;
  return false;
}

function tagCell(cell, t) {
  cell.textContent = [...(t.tags ?? []), ...(t.notes?.length ? ["✎"] : [])].join(" ");
  cell.title = (t.notes ?? []).map(({ text }) => text).join("\n");
}

function stateCell(cell, t) {
  cell.dataset.state = t.state;
  cell.textContent = `${MARKS[t.state] ?? ""} ${t.state}`;
}

function pipCell(cell, t) {
  cell.replaceChildren();
  cell.setAttribute("aria-label", [...t.pips].map((pip, phase) => `phase ${phase} ${PIPS[pip]?.[0] ?? ""}`).join(", ") || "no phase");
  const pips = [...t.pips];
  const last = pips.length > 99 ? 3 : pips.length > 6 ? 4 : 6; // what the column has room for
  if (pips.length > last) make("span", "wb-soft", cell, `+${pips.length - last}`);
  for (const pip of pips.slice(-last)) make("i", `wb-pip wb-pip-${pip}`, cell, PIPS[pip]?.[1] ?? "·");
}

const SVG = "http\u003a//www.w3.org/2000/svg"; // a name, not an address: nothing is loaded

function sparkline(cell, store, t) {
  const curve = store.curves.get(t.trial);
  const n = curve?.x.length ?? 0;
  const key = `${t.trial}/${n}/${n && curve.y[n - 1]}`;
  if (cell.dataset.key === key) return;
  cell.dataset.key = key;
  cell.replaceChildren();
  if (!n) return;
  const every = Math.max(1, Math.floor(n / 32));
  const at = Array.from({ length: Math.ceil(n / every) }, (_, k) => Math.min(n - 1, k * every));
  if (at[at.length - 1] !== n - 1) at.push(n - 1);
  const { low, high } = span(at.map((k) => curve.y[k]), { low: 0, high: 1 });
  const [from, to] = [curve.x[0], curve.x[n - 1]];
  const place = (k) => `${(1 + (62 * (curve.x[k] - from)) / (to - from || 1)).toFixed(1)},${(15 - (14 * (curve.y[k] - low)) / (high - low)).toFixed(1)}`;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 64 16");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, n > 1 ? "polyline" : "circle");
  if (n > 1) line.setAttribute("points", at.filter((k) => !Number.isNaN(curve.y[k])).map(place).join(" "));
  else for (const [name, value] of [["cx", 32], ["cy", 8], ["r", 2]]) line.setAttribute(name, value);
  svg.append(line);
  cell.append(svg);
}

function valueCell(cell, value, scale) {
  cell.textContent = written(value);
  const share = scale?.(value) ?? null;
  cell.style.setProperty("--wb-share", share === null ? "0%" : `${(100 * share).toFixed(1)}%`);
}

// How far along its range a value of a hyperparameter lies, 0.04 to 1; of words nothing is said.
function scalesOf(store) {
  const scales = new Map();
  for (const name of store.meta.hyperparameters) {
    const numbers = [...store.trials.values()].map((t) => t.config[name]).filter((v) => typeof v === "number");
    const range = numbers.length ? rangeOf({ ...kindOf(numbers), named: false }) : null;
    if (range) scales.set(name, (v) => (typeof v === "number" ? 0.04 + 0.96 * range.share(v) : null));
  }
  return scales;
}

function makeTable(parent, store, own) {
  const grid = make("div", "wb-table", parent);
  grid.setAttribute("role", "grid");
  grid.setAttribute("aria-label", "trials");
  grid.setAttribute("aria-multiselectable", "true");
  grid.tabIndex = 0;
  const head = make("div", "wb-row wb-head", make("div", "wb-rowgroup", grid));
  head.parentElement.setAttribute("role", "rowgroup");
  head.setAttribute("role", "row");
  const body = make("div", "wb-body", grid);
  body.setAttribute("role", "rowgroup");
  const id = `wb-row-${Math.random().toString(36).slice(2)}`; // ids must be unique in a page of many dashboards
  const rows = []; // elements, taken again for other trials as the table is scrolled
  let columns = [];
  let scales = new Map();
  let [scaled, known] = [-1, ""]; // trials that the scales are of, and the columns
  let anchor = null; // the trial last clicked or reached by keys without Shift: stretches begin there
  let due = 0;
  let pool = 0; // rows there are elements for
  let version = 0; // of what the rows show

  const headed = whenChanged((names, by, down) => {
    const before = head.getRootNode().activeElement;
    const focused = head.contains(before) && before.dataset.by;
    head.replaceChildren();
    for (const column of columns) {
      const cell = make("div", column.number ? "wb-number" : "", head);
      cell.setAttribute("role", "columnheader");
      cell.setAttribute("aria-sort", by !== column.by ? "none" : down ? "descending" : "ascending");
      const words = `${column.name}${by === column.by ? (down ? " ▼" : " ▲") : ""}`;
      if (!column.by) cell.textContent = words;
      else {
        const made = button(cell, words, `sort by ${column.name}`, () => own.setSort(column.by));
        made.dataset.by = column.by;
        if (column.by === focused) made.focus({ preventScroll: true });
      }
    }
    const template = columns.map((c) => c.width).join(" ");
    grid.style.setProperty("--wb-columns", template);
    const least = columns.map((c) => parseFloat(c.width.replace("minmax(", ""))).reduce((sum, pixels) => sum + pixels);
    grid.style.setProperty("--wb-least", `${least}px`); // or what lies beyond a row's end cannot be scrolled to
    grid.setAttribute("aria-colcount", String(names.length));
    rows.splice(0).forEach((row) => row?.remove());
  });

  function rowElement(k) {
    if (rows[k]) return rows[k];
    const row = make("div", "wb-row", body);
    row.setAttribute("role", "row");
    columns.forEach((column) => make("div", column.number ? "wb-number" : "", row).setAttribute("role", "gridcell"));
    row.onclick = (event) => choose(Number(row.dataset.trial), event);
    return (rows[k] = row);
  }

  const current = () => own.focus() ?? anchor; // the trial reached last, here or elsewhere: arrows leave from it
  const placeOf = (trial) => own.order.findIndex((t) => t.trial === trial);

  function choose(trial, event) {
    if (event.shiftKey && stretch(trial)) return;
    anchor = trial;
    own.choose(trial, event.ctrlKey || event.metaKey);
    grid.focus({ preventScroll: true });
  }

  // Select all from the anchor, or from the last of those selected elsewhere since, to a trial; false: an end is filtered out.
  function stretch(trial) {
    const from = own.selected.has(anchor) ? anchor : current();
    const [a, b] = [from, trial].map(placeOf).sort((x, y) => x - y);
    if (a < 0) return false;
    anchor = from;
    const between = own.order.slice(a, b + 1).map((t) => t.trial);
    own.select([...between.filter((n) => n !== trial), trial]); // at the end stands the trial that buttons act on
    return true;
  }

  // A row keeps its element as long as it is in sight, so that scrolling writes only the rows that come into it.
  function paint() {
    due = 0;
    const first = Math.max(0, Math.floor(grid.scrollTop / ROW) - SPARE);
    const last = Math.min(own.order.length, Math.ceil((grid.scrollTop + grid.clientHeight) / ROW) + SPARE);
    if (last - first > pool) [pool, version] = [last - first, version + 1];
    const used = new Set();
    for (let k = first; k < last; k++) {
      const row = rowElement(k % pool);
      used.add(row);
      const key = `${version}/${k}`;
      if (row.dataset.key === key) continue;
      row.dataset.key = key;
      const trial = own.order[k];
      row.hidden = false;
      row.style.transform = `translateY(${k * ROW}px)`;
      row.dataset.trial = trial.trial;
      row.id = `${id}-${trial.trial}`;
      row.setAttribute("aria-rowindex", String(k + 2));
      row.setAttribute("aria-selected", String(own.selected.has(trial.trial)));
      columns.forEach((column, c) => column.fill(row.children[c], trial, scales));
    }
    for (const row of rows) {
      if (!row || used.has(row)) continue;
      row.hidden = true;
      row.removeAttribute("id");
      delete row.dataset.key;
    }
    const at = current();
    const shown = at !== null && rows.some((row) => row && !row.hidden && Number(row.dataset.trial) === at);
    if (shown) grid.setAttribute("aria-activedescendant", `${id}-${at}`);
    else grid.removeAttribute("aria-activedescendant");
  }

  grid.onscroll = () => {
    if (!due) due = requestAnimationFrame(paint);
  };

  function move(by, extended) {
    own.update(); // filter and order may be newer than what is drawn
    const at = placeOf(current());
    const to = Math.max(0, Math.min(own.order.length - 1, at + by));
    const trial = own.order[to]?.trial;
    if (trial === undefined) return;
    if (!extended || !stretch(trial)) own.select([(anchor = trial)]);
    const top = to * ROW;
    const room = grid.clientHeight - 2 * ROW;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (top > grid.scrollTop + room) grid.scrollTop = top - room;
  }

  const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -Infinity, End: Infinity };
  grid.onkeydown = (event) => {
    if (event.key in STEPS) move(STEPS[event.key], event.shiftKey);
    else return;
    event.preventDefault();
  };

  return () => {
    version++;
    const names = [...store.meta.hyperparameters, remarked(store)].join();
    if (names !== known) [columns, known, scaled] = [columnsOf(store), names, -1];
    if (store.trials.size !== scaled) [scales, scaled] = [scalesOf(store), store.trials.size]; // a configuration never changes
    headed(columns.map((c) => c.name), own.sort.by, own.sort.down);
    grid.setAttribute("aria-rowcount", String(own.order.length + 1));
    body.style.height = `${own.order.length * ROW}px`;
    paint();
  };
}
