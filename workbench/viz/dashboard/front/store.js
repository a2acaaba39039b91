// What the kernel has told about a study. One store a model, whatever the number of views: a view that is attached
// late, or a page that is loaded again, draws what the kernel knows, not what it happened to hear.

const RETRY_MS = 1500;
const SILENT_MS = 6000; // a kernel that lives says something whenever it looks at the log, also while a cell runs
const MOST_POINTS = 120000; // of all trials; more are thinned, and extremes stay

// How long a kernel that lives may be silent: it says how often it looks.
function patience(model) {
  return Math.max(SILENT_MS, 3000 * (model.get("_every") ?? 0));
}

// Waits for the kernel's next word: buttons lead nowhere and numbers grow old when it is gone; it may come back. What
// `heard` has as `silent` changes by it; `wait` gives the longest silence in ms, null where no more is to come.
function makeEar(heard, wait, changed) {
  let timer = null;
  const fallSilent = () => {
    heard.silent = true;
    changed();
  };
  return {
    listen() {
      clearTimeout(timer);
      const was = heard.silent;
      heard.silent = false;
      const ms = wait();
      if (ms !== null) timer = setTimeout(fallSilent, ms);
      if (was) changed();
    },
    close: () => clearTimeout(timer),
  };
}

function wordsOf(action, trial) {
  return trial === null || trial === undefined ? action : `${action} trial ${trial}`;
}

function makeStore(model) {
  const store = {
    model: null, // the handle that it hears and speaks through
    number: null, // of the last message applied; null while waiting for a snapshot
    now: null, // the small things: state, clock, counts, slots, survival, best
    meta: null,
    trials: new Map(), // trial → row; `told` is its state but for the study's
    spans: [], // index → {slot, trial, phase, from, to, outcome}
    curves: new Map(), // trial → {x: [], y: [], end: [], frames: [], from: []}
    rates: [], // samples: seconds, then a value a name in meta.rates
    log: [], // lines, each of a list: decisions, continues or troubles
    wished: [], // what the kernel has not even heard of: a running cell may hold it up
    asked: new Map(), // request → what a person asked here, until the log answers
    refused: "", // why the last wish could not even be sent
    changed: new Set(), // callbacks
    heardAt: null, // of the last word of the kernel: a Date
    version: 0, // of the trials: counts up when any of them has changed
    silent: false, // whether it has been silent for too long, though there is more to come
  };
  let timer = null;
  const undone = []; // what to do if a wish is refused: in the order of `wished`
  const tell = () => store.changed.forEach((callback) => callback());
  const over = () => store.now?.state === "ended" && !store.wished.length; // then the kernel has no more to say
  const ear = makeEar(store, () => (over() ? null : patience(store.model)), tell);

  function ask() {
    if (timer !== null) return;
    store.number = null;
    store.model.send({ type: "snapshot" });
    timer = setTimeout(() => {
      timer = null;
      if (store.number === null) ask();
    }, RETRY_MS);
  }

  function hear(head, buffers) {
    const content = buffers?.[2] ? { ...head, ...unpacked(buffers[2]) } : head;
    store.heardAt = new Date();
    ear.listen();
    if (content.type === "seen?") return store.model.send({ type: "seen" });
    if (content.type === "asked" || content.type === "refused") return answered(content);
    if (content.type === "snapshot") {
      store.trials.clear();
      store.curves.clear();
      store.spans = [];
      store.log = [];
      clearTimeout(timer);
      timer = null;
    } else if (store.number === null) {
      return; // a snapshot is on its way
    } else if (content.number !== store.number + (content.type === "delta" ? 1 : 0)) {
      ask(); // something was dropped between the kernel and here
      return;
    }
    store.number = content.number;
    if (content.type === "beat") return; // nothing to draw anew
    apply(store, content, buffers);
    ear.listen();
    tell();
  }

  function answered({ type, why, request, action, trial }) {
    store.wished.shift();
    const undo = undone.shift();
    ear.listen();
    store.refused = type === "refused" ? why : "";
    if (store.refused) undo?.();
    const there = store.log.some((line) => line.request === request); // the log may have been faster
    if (type === "asked" && !there) store.asked.set(request, wordsOf(action, trial));
    tell();
  }

  // Whether this was asked last and waits for its answer: asked again, it would be refused.
  store.awaits = (action, trial) => [...store.asked.values(), ...store.wished].at(-1) === wordsOf(action, trial);

  store.wish = (action, more, undo) => {
    store.refused = "";
    store.wished.push(wordsOf(action, more?.trial));
    undone.push(undo);
    store.model.send({ type: "ask", action, ...more });
    if (store.now?.state === "ended" && !store.silent) ear.listen(); // for an answer
    tell();
  };

  // Hear through another handle on the same model; what was missed meanwhile comes with a snapshot.
  store.attach = (handle) => {
    store.model?.off("msg:custom", hear);
    store.model = handle;
    handle.on("msg:custom", hear);
    clearTimeout(timer);
    timer = null;
    ask();
    ear.listen();
  };
  store.close = () => {
    ear.close();
    clearTimeout(timer);
    store.model.off("msg:custom", hear);
  };
  store.attach(model);
  return store;
}

