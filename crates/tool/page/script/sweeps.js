// Plots over loads that differ in one number: rates, connections, silent connections, cores.

// The curves in groups, as `regatta_report::curves::groups` forms them.
function sweeps() {
  const groups = new Map();
  for (const curve of state.data.summary.curves) {
    const rest = {...curve.load};
    const key = {rate: "rate", connections: "connections", idle: "idle", cores: "cores"}[curve.over.kind];
    const arrivals = rest.arrivals ?? null;
    delete rest[key];
    if (key === "rate") { delete rest.drive; delete rest.arrivals; }
    const id = JSON.stringify([key, rest, arrivals]);
    groups.set(id, [...(groups.get(id) ?? []), curve]);
  }
  return [...groups.values()];
}

const contenderOf = (curve) => state.data.contenders.indexOf(curve.contender);
const shownCurves = (curves) => curves.filter((curve) => isShown(contenderOf(curve)));

// A line for each contender, with points, intervals where rows have `low` and `high`, and names at the end.
function lineChart(spec, makeX, makeY, extra = () => []) {
  return {
    height: 330, ...spec,
    options(rows, width) {
      const x = makeX(rows, width);
      const y = makeY(rows);
      const ranged = rows.filter(({low}) => low > 0 || (low === 0 && state.linear));
      const ends = byContender(rows).map(([, mine]) => mine[mine.length - 1]);
      return {
        height: heightForNames(rows), marginLeft: 62, marginRight: 112, marginTop: 16, marginBottom: 46,
        x: {...x.scale, clamp: true}, y: {...y.scale, clamp: true},
        marks: [
          ...axisAtBottom(x), ...axisAtLeft(y), ...extra(rows, x, y),
          Plot.link(ranged, {x1: "x", x2: "x", y1: "low", y2: "high", stroke: colour, strokeWidth: 2, strokeOpacity: 0.6, ...tagged(ranged, spec.said)}),
          ...(spec.fitted ? [] : lines(rows, "x", "y")),
          ...points(rows, "x", "y", spec.said, (row) => row.isVoid),
          endNames(ends),
        ],
      };
    },
  };
}

const rateAxis = (rows, width) => axis(rows.map(({x}) => x), width / 95, {kind: "rate", label: "requested rate →"});

function latencyOverRate(curves, percentile) {
  const key = `${percentile}_ns`;
  const rows = () => shownCurves(curves).flatMap((curve) => curve.over.points.filter((point) => point[key] > 0)
    .map((point) => ({c: contenderOf(curve), x: point.rate, y: point[key], isVoid: !point.held})));
  const said = (row) => `${name(row.c)} at ${tick("rate", row.x)}: ${percentile} ${time(row.y)}${row.isVoid ? ", the rate was not held" : ""}`;
  const knees = (rows, x, y) => {
    if (percentile !== "p99") return [];
    const [least, most] = x.scale.domain;
    const known = shownCurves(curves).filter((curve) => curve.over.knee).map((curve, nth) => {
      const {rate, low, high} = curve.over.knee;
      return {c: contenderOf(curve), rate, x1: low ?? least, x2: high ?? most, nth, low, high};
    });
    const text = ({c, rate, low, high}) => `${name(c)}: knee at ${tick("rate", rate)}, between ${low === null ? "0" : tick("rate", low)} and ${high === null ? "unknown" : tick("rate", high)}`;
    const dy = ({nth}) => -4 - 7 * nth;
    return known.flatMap((knee) => [
      Plot.link([knee], {x1: ({x1}) => Math.max(x1, least), x2: "x2", y1: y.scale.domain[0], y2: y.scale.domain[0], dy: dy(knee), stroke: look(knee.c).colour, strokeWidth: 3, strokeOpacity: 0.5, className: "knee", ...tagged([knee], text)}),
      Plot.dot([knee], {x: "rate", y: y.scale.domain[0], dy: dy(knee), r: 3.5, symbol: "triangle", fill: look(knee.c).colour, className: "knee", ...tagged([knee], text)}),
    ]);
  };
  return lineChart({
    kind: `over-rate-${percentile}`, rows, said,
    title: percentile === "p99" ? "99th percentile of latency over the offered load" : "Median latency over the offered load",
    note: percentile === "p99" ? "hollow: the rate was not held; triangles at the bottom: the knee with its interval" : "hollow: the rate was not held",
  }, rateAxis, (rows) => axis(rows.map(({y}) => y), 7, {kind: "time", pad: percentile === "p99" ? 1.35 : 1.1}), knees);
}

