// Plots of capacity searches: the intervals, and the levels that were tried.

const capacities = () => state.data.capacities.map((found, c) => ({found, c})).filter(({c}) => isShown(c));
const byClients = () => state.data.unit === "clients";
const levels = (value) => (byClients() ? `${grouped(value)} clients` : tick("rate", value));
const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
const levelAxis = (rows, most, pad) => axis(rows, most, {
  format: byClients() ? grouped : (value) => tick("rate", value), label: byClients() ? "clients →" : "requested rate →", pad,
});
// Where the levels of a search passed and failed every time.
const around = ({clients, rate_per_s: rate}) => clients ?? rate ?? null;

function takeCapacities(data) {
  state.data = data;
  data.cells = [];
  data.looks = data.contenders.map((_, c) => ({
    raced: true, colour: `var(--c${c % COLOURS})`, symbol: SYMBOLS[c % SYMBOLS.length], dash: DASHES[Math.floor(c / COLOURS) % DASHES.length],
  }));
}

function intervals() {
  const rows = () => capacities().map(({found, c}) => ({c, found, ...around(found)}));
  const text = ({best, low, high, found}) => {
    if (best === undefined) return found.steps.length ? "none found" : "unknown";
    return high === undefined || high === null ? `≥ ${grouped(low)}` : `${grouped(best)} (${grouped(low)}–${grouped(high)})`;
  };
  const said = (row) => `${name(row.c)}: ${text(row)} ${state.data.unit}${row.found.one_sided ? `, ${row.found.one_sided}` : ""}${row.found.unverified ? ", not verified" : ""}`;
  return {
    kind: "capacity", rows, wide: true, title: `Capacity: ${state.data.unit} at ${state.data.limit}`,
    note: "line: from the highest level that always passed to the lowest that always failed; arrow: no level failed; hollow: not verified",
    options(rows, width) {
      const known = rows.filter(({best}) => best !== undefined);
      const open = known.filter(({high}) => high === undefined || high === null);
      const tried = rows.flatMap(({found}) => found.steps.map(({level}) => level));
      const x = levelAxis([...known.flatMap(({best, low, high}) => [best, low, high]), ...(known.length ? [] : tried)].filter(Boolean), width / 95, 1.3);
      const texts = rows.map(text);
      const room = Math.max(...texts.map(widthOfText));
      const end = x.scale.domain[1];
      return {
        height: 62 + 28 * rows.length, marginTop: 18, marginBottom: 44, marginLeft: marginForNames(rows), marginRight: 16 + room,
        x: {...x.scale, clamp: true}, y: bands(rows),
        marks: [
          ...axisAtBottom(x),
          Plot.link(known, {x1: "low", x2: (row) => row.high ?? end, y1: "c", y2: "c", stroke: colour, strokeWidth: 4, strokeLinecap: "round", strokeOpacity: 0.7, ...tagged(known, said)}),
          ...points(known, "best", "c", said, ({found}) => Boolean(found.unverified)),
          Plot.text(open, {x: () => end, y: "c", text: () => "→", dx: -2, dy: -1, fontSize: 18, fill: colour, className: "open", ...tagged(open, said)}),
          namesAtLeft(rows, "c", said),
          Plot.text(rows, {y: "c", frameAnchor: "right", dx: 8 + room, textAnchor: "end", text: (_, i) => texts[i], ...tagged(rows, said)}),
        ],
      };
    },
  };
}

const stepRows = () => capacities().flatMap(({found, c}) => found.steps.map((step, nth) => ({c, nth, step, x: step.level, passed: step.passed})));
const verdictOf = ({passed, step}) => (passed === true ? "passed" : `${passed === false ? "failed" : "not judged"}${step.because ? `: ${step.because}` : ""}`);