// How a trial stands in a study that stands so, within a phase or not, as workbench.core.ledger.standing_in.
function standingIn(study, trial, inPhase) {
  if (trial !== "running" || study === "running") return trial;
  if (study === "paused") return inPhase ? trial : "set aside";
  return "cut off";
}

// A trial does not run where nothing does, and does again when its study goes on: no row comes of it either time.
function stand(store) {
  for (const trial of store.trials.values()) {
    const state = standingIn(store.now.state, trial.told, trial.in_phase);
    if (state === trial.state) continue;
    trial.state = state;
    store.version++;
  }
}

function apply(store, content, buffers) {
  const { trials, meta, ...small } = content; // of the small things a delta tells those that have changed
  if (meta) store.meta = meta;
  store.now = content.type === "delta" ? { ...store.now, ...small } : small;
  if (trials.length || meta) store.version++;
  for (const trial of trials) store.trials.set(trial.trial, { ...trial, told: trial.state });
  stand(store);
  const [anew, samples] = content.rates;
  store.rates = anew ? samples : store.rates.concat(samples);
  const forgotten = new Set(content.void ?? []); // lines whose place another took
  if (forgotten.size) store.log = store.log.filter((line) => !forgotten.has(line.n));
  store.log.push(...content.log);
  for (const line of content.log) store.asked.delete(line.request);
  if (store.log.length > 1200) store.log = latestOf(store.log, 300);
  const spans = floats(buffers[0]);
  for (let k = 0; k < spans.length; k += 7) {
    const [index, slot, trial, phase, from, to, outcome] = spans.subarray(k, k + 7);
    store.spans[index] = { slot, trial, phase, from, to, outcome: store.meta.outcomes[outcome] };
  }
  for (const trial of content.dropped ?? []) store.curves.delete(trial);
  const points = floats(buffers[1]);
  const most = Math.max(64, MOST_POINTS / Math.max(1, store.trials.size));
  for (let k = 0; k < points.length; k += 6) {
    const trial = points[k];
    if (!store.curves.has(trial)) store.curves.set(trial, { x: [], y: [], end: [], frames: [], from: [] });
    const curve = store.curves.get(trial);
    curve.x.push(points[k + 1]);
    curve.y.push(points[k + 2]);
    curve.end.push(points[k + 3] > 0);
    curve.frames.push(points[k + 4]);
    curve.from.push(points[k + 5]); // the x where its phase began
    if (curve.x.length <= Math.max(most, curve.full ?? 0)) continue;
    const kept = thinned(curve);
    store.curves.set(trial, { ...kept, full: 2 * kept.x.length }); // the ends of many phases are more, and stay
  }
}

// The latest lines of each list, so many, in the order in which they came.
function latestOf(log, most) {
  const counts = new Map();
  const kept = [...log].reverse().filter(({ list }) => {
    counts.set(list, (counts.get(list) ?? 0) + 1);
    return counts.get(list) <= most;
  });
  return kept.reverse();
}

function unpacked(view) {
  return JSON.parse(new TextDecoder().decode(view));
}

// A buffer may begin anywhere in a message; float32 must begin at a multiple of four.
function floats(view) {
  return new Float32Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

// Half the points: of every four, the lowest and the highest, and all ends of phases.
function thinned(curve) {
  const kept = { x: [], y: [], end: [], frames: [], from: [] };
  for (let k = 0; k < curve.x.length; k += 4) {
    const group = [k, k + 1, k + 2, k + 3].filter((j) => j < curve.x.length);
    const low = group.reduce((a, b) => (curve.y[b] < curve.y[a] ? b : a));
    const high = group.reduce((a, b) => (curve.y[b] > curve.y[a] ? b : a));
    for (const j of group) {
      if (j !== low && j !== high && !curve.end[j]) continue;
      for (const column of Object.keys(kept)) kept[column].push(curve[column][j]);
    }
  }
  return kept;
}
