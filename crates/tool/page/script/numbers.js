// Figures as texts: the same rules as `regatta_report::numbers`. A browser test compares both.

const UNITS = {
  time: [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]],
  rate: [["/s", 1], ["k/s", 1e3], ["M/s", 1e6]],
  memory: [["B", 1], ["KiB", 1024], ["MiB", 1048576], ["GiB", 1073741824]],
};

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const magnitude = (value) => Math.floor(Math.log10(Math.max(Math.abs(value), 1e-9)));

// Three significant digits, at most four decimals.
function threeDigits(value) {
  return value.toFixed(value === 0 ? 0 : clamp(2 - magnitude(value), 0, 4));
}

// At most four significant digits, no trailing zeros.
function short(value) {
  const power = 10 ** (value === 0 ? 0 : 3 - magnitude(value));
  return String(Math.round(value * power) / power);
}

// The largest unit in which the value is at least 1.
function unitOf(kind, value) {
  const units = UNITS[kind];
  return units.findLast(([, size]) => value >= size) ?? units[0];
}

function withUnit(kind, value) {
  const [name, size] = unitOf(kind, value);
  return `${threeDigits(value / size)} ${name}`;
}
const time = (ns) => withUnit("time", ns);
const memory = (bytes) => withUnit("memory", bytes);

// Decimals such that the last digit is at most half of the half-width.
function decimals({mean, low, high}, size) {
  const half = (high - low) / 2 / size;
  const byInterval = half > 0 ? -Math.floor(Math.log10(half / 2)) : 3;
  return clamp(Math.min(byInterval, 3 - magnitude(mean / size)), 0, 6);
}

// `4.41 [4.38–4.45]`, in units of `size`.
function interval(e, size = 1, digits = decimals(e, size)) {
  const text = (v) => { const text = (v / size).toFixed(digits); return Number(text) === 0 ? text.replace("-", "") : text; };
  const [mean, low, high] = [e.mean, e.low, e.high].map(text);
  return `${mean} [${low}${low.startsWith("-") ? " to " : "–"}${high}]`;
}

// `511 µs [498–524]`.
function withInterval(kind, e) {
  const [name, size] = unitOf(kind, e.mean);
  return interval(e, size).replace(" [", ` ${name} [`);
}

// `1.40× [1.36–1.45]`.
function ratio(e) {
  let digits = e.high - e.low < 0.01 ? 3 : Math.min(decimals(e, 1), 2);
  const readsAs1 = (bound) => Number(bound.toFixed(digits)) === 1;
  while (digits < 3 && ((e.low > 1 && readsAs1(e.low)) || (e.high < 1 && readsAs1(e.high)))) digits += 1;
  return interval(e, 1, digits).replace(" [", "× [");
}

const brief = (text) => text.replace(/ \[[^\]]*\]/, "");

function percent(fraction) {
  const value = fraction * 100;
  return `${value.toFixed(value >= 10 ? 0 : value >= 1 ? 1 : 2)}%`;
}

// A value of an axis: `250 µs`, `1.5 ms`, without trailing zeros.
function tick(kind, value) {
  if (value === 0) return "0";
  const [name, size] = unitOf(kind, Math.abs(value) * (1 + 1e-9));
  return `${short(value / size)} ${name}`;
}