function cpuOverRate(curves) {
  const rows = () => shownCurves(curves).flatMap((curve) => curve.over.points.filter((point) => point.cpu_ns_per_s)
    .map((point) => ({c: contenderOf(curve), x: point.rate, y: point.cpu_ns_per_s.mean, low: point.cpu_ns_per_s.low, high: point.cpu_ns_per_s.high, cpu: point.cpu_ns_per_s, isVoid: !point.held})));
  const said = (row) => `${name(row.c)} at ${tick("rate", row.x)}: ${withInterval("time", row.cpu)} of CPU per second${row.isVoid ? ", the rate was not held" : ""}`;
  const fits = (rows, x) => shownCurves(curves).filter((curve) => curve.over.cost).map((curve) => {
    const {standing_ns_per_s: standing, marginal_ns: marginal} = curve.over.cost;
    const held = curve.over.points.filter(({held}) => held).map(({rate}) => rate);
    const [from, to] = [Math.max(x.scale.domain[0], state.linear ? 0 : Math.min(...held)), Math.max(...held)];
    const c = contenderOf(curve);
    const line = Array.from({length: 33}, (_, i) => from + ((to - from) * i) / 32).map((rate) => ({c, x: rate, y: standing.mean + marginal.mean * rate})).filter(({y}) => y > 0);
    return Plot.line(line, {x: "x", y: "y", stroke: look(c).colour, strokeDasharray: look(c).dash, strokeWidth: 2, ...tagged(line, () => name(c))});
  });
  return lineChart({
    kind: "cpu-over-rate", rows, said, fitted: true, title: "Server CPU per second over the offered load",
    note: "lines: the standing cost plus the marginal cost of each request, fitted to rates that were held",
  }, rateAxis, (rows) => axis(rows.flatMap(({y, low, high}) => [y, low, high]), 7, {format: (ns) => tick("time", ns), pad: 1.1}), fits);
}

// The two parts of the cost: what an idle server takes per second, and what a request adds.
function parts(curves, part) {
  const {key, kind, title, unit} = {
    standing: {key: "standing_ns_per_s", kind: "standing", title: "Standing cost: CPU per second without requests", unit: " per second"},
    marginal: {key: "marginal_ns", kind: "marginal", title: "Marginal cost: CPU that one more request adds", unit: ""},
  }[part];
  const rows = () => shownCurves(curves).filter((curve) => curve.over.cost).map((curve) => ({c: contenderOf(curve), ...curve.over.cost[key]}));
  const words = (row) => {
    const [unitName, size] = unitOf("time", Math.max(Math.abs(row.mean), row.high));
    return interval(row, size).replace(" [", ` ${unitName} [`);
  };
  const said = (row) => `${name(row.c)}: ${words(row)}${unit}`;
  return {
    kind, rows, title, note: "95% intervals",
    options(rows, width) {
      // A standing cost may be negative or zero within its interval, so its axis is linear.
      const [least, most] = [Math.min(0, ...rows.map(({low}) => low)), Math.max(...rows.map(({high}) => high))];
      const log = part === "marginal" && !state.linear && rows.every(({low}) => low > 0);
      const all = rows.flatMap(({low, high}) => [low, high]);
      const x = log ? axis(all, width / 95, {kind: "time"}) : {scale: {type: "linear", domain: [least, most * 1.04], label: null}, ticks: ticks(least, most, width / 95, false), text: (v) => (v < 0 ? `-${tick("time", -v)}` : tick("time", v))};
      const texts = rows.map(words).map((text) => (width < 480 ? brief(text) : text));
      const room = Math.max(...texts.map(widthOfText));
      return {
        height: 44 + 24 * rows.length, marginTop: 18, marginBottom: 26, marginLeft: marginForNames(rows), marginRight: 16 + room, x: x.scale, y: bands(rows),
        marks: [
          ...axisAtBottom(x), least < 0 ? Plot.ruleX([0], {stroke: "var(--soft)"}) : null,
          Plot.link(rows, {x1: "low", x2: "high", y1: "c", y2: "c", stroke: colour, strokeWidth: 3, strokeLinecap: "round", ...tagged(rows, said)}),
          ...points(rows, "mean", "c", said), namesAtLeft(rows, "c", said),
          Plot.text(rows, {y: "c", frameAnchor: "right", dx: 8 + room, textAnchor: "end", text: (_, i) => texts[i], ...tagged(rows, said)}),
        ],
      };
    },
  };
}

