// Files of what is seen: the visible trials as CSV, a figure as PNG.

// A field as spreadsheets read it; one that would begin a formula there begins with an apostrophe.
function csvField(value) {
  const words = value === null || value === undefined ? "" : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(words) ? `'${words}` : words;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvOf(trials, hyperparameters) {
  const head = ["rank", "trial", "state", "phases", "last_score", "best_score", ...hyperparameters, "verdict", "error"];
  const rows = trials.map((t) => [t.rank, t.trial, t.state, t.phases, t.last, t.best, ...hyperparameters.map((name) => t.config[name]), t.why, t.error]);
  return [head, ...rows].map((row) => row.map(csvField).join(",")).join("\r\n");
}

function download(blob, name) {
  const link = make("a", "", null);
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function csvButton(parent, store, own) {
  const button = make("button", "", parent, "CSV");
  button.type = "button";
  button.title = "the visible trials as a file";
  button.onclick = () => download(new Blob([csvOf(own.order, store.meta.hyperparameters)], { type: "text/csv" }), "trials.csv");
}

function pngButton(parent, canvas, name) {
  const button = make("button", "wb-png", parent, "PNG");
  button.type = "button";
  button.title = "this figure as a file";
  button.onclick = () => {
    const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
    const pen = copy.getContext("2d");
    pen.fillStyle = inks(canvas).ground;
    pen.fillRect(0, 0, copy.width, copy.height);
    pen.drawImage(canvas, 0, 0);
    copy.toBlob((blob) => download(blob, `${name}.png`));
  };
}
