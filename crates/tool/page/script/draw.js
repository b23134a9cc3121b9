// Figures: drawn when they come near the view, again when their width or the choices change.

const figures = [];
const GAP = 13;

const inView = new IntersectionObserver((entries) => {
  for (const {target, isIntersecting} of entries) {
    const figure = figures.find((figure) => figure.element === target);
    if (!figure) continue;
    figure.near = isIntersecting;
    if (isIntersecting && figure.stale) draw(figure);
  }
}, {rootMargin: "400px"});

const sized = new ResizeObserver((entries) => {
  for (const {target} of entries) {
    const figure = figures.find((figure) => figure.element === target);
    if (figure && figure.width !== widthOf(figure)) redraw(figure);
  }
});

const widthOf = (figure) => Math.max(240, Math.floor(figure.canvas.clientWidth));

// Adds a figure to a host. `spec`: `kind`, `title`, `note`, `rows()` (one for each mark, with the index of
// the contender as `c`), and `options(rows, width)` (those of Plot). Without rows there is no figure. A list
// of figures is a column.
function add(host, spec) {
  if (Array.isArray(spec)) {
    const stack = document.createElement("div");
    stack.className = "stack";
    spec.forEach((one) => add(stack, one));
    if (stack.childElementCount > 0) host.append(stack);
    return;
  }
  if (spec.rows().length === 0) return;
  const element = document.createElement("figure");
  element.className = `plot ${spec.kind}`;
  const caption = document.createElement("figcaption");
  caption.textContent = spec.title;
  if (spec.note) {
    const note = document.createElement("span");
    note.className = "soft";
    note.textContent = spec.note;
    caption.append(note);
  }
  const canvas = document.createElement("div");
  canvas.className = "canvas";
  canvas.style.minHeight = `${spec.height ?? 260}px`;
  element.append(caption, canvas);
  host.append(element);
  const figure = {spec, element, canvas, stale: true, near: false, width: 0};
  figures.push(figure);
  inView.observe(element);
  sized.observe(element);
}

function clearFigures() {
  inView.disconnect();
  sized.disconnect();
  figures.length = 0;
}

function redraw(figure) {
  figure.stale = true;
  if (figure.near) draw(figure);
}

const redrawAll = () => figures.forEach(redraw);
const drawAll = () => figures.filter((figure) => figure.stale).forEach(draw);

function draw(figure) {
  const {spec, canvas} = figure;
  figure.stale = false;
  figure.width = widthOf(figure);
  const rows = spec.rows();
  figure.rows = rows;
  if (rows.length === 0) {
    canvas.textContent = "No data for this choice.";
    return;
  }
  const plot = Plot.plot({
    width: figure.width,
    style: {background: "none", color: "inherit", fontSize: "12px", fontFamily: "inherit", overflow: "visible"},
    ariaLabel: spec.title,
    ...withoutAxes(spec.options(rows, figure.width)),
  });
  canvas.replaceChildren(plot);
  canvas.style.minHeight = "";
  emphasise(canvas);
}

// Axes are marks of their own.
const withoutAxes = ({x, y, ...options}) => ({...options, x: {...x, axis: null}, y: {...y, axis: null}});

// Options of a mark: its elements get the contender and the text of their row.
function tagged(rows, text) {
  return {
    render(index, scales, values, dimensions, context, next) {
      const group = next(index, scales, values, dimensions, context);
      for (const child of group?.children ?? []) {
        const datum = child.__data__;
        const row = rows[typeof datum === "number" ? datum : datum?.[0]];
        if (!row) continue;
        if (row.c !== undefined) child.dataset.c = row.c;
        const said = text?.(row);
        if (said) child.dataset.text = said;
      }
      return group;
    },
  };
}

// A channel whose values are used as they are.
const plain = (of) => ({value: of, scale: null});
const colour = plain((row) => look(row.c).colour);

// One line or ribbon for each contender.
const byContender = (rows) => Map.groupBy ? [...Map.groupBy(rows, ({c}) => c)] : [...rows.reduce(
  (map, row) => map.set(row.c, [...(map.get(row.c) ?? []), row]), new Map())];

// Lines: a mark for each contender, because the dashes differ.
const lines = (rows, x, y, options = {}) => byContender(rows).map(([c, mine]) => Plot.line(mine, {
  x, y, stroke: look(c).colour, strokeDasharray: look(c).dash, strokeWidth: 2, ...options, ...tagged(mine, () => name(c)),
}));

// Points in the contender's shape; hollow where `hollow`.
const points = (rows, x, y, text, hollow = () => false) => byContender(rows).map(([c, mine]) => Plot.dot(mine, {
  x, y, r: 4.2, symbol: look(c).symbol, stroke: look(c).colour, strokeWidth: 1.6,
  fill: plain((row) => (hollow(row) ? "var(--paper)" : look(c).colour)), ...tagged(mine, text),
}));

// Names at the right end of lines, moved apart where they would overlap. `ends`: rows with `c`, `x`, `y`.
const endNames = (ends) => (_, {x, y}, __, {height, marginTop, marginBottom}) => {
  const placed = ends.map((end) => ({...end, px: x(end.x), py: y(end.y)})).sort((a, b) => a.py - b.py);
  const [top, bottom] = [marginTop, height - marginBottom];
  const gap = Math.min(GAP, (bottom - top) / Math.max(1, placed.length - 1));
  for (const [i, one] of placed.entries()) one.py = Math.max(one.py, i ? placed[i - 1].py + gap : top);
  for (let i = placed.length - 1; i >= 0; i -= 1) placed[i].py = Math.min(placed[i].py, i + 1 < placed.length ? placed[i + 1].py - gap : bottom);
  const right = Math.max(...placed.map(({px}) => px));
  return labels(placed.map(({c, py}) => ({c, x: right + 8, y: py + 4, text: shorten(name(c), 14)})));
};

