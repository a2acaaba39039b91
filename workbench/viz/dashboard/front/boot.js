// What every widget brings along: it takes the front end that all of the page share, or asks the kernel for it, once.

const fronts = (globalThis.workbenchFronts ??= new Map()); // version → the front end, or its promise
const PATIENT_MS = 4000; // another widget's kernel may have died before it answered

async function front(model) {
  const version = model.get("_version");
  const known = fronts.get(version) && (await Promise.race([fronts.get(version), new Promise((done) => setTimeout(done, PATIENT_MS))]));
  if (known) return known;
  const asked = fetched(model);
  fronts.set(version, asked);
  return asked;
}

function fetched(model) {
  return new Promise((done, failed) => {
    const hear = (content) => {
      if (content.type !== "front") return;
      clearInterval(again);
      model.off("msg:custom", hear);
      loaded(content).then(done, failed);
    };
    const ask = () => model.send({ type: "front" });
    model.on("msg:custom", hear);
    const again = setInterval(ask, PATIENT_MS);
    ask();
  });
}

async function loaded({ code, css }) {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  try {
    return { page: await import(url), sheet };
  } finally {
    URL.revokeObjectURL(url);
  }
}

// Some notebooks (marimo) keep each view under a shadow root, which no style of the document reaches.
function dress(el, sheet, tries = 600) {
  const root = el.getRootNode();
  if (!el.isConnected) return tries && requestAnimationFrame(() => dress(el, sheet, tries - 1));
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
}

function initialize({ model }) {
  return async () => (await fronts.get(model.get("_version")))?.page.forget(model.get("_key"));
}

async function render({ model, el, host }) {
  const find = (reference) => (host ? host.getModel(reference) : model.widget_manager.get_model(reference.replace("anywidget:", "")));
  const { page, sheet } = await front(model);
  dress(el, sheet);
  return page.render({ model, el, find });
}

export default { initialize, render };