const OVER = {
  connections: {at: "connections", label: "connections →", words: "connections"},
  cores: {at: "cores", label: "cores →", words: "cores"},
  idle: {at: "idle", label: "silent connections →", words: "silent connections"},
};

// Rates over connections or cores, with the fitted law.
function rateOver(curves) {
  const {kind} = curves[0].over;
  const {at, label, words} = OVER[kind];
  const rows = () => shownCurves(curves).flatMap((curve) => curve.over.points.filter((point) => point.rate_per_s)
    .map((point) => ({c: contenderOf(curve), x: point[at], y: point.rate_per_s.mean, low: point.rate_per_s.low, high: point.rate_per_s.high, rate: point.rate_per_s})));
  const said = (row) => `${name(row.c)} at ${row.x} ${words}: ${withInterval("rate", row.rate)}`;
  const laws = () => shownCurves(curves).filter((curve) => curve.over.usl && curve.over.points.some((point) => point.rate_per_s)).map((curve) => {
    const [lambda, sigma, kappa] = ["lambda", "sigma", "kappa"].map((key) => curve.over.usl[key].mean);
    const all = curve.over.points.map((point) => point[at]);
    const [first, last] = [Math.min(...all), Math.max(...all)];
    const c = contenderOf(curve);
    const line = Array.from({length: 49}, (_, i) => first * (last / first) ** (i / 48)).map((n) => ({c, x: n, y: (lambda * n) / (1 + sigma * (n - 1) + kappa * n * (n - 1))}));
    return Plot.line(line, {x: "x", y: "y", stroke: look(c).colour, strokeDasharray: look(c).dash, strokeWidth: 2, ...tagged(line, () => name(c))});
  });
  const hasLaw = curves.some((curve) => curve.over.usl);
  return lineChart({kind: `rate-over-${kind}`, rows, said, fitted: hasLaw, title: `Requests answered over ${words}`, note: hasLaw ? "lines: the universal scalability law" : "95% intervals"},
    (rows, width) => axis(rows.map(({x}) => x), width / 70, {format: short, label}),
    (rows) => axis(rows.flatMap(({y, low, high}) => [y, low, high]), 7, {kind: "rate", pad: 1.1}), laws);
}

// Costs over the number that varies, from the cells of the sweep.
function costOver(curves) {
  const {kind} = curves[0].over;
  const {at, label, words} = OVER[kind];
  const same = (a, b) => JSON.stringify({...a, [at]: 0}) === JSON.stringify({...b, [at]: 0});
  const rows = () => shownCurves(curves).flatMap((curve) => state.data.cells
    .filter(({cell}) => cell.contender === curve.contender && same(cell.load, curve.load) && (cell.load[at] ?? null) !== null && cell.cost_ns_per_request && !(kind === "idle" && cell.load.idle === 0 && !state.linear))
    .map(({cell, c}) => ({c, x: cell.load[at], y: cell.cost_ns_per_request.mean, low: cell.cost_ns_per_request.low, high: cell.cost_ns_per_request.high, cost: cell.cost_ns_per_request, isVoid: voids(cell, "cost")}))
    .sort((a, b) => a.x - b.x));
  const said = (row) => `${name(row.c)} at ${row.x} ${words}: ${withInterval("time", row.cost)} per ${per()}${row.isVoid ? ", void" : ""}`;
  return lineChart({kind: `cost-over-${kind}`, rows, said, title: `Server CPU per ${per()} over ${words}`, note: "95% intervals; hollow: void"},
    (rows, width) => axis(rows.map(({x}) => x), width / 70, {format: short, label}),
    (rows) => axis(rows.flatMap(({y, low, high}) => [y, low, high]), 7, {kind: "time", pad: 1.1}));
}

function sweepFigures(curves) {
  switch (curves[0].over.kind) {
    case "rate": return [latencyOverRate(curves, "p99"), latencyOverRate(curves, "p50"), cpuOverRate(curves), [parts(curves, "marginal"), parts(curves, "standing")]];
    case "idle": return [costOver(curves)];
    default: return [costOver(curves), rateOver(curves)];
  }
}
