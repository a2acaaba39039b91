// Canvases that are as wide as their place and as sharp as the screen, and the axes on them.

const FONT = "11px system-ui, sans-serif";

// Colours of the page's theme, as the style sheet resolves them now.
function inks(element) {
  const style = getComputedStyle(element);
  const ink = (name) => style.getPropertyValue(`--wb-${name}`).trim();
  return { ink: ink("ink"), soft: ink("soft"), line: ink("line"), ground: ink("ground"), neutral: ink("neutral") };
}

// The phases' greys on the page's ground: phases are told apart by lightness alone.
function withPhases(colors, meta) {
  const dark = brightness(colors.ground) < 128;
  return { ...colors, dark, phases: dark ? meta.phases_on_dark : meta.phases_on_light };
}

// Of a colour as a style sheet writes it, 0 to 255.
function brightness(color) {
  const hex = /^#(..)(..)(..)$/.exec(color) ?? /^#(.)(.)(.)$/.exec(color);
  const parts = hex ? hex.slice(1).map((part) => parseInt(part.padEnd(2, part), 16)) : (color.match(/[\d.]+/g) ?? [255, 255, 255]).map(Number);
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}

// The one mark of what is selected: the ink's line around it, and the ground's around that.
function halo(pen, colors, draw, thick = 1) {
  pen.setLineDash([]);
  pen.globalAlpha = 1;
  for (const [color, wide] of [[colors.ground, 7 * thick], [colors.ink, 4.5 * thick]]) {
    [pen.strokeStyle, pen.lineWidth] = [color, wide];
    draw();
  }
}

function frame(pen, { x, y, width, height }, colors, thick) {
  halo(pen, colors, () => pen.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1), thick);
}

function ring(pen, { x, y }, radius, colors) {
  halo(pen, colors, () => {
    pen.beginPath();
    pen.arc(x, y, radius - 2, 0, 2 * Math.PI);
    pen.stroke();
  });
}

