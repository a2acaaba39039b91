// What every dashboard brings along: it finds the front end that all dashboards of the page share, or loads it once.

const fronts = (globalThis.workbenchFronts ??= new Map()); // version → the module, on its way or there

async function front({ model, host }) {
  const version = model.get("_version");
  if (!fronts.has(version)) fronts.set(version, load(await finder(model, host)(model.get("_front"))));
  return fronts.get(version);
}

// How another model is found by its reference.
function finder(model, host) {
  return (reference) => (host ? host.getModel(reference) : model.widget_manager.get_model(reference.replace("anywidget:", "")));
}

async function load(shared) {
  const url = URL.createObjectURL(new Blob([shared.get("code")], { type: "text/javascript" }));
  try {
    return await import(url);
  } finally {
    URL.revokeObjectURL(url);
  }
}

function initialize({ model }) {
  return async () => (await fronts.get(model.get("_version")))?.forget(model.get("_key"));
}

async function render({ model, el, host }) {
  return (await front({ model, host })).render({ model, el, find: finder(model, host) });
}

export default { initialize, render };