// A mark for each step: solid if it passed, hollow if it failed, faint if it was not judged.
function steps(spec, y, extra = () => []) {
  return {
    height: 320, ...spec,
    options(rows, width) {
      const x = levelAxis(rows.map(({x}) => x), width / 95, 1.15);
      const up = y(rows);
      const best = capacities().filter(({found}) => around(found)).map(({found, c}) => ({c, ...around(found)}));
      const [, end] = x.scale.domain;
      return {
        height: 320, marginLeft: 64, marginRight: 20, marginTop: 18, marginBottom: 46, x: {...x.scale, clamp: true}, y: {...up.scale, clamp: true},
        marks: [
          ...best.map((one) => Plot.rect([one], {x1: "low", x2: (row) => row.high ?? end, fill: look(one.c).colour, fillOpacity: 0.1, className: "found", ...tagged([one], () => name(one.c))})),
          ...axisAtBottom(x), ...axisAtLeft(up), ...extra(rows, x, up),
          ...byContender(rows).map(([c, mine]) => Plot.dot(mine, {
            x: "x", y: "y", r: 4.2, symbol: look(c).symbol, stroke: look(c).colour, strokeWidth: 1.6, strokeOpacity: plain((row) => (row.passed === null ? 0.4 : 1)),
            fill: plain((row) => (row.passed === true ? look(c).colour : "var(--paper)")), ...tagged(mine, spec.said),
          })),
        ],
      };
    },
  };
}

// Latency over the offered load, with the limit.
function latencyOfSteps() {
  const {limit} = state.data.capacities[0];
  const [percentile] = state.data.limit.split(" ");
  const rows = () => stepRows().filter(({step}) => step.percentile_ns > 0).map((row) => ({...row, y: row.step.percentile_ns}));
  const said = (row) => `${name(row.c)} at ${levels(row.x)}: ${percentile} ${time(row.y)}; ${verdictOf(row)}`;
  return steps({kind: "levels", rows, said, title: `${percentile} of every step over the offered load`, note: `solid: passed; hollow: failed; faint: not judged; shaded: the interval; line: the limit, ${state.data.limit}`},
    (rows) => axis([...rows.map(({y}) => y), limit.ns], 7, {kind: "time", pad: 1.2}),
    () => [Plot.ruleY([limit.ns], {stroke: "var(--bad)", strokeWidth: 1.5, strokeDasharray: "5 3", className: "limit"})]);
}

// Correct replies over the offered load; at a rate, the line where all requests are answered.
function repliesOfSteps() {
  const rows = () => stepRows().filter(({step}) => step.reply_rate_per_s > 0).map((row) => ({...row, y: row.step.reply_rate_per_s}));
  const said = (row) => `${name(row.c)} at ${levels(row.x)}: ${grouped(Math.round(row.y))} replies/s; ${verdictOf(row)}`;
  return steps({kind: "replies", rows, said, title: "Correct replies per second over the offered load", note: byClients() ? "solid: passed; hollow: failed; faint: not judged" : "dashed: every request is answered"},
    (rows) => axis(rows.map(({y}) => y), 7, {kind: "rate", pad: 1.15}),
    (_, x, y) => {
      const [least, most] = [Math.max(x.scale.domain[0], y.scale.domain[0]), Math.min(x.scale.domain[1], y.scale.domain[1])];
      return !byClients() && least < most ? [Plot.link([0], {x1: least, x2: most, y1: least, y2: most, stroke: "var(--soft)", strokeDasharray: "2 3"})] : [];
    });
}

const capacityFigures = () => [intervals(), latencyOfSteps(), repliesOfSteps()];

const stepsCsv = () => csv(state.data.capacities.flatMap((found) => found.steps.map((step, nth) => ({server: found.server, step: nth + 1, ...step}))));
const capacityJson = () => JSON.stringify(state.data.capacities.length === 1 ? state.data.capacities[0] : state.data.capacities, null, 2);
const CAPACITY_DOWNLOADS = [
  ["capacity.json", "All figures, as the search stored them", () => save(capacityJson(), "capacity.json", "application/json")],
  ["steps.csv", "A row for each step", () => save(stepsCsv(), "steps.csv", "text/csv")],
];
