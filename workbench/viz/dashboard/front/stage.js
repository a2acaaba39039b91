// What all pages are built on: elements, figures, tabs, and one loop that draws what has changed.

const FRAME_MS = 12; // of drawing figures
const stores = new Map(); // a model's key → its store and selection: views of one model share them

function make(tag, name, parent, words) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (words !== undefined) element.textContent = words; // never HTML: words come from a log
  parent?.append(element);
  return element;
}

// Write other words into an element; the same ones leave it, and what is selected or read out of it, alone.
function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

// Give a page the colours of the states.
function dye(root, states) {
  for (const [state, color] of Object.entries(states)) root.style.setProperty(`--wb-${state.replace(" ", "-")}`, color);
}

function button(parent, words, title, act, name = "") {
  const made = make("button", name, parent, words);
  made.type = "button";
  made.title = title;
  made.onclick = act;
  return made;
}

// Give a table its line of headings, and return what its rows go into.
function bodyUnder(table, headings) {
  const head = make("tr", "", make("thead", "", table));
  for (const words of headings) make("th", "", head, words).scope = "col";
  return make("tbody", "", table);
}

// A key pressed on a page is the page's, or JupyterLab would cut and turn cells by it. To the notebook go Escape,
// Shift+Enter and what has Ctrl, Alt or Meta; but a field runs no cell, and undoes what is typed into it.
function keepKey(event) {
  const { key, target } = event;
  const theirs = event.ctrlKey || event.altKey || event.metaKey || key === "Escape" || (key === "Enter" && event.shiftKey);
  if (!theirs || (target.matches("input, textarea") && /^(enter|y|z)$/i.test(key))) event.stopPropagation();
}

// Hear of changes of some traits, one by one: not every notebook knows several names in one word.
function heed(model, traits, act) {
  const names = traits.map((name) => `change:${name}`);
  for (const name of names) model.on(name, act);
  return () => names.forEach((name) => model.off(name, act));
}

// Call `build` only when what it shows has changed: an element replaced under a pressed mouse button loses the click.
function whenChanged(build) {
  let last;
  return (...shown) => {
    const key = JSON.stringify(shown);
    if (key === last) return;
    last = key;
    build(...shown);
  };
}

function figure(parent, title, label) {
  const section = make("section", "wb-panel", parent);
  const head = make("h4", "", section, title);
  const place = make("div", "wb-place", section);
  const canvas = make("canvas", "", place);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  return { head, canvas, label };
}

function choice(parent, label, options) {
  const select = make("select", "", parent);
  select.setAttribute("aria-label", label);
  select.replaceChildren(...options.map(([value, words]) => new Option(words, value)));
  return select;
}

function toggle(parent, words, title) {
  const label = make("label", "wb-toggle", parent);
  const box = make("input", "", label);
  box.type = "checkbox";
  label.append(words);
  label.title = title;
  return box;
}

const STANDING = { paused: "paused by a person", abandoned: "its driver died: resume it" };

function gone(store) {
  if (!store.silent) return "";
  if (!store.now) return "no kernel answers: run the cell again";
  return `no word from the kernel since ${store.heardAt.toLocaleTimeString("en-GB")}: what stands here is of then. It may be dead or restarted: run the cell again`;
}

// Tabs: panels of which one is shown; arrows move among them.
function tabs(parent, names, changed) {
  const bar = make("div", "wb-tabs", parent);
  bar.setAttribute("role", "tablist");
  const id = `wb-tab-${Math.random().toString(36).slice(2)}`;
  const made = names.map((name, k) => {
    const button = make("button", "", bar, name);
    const panel = make("div", "wb-tab", parent);
    Object.assign(button, { type: "button", id: `${id}-${k}` });
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", (panel.id = `${id}-${k}-panel`));
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", button.id);
    button.onclick = () => show(k);
    return { button, panel };
  });
  function show(k) {
    made.forEach(({ button, panel }, j) => {
      button.setAttribute("aria-selected", String(j === k));
      button.tabIndex = j === k ? 0 : -1;
      panel.hidden = j !== k;
    });
    changed();
  }
  bar.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const k = (made.findIndex(({ panel }) => !panel.hidden) + step + made.length) % made.length;
    show(k);
    made[k].button.focus();
  };
  show(0);
  return made.map(({ panel }) => panel);
}

