// Files of what is seen: the visible trials as CSV, a figure as PNG or SVG.

// A field as spreadsheets read it; one that would begin a formula there begins with an apostrophe.
function csvField(value) {
  const words = value === null || value === undefined ? "" : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(words) ? `'${words}` : words;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvOf(trials, hyperparameters) {
  const head = ["rank", "trial", "state", "phases", "last_score", "best_score", ...hyperparameters, "verdict", "error", "tags", "notes"];
  const rows = trials.map((t) => [t.rank, t.trial, t.state, t.phases, t.last, t.best, ...hyperparameters.map((name) => t.config[name]), t.why, t.error, (t.tags ?? []).join(" "), (t.notes ?? []).map(({ text }) => text).join("\n")]);
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
  button(parent, "CSV", "the visible trials as a file", () => {
    own.update(); // the filter may be newer than what is drawn
    download(new Blob([csvOf(own.order, store.meta.hyperparameters)], { type: "text/csv" }), "trials.csv");
  });
}

function pictureButtons({ head, canvas, label, paint }, scene) {
  const name = label.split(/[;,]| of /)[0];
  const corner = make("span", "wb-pictures", head);
  button(corner, "PNG", "this figure as PNG", () => sheetOf(canvas, paint, scene()).toBlob((blob) => download(blob, `${name}.png`)));
  button(corner, "SVG", "this figure as SVG", () => download(new Blob([svgOf(canvas, paint, scene())], { type: "image/svg+xml" }), `${name}.svg`));
}

// Draw a view once more, on a canvas of its own: that in the page has only what is in sight of many slots.
function sheetOf(canvas, paint, scene) {
  const sheet = document.createElement("canvas");
  Object.defineProperty(sheet, "parentElement", { value: canvas.parentElement }); // it is as wide
  paint(sheet, scene);
  const pen = sheet.getContext("2d");
  pen.globalCompositeOperation = "destination-over";
  pen.fillStyle = scene.colors.ground;
  pen.fillRect(0, 0, sheet.width, sheet.height);
  return sheet;
}

// Draw a view once more, with a pen that writes SVG.
function svgOf(canvas, paint, scene) {
  const pen = svgPen();
  const sheet = { parentElement: canvas.parentElement, style: {}, width: 0, height: 0, getContext: () => pen };
  paint(sheet, scene);
  const [width, height] = [Math.max(160, canvas.parentElement.clientWidth), parseFloat(sheet.style.height)];
  const ground = `<rect width="${width}" height="${height}" fill="${scene.colors.ground}"/>`;
  return `<svg xmlns="${SVG}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${ground}${pen.written.join("")}</svg>`;
}

const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const SIT = { top: "0.8em", middle: "0.35em", bottom: "-0.2em" };
const ANCHOR = { left: "start", center: "middle", right: "end" };

// What the views use of a canvas's pen, written down as SVG.
function svgPen() {
  const ruler = document.createElement("canvas").getContext("2d");
  const kept = [];
  let [path, clips] = ["", 0];
  const plain = (words) => String(words).replace(/[&<>"]/g, (sign) => ESCAPED[sign]);
  const two = (...values) => values.map((value) => Number(value.toFixed(2))).join(" ");
  const put = (tag, more, inner = "") => {
    const alpha = pen.globalAlpha < 1 ? ` opacity="${pen.globalAlpha}"` : "";
    pen.written.push(`<${tag}${pen.turned ? ` transform="${pen.turned}"` : ""}${pen.clipped}${alpha} ${more}>${inner}</${tag}>`);
  };
  const filled = () => `fill="${plain(pen.fillStyle)}"`;
  const lined = () => `fill="none" stroke="${plain(pen.strokeStyle)}" stroke-width="${pen.lineWidth}"${pen.dash.length ? ` stroke-dasharray="${pen.dash.join(" ")}"` : ""}`;
  const box = (x, y, w, h) => `M${two(x, y)}h${two(w)}v${two(h)}h${two(-w)}z`;
  const pen = {
    written: [], font: FONT, fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, textAlign: "left", textBaseline: "middle", dash: [], turned: "", clipped: "",
    setTransform: () => (pen.turned = ""),
    clearRect() {},
    setLineDash: (dash) => (pen.dash = dash),
    measureText: (words) => ((ruler.font = pen.font), ruler.measureText(words)),
    beginPath: () => (path = ""),
    moveTo: (x, y) => (path += `M${two(x, y)}`),
    lineTo: (x, y) => (path += `${path ? "L" : "M"}${two(x, y)}`),
    rect: (...given) => (path += box(...given)),
    arc: (x, y, r) => (path += `M${two(x - r, y)}a${two(r, r)} 0 1 0 ${two(2 * r, 0)}a${two(r, r)} 0 1 0 ${two(-2 * r, 0)}`), // whole circles only
    fill: () => put("path", `${filled()} d="${path}"`),
    stroke: () => put("path", `${lined()} d="${path}"`),
    fillRect: (...given) => put("path", `${filled()} d="${box(...given)}"`),
    strokeRect: (...given) => put("path", `${lined()} d="${box(...given)}"`),
    fillText: (words, x, y, most = Infinity) => put("text", `${filled()}${pen.measureText(words).width > most ? ` textLength="${two(most)}" lengthAdjust="spacingAndGlyphs"` : ""} x="${two(x)}" y="${two(y)}" dy="${SIT[pen.textBaseline] ?? 0}" text-anchor="${ANCHOR[pen.textAlign]}" font-size="11" font-family="system-ui, sans-serif"`, plain(words)),
    clip() {
      pen.written.push(`<clipPath id="c${clips}"><path d="${path}"/></clipPath>`);
      pen.clipped = ` clip-path="url(#c${clips++})"`;
    },
    save: () => kept.push(Object.fromEntries(Object.entries(pen).filter(([name, value]) => typeof value !== "function" && name !== "written"))),
    restore: () => Object.assign(pen, kept.pop()),
    translate: (x, y) => (pen.turned += `translate(${two(x, y)})`),
    rotate: (turn) => (pen.turned += `rotate(${two((turn * 180) / Math.PI)})`),
  };
  return pen;
}
