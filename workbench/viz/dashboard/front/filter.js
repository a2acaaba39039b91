// One filter for every view: a line of words that anyone can read, write and share. `state:running lr>1e-3 -adam top:10`.
// Brushes, legends and zooms write into the same line.

const COMPARED = /^([^\s<>=:]+)(<=|>=|<|>|=|:)(.*)$/;

// The numbers of a trial that can be asked for, besides its hyperparameters.
const MEASURES = { score: (t) => t.last, last: (t) => t.last, best: (t) => t.best, phases: (t) => t.phases, rank: (t) => t.rank, trial: (t) => t.trial };

// What else can be asked for, and the signs it knows; after another sign the name is a hyperparameter's or nobody's.
const ASKED = { state: ":=", tag: ":=", time: ":", top: ":" };

// A name as people write it: in full, as a beginning, or by the first letters of its words (lr for learning_rate).
function nameOf(key, names) {
  if (Object.hasOwn(MEASURES, key) || names.includes(key)) return key;
  const initials = (name) => name.split(/[_\W]+/).map((word) => word[0]).join("");
  const meant = [(n) => n.startsWith(key), (n) => initials(n) === key].map((fits) => names.filter(fits)).find((found) => found.length === 1);
  return meant ? meant[0] : null;
}

function valueOf(trial, name) {
  return Object.hasOwn(MEASURES, name) ? MEASURES[name](trial) : trial.config[name];
}

// Whether the filter means this hyperparameter by `name:`, and not what else has that name, or nothing at all.
function canBeAsked(name) {
  return COMPARED.exec(`${name}:`)?.[1] === name && !name.startsWith("-") && !Object.hasOwn(MEASURES, name) && !Object.hasOwn(ASKED, name);
}

// Whether a trial has it: a score comes with its first phase, and some hyperparameters apply to some trials only.
function hasValue(trial, name) {
  return ![null, undefined].includes(valueOf(trial, name));
}

// "3,5-9" as a test of numbers; of no number, nothing passes.
function numbersIn(words) {
  const written = words.split(",").filter(Boolean);
  if (!written.every((part) => /^\d+(-\d+)?$/.test(part))) return null;
  const parts = written.map((part) => part.split("-").map(Number));
  return (n) => parts.some(([from, to = from]) => n >= from && n <= to);
}

// "60..300" as two ends, either of which may be left open; null if they are no numbers.
function rangeIn(words) {
  const [low, high = low, ...more] = words.split("..");
  if (more.length || [low, high].some((end) => Number.isNaN(Number(end)))) return null;
  return { low: low === "" ? -Infinity : Number(low), high: high === "" ? Infinity : Number(high) };
}

function comparison(name, sign, words) {
  const limit = Number(words);
  const than = { "<": (v) => v < limit, ">": (v) => v > limit, "<=": (v) => v <= limit, ">=": (v) => v >= limit }[sign];
  if (than) return words !== "" && Number.isFinite(limit) ? (t) => hasValue(t, name) && than(valueOf(t, name)) : null;
  if (words.includes("..")) {
    const range = rangeIn(words);
    return range && ((t) => hasValue(t, name) && valueOf(t, name) >= range.low && valueOf(t, name) <= range.high);
  }
  const wanted = words.toLowerCase().split(",");
  const fits = (value, word) => {
    if (Number.isFinite(Number(word)) && word !== "") return Number(word) === Number(value);
    const said = String(value).toLowerCase();
    return sign === "=" ? said === word : said.startsWith(word);
  };
  return (t) => hasValue(t, name) && wanted.some((word) => fits(valueOf(t, name), word));
}

function textOf(trial) {
  return [trial.trial, trial.state, trial.why, trial.error, ...(trial.tags ?? []), ...(trial.notes ?? []).map(({ text }) => text), ...Object.entries(trial.config).map(([name, value]) => `${name}=${value}`)].join(" ").toLowerCase();
}

function testOf(token, names) {
  const found = COMPARED.exec(token);
  if (!found) return (t) => textOf(t).includes(token.toLowerCase());
  const [, key, sign, words] = found;
  if (Object.hasOwn(ASKED, key) && ASKED[key].includes(sign)) return asked(key, words);
  const name = nameOf(key, names);
  if (name === null) return null;
  if (name === "trial" && sign === ":" && !words.includes("..")) {
    const among = numbersIn(words);
    return among && ((t) => among(t.trial));
  }
  return comparison(name, sign, words);
}

// A test of what is neither a measure nor a hyperparameter; null: not understood, as `top` without a number.
function asked(key, words) {
  const wanted = words.toLowerCase().split(",");
  if (key === "tag") return (t) => (t.tags ?? []).some((tag) => wanted.includes(tag.toLowerCase()));
  if (key === "state") return (t) => wanted.includes(t.state.replace(" ", "-"));
  const range = key === "time" ? rangeIn(words) : null;
  return range && ((t, spans) => (spans.get(t.trial) ?? []).some(({ from, to }) => from <= range.high && !(to < range.low)));
}

// Read a filter: tests that all must hold, how many of the best to keep and to leave out, what could not be understood:
// times, too, where it is not told when trials ran (`timed`).
function parseFilter(query, names, timed = true) {
  const read = { tests: [], top: null, butTop: null, problem: "" };
  for (const token of query.split(/\s+/).filter(Boolean)) {
    const no = token.startsWith("-") && token.length > 1;
    const plain = no ? token.slice(1) : token;
    const top = /^top:(\d+)$/.exec(plain);
    const test = top || (!timed && plain.startsWith("time:")) ? null : testOf(plain, names);
    if (top) read[no ? "butTop" : "top"] = Number(top[1]);
    else if (test) read.tests.push(no ? (...given) => !test(...given) : test);
    else read.problem = `not understood: ${token}`;
  }
  return read;
}

// Put a token in the place of those that begin alike; an empty one only takes them out.
function withToken(query, begin, token) {
  const rest = query.split(/\s+/).filter((word) => word && !word.startsWith(begin));
  return [...rest, token].filter(Boolean).join(" ");
}

// Trial numbers as words, runs of them short: 3,5-9.
function listed(numbers) {
  const runs = [];
  for (const n of [...numbers].sort((a, b) => a - b)) {
    const last = runs[runs.length - 1];
    if (last && last[1] === n - 1) last[1] = n;
    else runs.push([n, n]);
  }
  return runs.map(([from, to]) => (from === to ? from : `${from}-${to}`)).join(",");
}