// Tips under the pointer, clicks that select, and rectangles that are dragged into the filter.
function pointed(view, root, tip, store, own) {
  const { canvas } = view;
  let from = null; // where the primary button was pressed on this figure
  const box = make("div", "wb-brush", canvas.parentElement);
  const within = (event) => {
    const frame = canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  const under = (event) => view.hit?.(...within(event)) ?? null;
  const stretch = ([x, y]) => [Math.min(x, from[0]), Math.min(y, from[1]), Math.max(x, from[0]), Math.max(y, from[1])];
  canvas.onpointerdown = (event) => {
    if (event.button) return;
    from = within(event);
    if (view.hit?.brush) canvas.setPointerCapture?.(event.pointerId);
  };
  canvas.onpointermove = (event) => {
    if (from && view.hit?.brush) {
      const [x0, y0, x1, y1] = stretch(within(event));
      box.style.display = x1 - x0 > 4 || y1 - y0 > 4 ? "block" : "none";
      Object.assign(box.style, { left: `${x0}px`, top: `${y0}px`, width: `${x1 - x0}px`, height: `${y1 - y0}px` });
    }
    const found = from ? null : under(event);
    tip.style.display = found ? "block" : "none";
    canvas.style.cursor = found?.trial != null ? "pointer" : "default";
    if (!found) return;
    tip.textContent = [found.trial === null ? null : `trial ${store.trials.get(found.trial)?.label ?? found.trial}`, ...found.words].filter((w) => w !== null).join("\n");
    const frame = root.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX - frame.left + 14, frame.width - 190)}px`;
    tip.style.top = `${event.clientY - frame.top + 14}px`;
  };
  canvas.onpointerleave = canvas.onpointercancel = () => {
    from = null;
    box.style.display = tip.style.display = "none";
  };
  canvas.onpointerup = (event) => {
    if (event.button || !from) return; // another button, or a press begun elsewhere
    const rectangle = view.hit?.brush && stretch(within(event)); // the figure may be another by now
    from = null;
    box.style.display = "none";
    if (rectangle && (rectangle[2] - rectangle[0] > 4 || rectangle[3] - rectangle[1] > 4)) {
      own.brush(...view.hit.brush(...rectangle));
      return;
    }
    const trial = under(event)?.trial;
    if (trial !== null && trial !== undefined) own.choose(trial, event.ctrlKey || event.metaKey || event.shiftKey);
  };
}

// The page that is stored with the notebook stands beside the living one: out of sight as long as this one lives.
function hideStill(key) {
  return make("style", "", document.head, `.wb-still[data-of="${key}"] { display: none; }`);
}

// The store of a model, with the views that draw it: they listen through one of their handles on the model, and that
// one falls silent with its view.
function join(model) {
  const key = model.get("_key");
  if (!stores.has(key)) {
    const store = makeStore(model);
    stores.set(key, { store, own: makeSelection(model, store), handles: new Set() });
  }
  const entry = stores.get(key);
  entry.handles.add(model);
  const leave = () => {
    entry.handles.delete(model);
    const [other] = entry.handles;
    if (!other) {
      forget(key);
      takeLeave(model);
    } else if (entry.store.model === model) entry.store.attach(other);
  };
  return { store: entry.store, own: entry.own, leave };
}

// Tell the kernel that a view of the model was the last one here.
function takeLeave(model) {
  try {
    model.send({ type: "unseen" });
  } catch {
    // nobody is there to be told: the kernel was restarted, say
  }
}

function forget(key) {
  stores.get(key)?.store.close();
  stores.delete(key);
}

// A page of trials: `build` lays it out and gives its views, [place, how it is drawn], and what to bring up to date
// before each drawing.
function stage({ model, el }, label, build) {
  const { store, own, leave } = join(model);
  let due = 0;
  const later = () => {
    if (!due) due = requestAnimationFrame(draw);
  };
  const touched = () => {
    own.touched = true; // by a person, or from Python: it is shown at once
    later();
  };
  const root = make("div", "wb wb-untold", el);
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", label);
  const head = make("header", "", root);
  const title = make("strong", "wb-title", head);
  const trouble = make("div", "wb-trouble", root);
  trouble.setAttribute("role", "alert");
  const built = build({ root, head, store, own, model, touched });
  const views = built.views.map(([place, paint]) => ({ ...place, paint, hit: null }));
  const tip = make("div", "wb-tip", root);

  let heavy = 0; // milliseconds that all figures took
  let begun = 0; // when they were begun
  let left = []; // figures still to be drawn
  let painting = 0;
  let timer = null;
  function draw() {
    due = 0;
    trouble.textContent = [gone(store), model.get("error")].filter(Boolean).join("; ");
    root.classList.toggle("wb-silent", store.silent);
    if (!store.now || !root.isConnected) {
      title.textContent = store.now || store.silent ? "" : "waiting for the kernel …";
      return;
    }
    root.classList.remove("wb-untold");
    own.update();
    title.textContent = store.meta.name;
    dye(root, store.meta.states);
    built.update();
    // Figures of a large study are drawn less often, so that the page stays free for whoever scrolls it.
    clearTimeout(timer);
    if (store.now.partial) return void root.toggleAttribute("data-drawing", true); // what figures need is on its way
    const rest = own.touched || heavy < 25 ? 0 : begun + 12 * heavy - performance.now();
    own.touched = false;
    if (rest > 0) timer = setTimeout(begin, rest);
    else begin();
  }

  function begin() {
    [left, heavy, begun] = [[...views], 0, performance.now()];
    root.toggleAttribute("data-drawing", true);
    if (!painting) paint();
  }

  // As many figures as fit into a frame; the others follow in the next ones.
  function paint() {
    painting = 0;
    if (!root.isConnected || store.now.partial) return;
    const now = performance.now();
    const scene = { store, own, look: built.look, colors: withPhases(inks(root), store.meta) };
    while (left.length && performance.now() - now < FRAME_MS) {
      const view = left.shift();
      view.hit = view.canvas.offsetParent === null ? null : view.paint(view.canvas, scene);
    }
    heavy += performance.now() - now;
    root.toggleAttribute("data-drawing", left.length > 0);
    if (left.length) painting = requestAnimationFrame(paint);
  }

  root.onkeydown = (event) => {
    keepKey(event);
    if (event.target.matches("input, select, textarea")) return;
    if (event.key === "Escape") own.select([]);
    else if (event.key === "/") built.filter.focus();
    else return;
    event.preventDefault();
  };
  for (const view of views) {
    pointed(view, root, tip, store, own);
    pictureButtons(view, () => {
      own.update(); // the filter may be newer than what is drawn
      return { store, own, look: built.look, colors: withPhases(inks(root), store.meta) };
    });
  }
  store.changed.add(later);
  const unheed = heed(model, ["selected", "filter", "error", "importance"], touched);
  const resized = new ResizeObserver(touched);
  resized.observe(root);
  const themed = new MutationObserver(touched); // JupyterLab names its theme on the body
  themed.observe(document.body, { attributes: true });
  const hidden = hideStill(model.get("_key"));
  later();
  return () => {
    cancelAnimationFrame(due);
    cancelAnimationFrame(painting);
    clearTimeout(timer);
    store.changed.delete(later);
    unheed();
    resized.disconnect();
    themed.disconnect();
    hidden.remove();
    root.remove();
    leave();
  };
}