// Names beside points, moved down where they would overlap other names or points.
const pointNames = (rows) => (_, {x, y}, __, {width}) => {
  const placed = [];
  const dots = rows.map((row) => ({c: row.c, x: x(row.x) - 7, y: y(row.y) + 4, width: 14}));
  for (const {c, x: at, y: up} of [...rows].sort((a, b) => b.y - a.y)) {
    const text = shorten(name(c), 16);
    const room = widthOfText(text);
    const one = {c, text, x: x(at) + 8 + room > width ? x(at) - 8 - room : x(at) + 8, y: y(up) - 4};
    // The sum of `hit.y` and GAP may be rounded down.
    const over = (other) => Math.abs(other.y - one.y) < GAP - 0.001 && one.x < other.x + other.width && other.x < one.x + room;
    const taken = [...placed, ...dots.filter((dot) => dot.c !== c)];
    for (let hit = taken.find(over); hit; hit = taken.find(over)) one.y = hit.y + GAP;
    placed.push({...one, width: room});
  }
  return labels(placed);
};

function labels(placed) {
  const SVG = "http://www.w3.org/2000/svg";
  const group = document.createElementNS(SVG, "g");
  group.setAttribute("class", "names");
  for (const {c, x, y, text} of placed) {
    const label = document.createElementNS(SVG, "text");
    for (const [key, value] of Object.entries({x, y, "text-anchor": "start", fill: look(c).colour})) label.setAttribute(key, value);
    label.dataset.c = c;
    label.textContent = text;
    group.append(label);
  }
  return group;
}

const shorten = (text, most) => ([...text].length > most ? [...text].slice(0, most - 1).join("") + "…" : text);
// The height of a plot whose names stand at the right: at least 340, more if there are many.
const heightForNames = (rows) => Math.max(340, 50 + GAP * new Set(rows.map(({c}) => c)).size);
// About the width of a text of 12 pixels.
const widthOfText = (text) => 6.9 * [...text].length;

// Rounds up to 1, 2 or 5 times a power of ten.
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5].map((digit) => digit * power).find((step) => step >= least * (1 - 1e-9)) ?? 10 * power;
}

// Values for at most `most` ticks between two values. A logarithmic axis has 1, 2 and 5 times powers of ten,
// unless it is so short that equal steps are better.
function ticks(low, high, most, log) {
  if (log && high / low > 3) {
    const powers = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p += 1) powers.push(p);
    const inside = (value) => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9);
    for (const digits of [[1, 2, 5], [1, 3], [1]]) {
      const all = powers.flatMap((p) => digits.map((digit) => Number(`${digit}e${p}`))).filter(inside);
      if (all.length <= most || digits.length === 1) {
        const every = Math.ceil(all.length / most);
        if (all.length >= 2) return all.filter((_, i) => i % every === 0);
      }
    }
  }
  const step = roundStep((high - low) / Math.max(1, most - 1));
  const all = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i += 1) all.push(Number((i * step).toPrecision(12)));
  if (!log) return all;
  // Equal steps crowd at the upper end of a logarithmic axis.
  const gap = (0.9 * Math.log(high / low)) / most;
  return all.reduce((kept, value) => (kept.length && Math.log(value / kept.at(-1)) < gap ? kept : [...kept, value]), []);
}

// Ticks of memory: 1, 2 and 5 times powers of ten in each unit; a linear axis has them in the largest one.
function memoryTicks([low, high], most, log) {
  const size = unitOf("memory", high)[1];
  if (!log || high / low < 3) return ticks(low / size, high / size, most, log).map((value) => value * size);
  for (const steps of [[1, 2, 5, 10, 20, 50, 100, 200, 500], [1, 3, 10, 30, 100, 300], [1, 10, 100], [1, 32], [1]]) {
    const all = UNITS.memory.flatMap(([, unit]) => steps.map((step) => step * unit)).filter((value) => value >= low && value <= high);
    if (all.length <= most && all.length >= 2) return all;
  }
  return [2 ** Math.ceil(Math.log2(low)), 2 ** Math.floor(Math.log2(high))];
}

// An axis of values: logarithmic, or linear from zero if that was chosen.
function axis(values, most, {kind, format, label, log = !state.linear, pad = 1.08}) {
  const all = values.filter((value) => Number.isFinite(value) && value > 0);
  const [least, greatest] = [Math.min(...all), Math.max(...all)];
  const domain = log ? [least / pad, greatest * pad] : [0, greatest * pad];
  const chosen = kind === "memory" ? memoryTicks(domain, most, log) : ticks(domain[0], domain[1], most, log);
  return {
    scale: {type: log ? "log" : "linear", domain, label: null},
    ticks: chosen, text: format ?? ((value) => tick(kind, value)), label,
  };
}

const axisAtBottom = ({ticks, text, label}) => [
  Plot.gridX(ticks, {strokeOpacity: 1, stroke: "var(--line)"}),
  Plot.axisX(ticks, {text, tickSize: 0, label: label ?? null, labelAnchor: "right", labelArrow: "none", labelOffset: 34}),
];
const axisAtLeft = ({ticks, text, label}) => [
  Plot.gridY(ticks, {strokeOpacity: 1, stroke: "var(--line)"}),
  Plot.axisY(ticks, {text, tickSize: 0, label: label ?? null, labelArrow: "none"}),
];