// Make ready to draw: the canvas takes the width it is given, `height` CSS pixels, and is cleared.
function ready(canvas, height) {
  const width = Math.max(160, canvas.parentElement.clientWidth);
  const density = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * density) || canvas.height !== Math.round(height * density)) {
    canvas.width = Math.round(width * density);
    canvas.height = Math.round(height * density);
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(density, 0, 0, density, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = FONT;
  pen.globalAlpha = 1;
  pen.setLineDash([]);
  return { pen, width, height };
}

// About so many round numbers in a range, two at least where whole ones, if they must be, leave room for them.
function niceTicks(low, high, wanted, whole) {
  const raw = Math.max(whole ? 1 : 0, (high - low) / Math.max(1, wanted)); // half a slot is none
  if (!(raw > 1e-13 * Math.max(Math.abs(low), Math.abs(high)))) return [low]; // a step that numbers of this size cannot take
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(k * step);
  return ticks.length > 1 || (whole && step === 1) ? ticks : niceTicks(low, high, Math.max(1, wanted) + 1, whole);
}

// With four significant digits.
function short(value) {
  return brief(value, 4);
}

// With so many significant digits, or with all that stand before the point: no zero takes the place of a digit.
function brief(value, digits) {
  if (!Number.isFinite(value)) return "–";
  const before = Math.abs(value) < 1e6 ? String(Math.trunc(Math.abs(value))).length : 0;
  const cut = Number(value.toPrecision(Math.max(digits, before)));
  const size = Math.abs(cut);
  return size >= 1e6 || (size > 0 && size < 1e-3) ? cut.toExponential().replace("e+", "e") : String(cut);
}

// Things counted in words: 1 trial, 2 trials.
function soMany(n, what) {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

// So many more or less. Halves become even, as Python writes them where a study is followed.
function about(n, what) {
  const whole = Math.round(n);
  return `about ${soMany(n % 1 === 0.5 && whole % 2 ? whole - 1 : whole, what)}`;
}

// A hyperparameter's value, as workbench.core.showing.setting: whole numbers in full, as 65536 and 65540 are two batch sizes,
// and no other becomes one by being cut, such as a discount near 1.
function written(value) {
  if (value === undefined) return "–";
  if (typeof value !== "number" || Number.isSafeInteger(value)) return String(value);
  let digits = 4;
  while (!Number.isInteger(value) && Number.isInteger(Number(value.toPrecision(digits)))) digits++;
  return brief(value, digits);
}

// Labels of evenly set ticks, with the digits of their step: any fewer, and two ticks may read alike.
function tickLabels(ticks) {
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : Math.abs(ticks[0]) / 1e4;
  return ticks.map((tick) => tickLabel(tick, step));
}

function tickLabel(value, step) {
  const size = Math.abs(value);
  if (!(size > step / 2)) return "0";
  const power = (number) => Math.floor(Math.log10(number) + 1e-9);
  const plain = String(Number(value.toFixed(Math.min(100, Math.max(0, -power(step)))))).replace("e+", "e");
  if (size >= 1e-3 && size < 1e6) return plain;
  const brief = value.toExponential(Math.min(100, Math.max(1, power(size) - power(step)))).replace("e+", "e");
  return size >= 1e6 && plain.length <= brief.length ? plain : brief;
}

function clock(longest) {
  if (longest < 300) return { unit: "s", seconds: 1 };
  return longest < 10800 ? { unit: "min", seconds: 60 } : { unit: "h", seconds: 3600 };
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.round(seconds);
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (part) => String(part).padStart(2, "0");
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

// Where an axis has ticks, and what stands there: about so many, unless it brings its own.
function marksOf({ ticks, labels, low, high, whole }, wanted) {
  if (ticks) return { ticks, labels: labels ?? ticks.map(short) };
  const nice = niceTicks(low, high, wanted, whole);
  return { ticks: nice, labels: tickLabels(nice) };
}

// Draw axes in a box and return how values become pixels. x and y: {low, high, title, ticks?, labels?, log?, whole?}
// The numbers of x stand below the box, or at its `foot`, where the rest of it is out of sight.
function axes(pen, box, x, y, colors) {
  const along = (axis, start, length) => {
    const at = axis.log ? Math.log10 : (value) => value;
    const [low, high] = [at(axis.low), at(axis.high)];
    return (value) => start + ((at(value) - low) / (high - low || 1)) * length;
  };
  const px = along(x, box.left, box.width);
  const py = along(y, box.top + box.height, -box.height);
  pen.strokeStyle = colors.line;
  pen.fillStyle = colors.soft;
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  const ys = marksOf(y, box.height / 30);
  const room = box.left - (y.title ? 22 : 8); // what is longer is drawn narrower, beside the title
  ys.ticks.forEach((value, k) => {
    const at = Math.round(py(value)) + 0.5;
    if (!y.ticks) rule(pen, box.left, at, box.left + box.width, at);
    pen.fillText(ys.labels[k], box.left - 6, at, room);
  });
  pen.textBaseline = "top";
  pen.textAlign = "center";
  const xs = marksOf(x, box.width / 80);
  const foot = box.foot ?? box.top + box.height;
  xs.ticks.forEach((value, k) => {
    const at = Math.round(px(value)) + 0.5;
    if (!x.bare) rule(pen, at, box.top, at, foot);
    pen.fillText(xs.labels[k], at, foot + 4);
  });
  const edge = box.left + box.width + 10; // the canvas's
  const title = fitting(pen, x.title, edge - 4);
  pen.fillText(title, Math.min(box.left + box.width / 2, edge - 2 - pen.measureText(title).width / 2), foot + (x.low2 ? 30 : 17));
  pen.save();
  pen.translate(10, box.top + box.height / 2);
  pen.rotate(-Math.PI / 2);
  pen.textBaseline = "middle";
  pen.fillText(y.title, 0, 0);
  pen.restore();
  return { px, py };
}

// Words no wider than given: of longer ones how they begin and how they end.
function fitting(pen, words, most) {
  const signs = [...words];
  let [kept, shown] = [signs.length, words];
  while (kept > 2 && pen.measureText(shown).width > most) {
    kept--;
    shown = `${signs.slice(0, Math.ceil(kept / 2)).join("")}…${signs.slice(signs.length - Math.floor(kept / 2)).join("")}`;
  }
  return shown;
}

// Words in lines that are no wider than given.
function wrapped(pen, words, most) {
  const lines = [""];
  for (const word of words.split(" ")) {
    const longer = `${lines[lines.length - 1]} ${word}`.trim();
    if (pen.measureText(longer).width <= most || !lines[lines.length - 1]) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

function rule(pen, x1, y1, x2, y2) {
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}

function span(values, fallback) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return fallback;
  const margin = (high - low || Math.abs(high) || 1) * 0.05;
  return { low: low - margin, high: high + margin };
}
