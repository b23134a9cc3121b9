// Plots of the cells of a load: cost, latency percentiles, memory, warm-up, the load beside; and of the whole
// race: rounds in order of time, lines of code.

const marginForNames = (rows, most = 150) => Math.min(most, 14 + Math.max(...rows.map((row) => widthOfText(name(row.c)))));
const namesAtLeft = (rows, y, said) => Plot.text(rows, {
  y, frameAnchor: "left", dx: -8, textAnchor: "end", text: (row) => shorten(name(row.c), 21),
  fill: plain((row) => (look(row.c).reference ? "var(--soft)" : "var(--ink)")), ...tagged(rows, said),
});
const bands = (rows) => ({type: "band", domain: [...new Set(rows.map((row) => row.c))], label: null});
const faint = plain((row) => (row.isVoid ? 0.45 : 1));

// Absolute costs with intervals; the null server's is the floor.
function cost(load) {
  const rows = () => (state.data.summary.asked.loads[load].beside ? [] : cellsOf(load)
    .filter(({cell}) => cell.cost_ns_per_request)
    .map(({cell, c}) => ({c, cell, ...cell.cost_ns_per_request, isVoid: voids(cell, "cost")})));
  const said = (row) => `${name(row.c)}: ${withInterval("time", row)} per ${per()}${row.isVoid ? ", void" : ""}`;
  return {
    kind: "cost", load, rows, title: `Server CPU per ${per()}`, note: "95% intervals",
    options(rows, width) {
      const x = axis(rows.flatMap(({low, high}) => [low, high]), (width - 190) / 60, {kind: "time"});
      const texts = rows.map((row) => brief(withInterval("time", row)));
      const floor = rows.find(({cell}) => cell.contender === "null");
      const y = (row) => row.c;
      return {
        height: 44 + 22 * rows.length, marginTop: 18, marginBottom: 26,
        marginLeft: marginForNames(rows), marginRight: 14 + Math.max(...texts.map(widthOfText)),
        x: x.scale, y: bands(rows),
        marks: [
          ...axisAtBottom(x),
          floor ? Plot.ruleX([floor.mean], {stroke: "var(--soft)", strokeDasharray: "2 3"}) : null,
          Plot.link(rows, {x1: (row) => Math.max(row.low, x.scale.domain[0]), x2: "high", y1: y, y2: y, stroke: colour, strokeOpacity: faint, strokeWidth: 3, strokeLinecap: "round", ...tagged(rows, said)}),
          ...points(rows, "mean", y, said, (row) => row.isVoid),
          namesAtLeft(rows, y, said),
          Plot.text(rows, {y, frameAnchor: "right", dx: 8 + Math.max(...texts.map(widthOfText)), textAnchor: "end", text: (_, i) => texts[i], ...tagged(rows, said)}),
        ],
      };
    },
  };
}

// Costs by role: which part of a contender's cost is the server's, and which its backends'.
function roles(load) {
  const rows = () => cellsOf(load).flatMap(({cell, c}) => {
    let from = 0;
    return cell.roles?.map((role, nth) => {
      const x1 = from;
      from += role.cost_ns_per_request?.mean ?? 0;
      return {c, nth, role: role.name, x1, x2: from, ns: role.cost_ns_per_request?.mean, isVoid: voids(cell, "cost")};
    }).filter(({ns}) => ns) ?? [];
  });
  const said = (row) => `${name(row.c)}, ${row.role}: ${time(row.ns)} per ${per()}${row.isVoid ? ", void" : ""}`;
  return {
    kind: "roles", load, rows, title: `Parts of the cost, by role`, note: "solid: the server; lighter: its backends",
    options(rows, width) {
      const x = axis(rows.map(({x2}) => x2), width / 80, {kind: "time", log: false, pad: 1.03});
      return {
        height: 44 + 24 * new Set(rows.map(({c}) => c)).size, marginTop: 18, marginBottom: 26, marginLeft: marginForNames(rows), marginRight: 20,
        x: x.scale, y: {...bands(rows), padding: 0.3},
        marks: [
          ...axisAtBottom(x),
          Plot.rect(rows, {x1: "x1", x2: "x2", y: "c", fill: colour, fillOpacity: plain((row) => (row.isVoid ? 0.3 : 1) * (row.nth === 0 ? 1 : 0.45 / row.nth)), ...tagged(rows, said)}),
          namesAtLeft(rows.filter(({nth}) => nth === 0), "c", said),
        ],
      };
    },
  };
}

// Percentile curves. The horizontal axis gives each further nine the same room: 90%, 99%, 99.9%.
const nines = (quantile) => -Math.log10(1 - quantile);
function percentiles(load) {
  const rows = () => cellsOf(load).filter(({ladder}) => ladder).flatMap(({cell, c, ladder}) =>
    ladder.ns.map((ns, i) => ({
      c, ns, quantile: state.data.quantiles[i], x: nines(state.data.quantiles[i]), i,
      low: ladder.low[i], high: ladder.high[i], isVoid: voids(cell, "latency"), last: i === ladder.ns.length - 1,
      pooled: ladder.low.length > 0 && i >= ladder.low.length,
    })));
  const latencyOf = state.data.summary.asked.latency_of;
  return {
    kind: "percentiles", load, rows, height: 340,
    title: `Latency percentiles${latencyOf ? ` of the ${latencyOf.one}` : ""}`,
    note: "ribbon: from the lowest to the highest round; dashed: all rounds together; curves end where fewer than ten samples remain",
    options(rows, width) {
      const y = axis(rows.flatMap(({ns, low, high}) => [ns, low, high].filter(Boolean)), 7, {kind: "time", pad: 1.05});
      const most = Math.max(...rows.map(({x}) => x));
      const labels = [[0, "0"], [nines(0.5), "50%"], ...[1, 2, 3, 4, 5, 6].map((n) => [n, n === 1 ? "90%" : n === 2 ? "99%" : `99.${"9".repeat(n - 2)}%`])].filter(([x]) => x <= most + 0.01 && (x !== 0 || width > 420));
      const text = new Map(labels);
      const x = {scale: {type: "linear", domain: [0, most], label: null}, ticks: labels.map(([x]) => x), text: (x) => text.get(x)};
      const said = (row) => `${name(row.c)}: ${short(row.quantile * 100)}% of the latencies are at most ${time(row.ns)}${row.isVoid ? " (void)" : ""}`;
      const solid = rows.filter((row) => !row.pooled);
      const dashed = byContender(rows).flatMap(([, mine]) => mine.slice(Math.max(0, mine.findIndex(({pooled}) => pooled) - 1)).filter(() => mine.some(({pooled}) => pooled)));
      const ribbon = rows.filter(({low}) => low !== undefined);
      const ends = rows.filter(({last}) => last);
      const marked = rows.filter(({quantile}) => [0.5, 0.9, 0.99, 0.999].includes(quantile));
      return {
        height: heightForNames(rows), marginLeft: 58, marginRight: ends.length > 0 ? 112 : 20, marginTop: 14, marginBottom: 30,
        x: x.scale, y: {...y.scale, clamp: true},
        marks: [
          ...axisAtBottom(x), ...axisAtLeft(y),
          ...byContender(ribbon).map(([c, mine]) => Plot.areaY(mine, {x: "x", y1: "low", y2: "high", fill: look(c).colour, fillOpacity: Math.min(0.14, 0.7 / ends.length), ...tagged(mine, () => name(c))})),
          ...byContender(solid).map(([c, mine]) => Plot.line(mine, {x: "x", y: "ns", stroke: look(c).colour, strokeWidth: 2, strokeDasharray: look(c).dash, strokeOpacity: mine[0].isVoid ? 0.5 : 1, ...tagged(mine, () => name(c))})),
          ...byContender(dashed).map(([c, mine]) => Plot.line(mine, {x: "x", y: "ns", stroke: look(c).colour, strokeWidth: 1.5, strokeDasharray: "3 3", strokeOpacity: mine[0].isVoid ? 0.5 : 1, ...tagged(mine, () => name(c))})),
          ...points(marked, "x", "ns", said, (row) => row.isVoid),
          endNames(ends.map(({c, x, ns}) => ({c, x, y: ns}))),
        ],
      };
    },
  };
}

// Memory with the connections open.
function memoryPlot(load) {
  const rows = () => cellsOf(load).filter(({cell}) => cell.memory_bytes > 0).map(({cell, c}) => ({c, bytes: cell.memory_bytes, cell, isVoid: voids(cell, "memory")}));
  const each = (cell) => {
    const [user, kernel] = [cell.user_bytes_per_connection, cell.kernel_bytes_per_connection];
    return user > 0 || kernel > 0 ? `; each connection: ${memory(Math.max(0, user ?? 0))} of its own, ${memory(Math.max(0, kernel ?? 0))} of the kernel's` : "";
  };
  const said = (row) => `${name(row.c)}: ${memory(row.bytes)}${each(row.cell)}`;
  return {
    kind: "memory", load, rows, title: "Memory with the connections open",
    options(rows, width) {
      const x = axis(rows.map(({bytes}) => bytes), (width - 210) / 68, {kind: "memory", pad: 1.15});
      return {
        height: 44 + 22 * rows.length, marginTop: 18, marginBottom: 26, marginLeft: marginForNames(rows), marginRight: 78,
        x: x.scale, y: bands(rows),
        marks: [
          ...axisAtBottom(x),
          Plot.link(rows, {x1: x.scale.domain[0], x2: "bytes", y1: "c", y2: "c", stroke: "var(--line)", strokeWidth: 2}),
          ...points(rows, "bytes", "c", said, (row) => row.isVoid),
          namesAtLeft(rows, "c", said),
          Plot.text(rows, {y: "c", frameAnchor: "right", dx: 74, textAnchor: "end", text: (row) => memory(row.bytes), ...tagged(rows, said)}),
        ],
      };
    },
  };
}

// How the cost changed from the first second to the steady state, and when that was reached.
function settling(load) {
  const rows = () => cellsOf(load).filter(({cell}) => cell.settling && cell.settling.class !== "flat").map(({cell, c}) => ({
    c, cold: cell.settling.cold_ns_per_request, warm: cell.settling.warm_ns_per_request,
    settled: cell.settling.class !== "never-settles", after: cell.settling.after_ns, seen: cell.settling.observed_ns,
  }));
  const after = (row) => (row.settled ? `steady after ${time(row.after)}` : `not steady within ${time(row.seen)}`);
  const said = (row) => `${name(row.c)}: ${time(row.cold)} per request in the first second, then ${time(row.warm)}; ${after(row)}`;
  return {
    kind: "settling", load, rows, title: "Warm-up: CPU per request, cold and warm", note: "hollow: the first second; solid: then",
    options(rows, width) {
      const x = axis(rows.flatMap(({cold, warm}) => [cold, warm]), (width - 190) / 60, {kind: "time"});
      const texts = rows.map((row) => (row.settled ? time(row.after) : `> ${time(row.seen)}`));
      return {
        height: 44 + 22 * rows.length, marginTop: 18, marginBottom: 26, marginLeft: marginForNames(rows), marginRight: 16 + Math.max(...texts.map(widthOfText)),
        x: x.scale, y: bands(rows),
        marks: [
          ...axisAtBottom(x),
          Plot.link(rows, {x1: "cold", x2: "warm", y1: "c", y2: "c", stroke: colour, strokeWidth: 2, strokeOpacity: 0.6, ...tagged(rows, said)}),
          ...points(rows, "cold", "c", said, () => true),
          ...points(rows, "warm", "c", said),
          namesAtLeft(rows, "c", said),
          Plot.text(rows, {y: "c", frameAnchor: "right", dx: 8 + Math.max(...texts.map(widthOfText)), textAnchor: "end", text: (_, i) => texts[i], ...tagged(rows, said)}),
        ],
      };
    },
  };
}

// A point for each contender; both axes logarithmic.
function scatter(spec, xAxis, yAxis) {
  return {
    ...spec,
    options(rows, width) {
      const x = axis(rows.map(({x}) => x), width / 90, {...xAxis, pad: 1.25});
      const y = axis(rows.flatMap(({y, low, high}) => [y, low ?? y, high ?? y]), 6, {...yAxis, pad: 1.2});
      const ranged = rows.filter(({low}) => low !== undefined);
      return {
        height: 300, marginLeft: 62, marginRight: 30, marginTop: 26, marginBottom: 46, x: x.scale, y: y.scale,
        marks: [
          ...axisAtBottom(x), ...axisAtLeft(y),
          Plot.link(ranged, {x1: "x", x2: "x", y1: "low", y2: "high", stroke: colour, strokeWidth: 2, ...tagged(ranged, spec.said)}),
          ...points(rows, "x", "y", spec.said, (row) => row.isVoid),
          pointNames(rows),
        ],
      };
    },
  };
}

// Latency of the small requests over the rate of the large ones beside them.
function beside(load) {
  const rows = () => (state.data.summary.asked.loads[load].beside ? cellsOf(load)
    .filter(({cell}) => cell.beside_per_s && shownPercentile(cell, "p99"))
    .map(({cell, c}) => {
      const p99 = shownPercentile(cell, "p99");
      return {c, x: cell.beside_per_s.mean, rate: cell.beside_per_s, y: p99.mean, low: p99.low, high: p99.high, isVoid: voids(cell, "latency")};
    }) : []);
  const said = (row) => `${name(row.c)}: p99 of the small requests ${time(row.y)}, large requests ${withInterval("rate", row.rate)}`;
  return scatter({kind: "beside", load, rows, said, title: "Small requests beside large ones: p99 of the small ones over the rate of the large ones", note: "bottom right is best"},
    {kind: "rate", label: "large requests →"}, {kind: "time"});
}

// A percentile as tables show it: the mean over rounds with its interval, otherwise that of all rounds.
function shownPercentile(cell, percentile) {
  if (cell.not_known?.includes(percentile)) return null;
  const pooled = cell.latency_ns[percentile];
  return pooled ? cell.latency_intervals?.[percentile] ?? {mean: pooled} : null;
}

// Figures of an article beside ours, where both are rates.
function thenAndNow(load) {
  const parse = (text) => {
    const found = text?.replace(/,/g, "").match(/^(\d+(?:\.\d+)?)(?:–(\d+(?:\.\d+)?))? *(k?\/s)$/);
    if (!found) return null;
    const size = found[3] === "k/s" ? 1000 : 1;
    return [Number(found[1]) * size, Number(found[2] ?? found[1]) * size];
  };
  const rows = () => cellsOf(load).filter(({cell}) => parse(cell.then) && cell.rate_per_s).map(({cell, c}) => {
    const [low, high] = parse(cell.then);
    return {c, low, high, then: cell.then, now: cell.rate_per_s.mean, rate: cell.rate_per_s, isVoid: voids(cell, "rate")};
  });
  const said = (row) => `${name(row.c)}: ${row.then} then, ${withInterval("rate", row.rate)} now, on other machines`;
  return {
    kind: "then", load, rows, title: "Then and now: requests per second",
    note: "bar: as published; symbol: here. Other machines and versions, so do not compare",
    options(rows, width) {
      const x = axis(rows.flatMap(({low, high, now}) => [low, high, now]), (width - 150) / 64, {kind: "rate", pad: 1.2});
      return {
        height: 44 + 24 * rows.length, marginTop: 18, marginBottom: 26, marginLeft: marginForNames(rows), marginRight: 24, x: x.scale, y: bands(rows),
        marks: [
          ...axisAtBottom(x),
          Plot.link(rows, {x1: (row) => (row.low + row.high) / 2, x2: "now", y1: "c", y2: "c", stroke: "var(--line)", strokeWidth: 2}),
          Plot.link(rows, {x1: (row) => row.low / 1.02, x2: (row) => row.high * 1.02, y1: "c", y2: "c", stroke: "var(--soft)", strokeWidth: 10, ...tagged(rows, said)}),
          ...points(rows, "now", "c", said, (row) => row.isVoid),
          namesAtLeft(rows, "c", said),
        ],
      };
    },
  };
}

// Lines of code against cost, at the first load with costs.
function code() {
  const {asked} = state.data.summary;
  const load = asked.loads.findIndex((_, l) => state.data.cells.some(({cell, l: of}) => of === l && cell.cost_ns_per_request && !voids(cell, "cost")));
  const lines = new Map(asked.entries.filter(({lines_of_code: n}) => n > 0).map((entry) => [entry.name, entry.lines_of_code]));
  const rows = () => (load < 0 || lines.size < 3 ? [] : cellsOf(load)
    .filter(({cell}) => lines.has(cell.contender) && cell.cost_ns_per_request && !voids(cell, "cost"))
    .map(({cell, c}) => ({c, x: lines.get(cell.contender), y: cell.cost_ns_per_request.mean, low: cell.cost_ns_per_request.low, high: cell.cost_ns_per_request.high, cost: cell.cost_ns_per_request})));
  const said = (row) => `${name(row.c)}: ${row.x} lines, ${withInterval("time", row.cost)} per ${per()}`;
  return scatter({kind: "code", load, rows, said, title: `Lines of code and cost${asked.loads.length > 1 ? `, ${state.data.loads[load].replace(/^(?!at )/, "at ")}` : ""}`, note: "without blank lines and comments; libraries are not counted"},
    {format: (value) => short(value), label: "lines of code →"}, {kind: "time"});
}

// All rounds in order of time: each cost relative to the median of its contender and load.
function strip() {
  const median = (values) => { const sorted = [...values].sort((a, b) => a - b); return sorted[sorted.length >> 1]; };
  const {rounds} = state.data;
  const all = rounds.contender.map((c, i) => ({c, l: rounds.load[i], i, cost: rounds.cost_ns[i], rate: rounds.rate_per_s[i], outcome: rounds.outcome[i], pass: rounds.pass[i]}));
  let at = 0;
  for (const [i, row] of all.entries()) { at += rounds.after_s[i]; row.at = at; }
  const cells = new Map();
  for (const row of all) if (row.cost !== null) {
    const key = row.l * 4096 + row.c;
    if (!cells.has(key)) cells.set(key, []);
    cells.get(key).push(row.cost);
  }
  const medians = new Map([...cells].map(([key, costs]) => [key, median(costs)]));
  for (const row of all) row.y = row.cost === null ? null : row.cost / medians.get(row.l * 4096 + row.c);
  const OUTCOMES = ["finished", "disqualified", "failed", "beyond its limit"];
  return {
    kind: "strip", height: 220, title: "All rounds in order of time", wide: true,
    note: "server CPU of each round over the median of its contender and load: a slope is drift of the machine; ×: no cost",
    rows: () => all.filter(({c, l}) => isShown(c) && (state.load < 0 || l === state.load)),
    options(rows, width) {
      const known = rows.filter(({y}) => y !== null);
      const x = {scale: {type: "linear", domain: [0, Math.max(1, at)], label: null}};
      const [unit, size] = at >= 10800 ? ["h", 3600] : at >= 120 ? ["min", 60] : ["s", 1];
      x.ticks = ticks(0, Math.max(1, at) / size, width / 110, false).map((value) => value * size);
      x.text = (s) => (s === 0 ? "start" : `${short(s / size)} ${unit}`);
      const y = axis([...known.map(({y}) => y), 0.9, 1.1], 5, {format: (value) => `${short(value)}×`, log: true, pad: 1.03});
      // A path for each contender: thousands of elements would be slow.
      const dots = (_, scales, __, ___, {document}) => {
        const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
        group.setAttribute("class", "rounds");
        for (const [c, mine] of byContender(known)) {
          const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
          path.setAttribute("d", mine.map((row) => `M${scales.x(row.at).toFixed(1)},${scales.y(row.y).toFixed(1)}h0`).join(""));
          path.setAttribute("stroke", look(c).colour);
          path.setAttribute("stroke-width", rows.length > 2000 ? 2.5 : 5);
          path.setAttribute("stroke-linecap", "round");
          path.dataset.c = c;
          path.dataset.text = `${name(c)}: ${mine.length} rounds`;
          group.append(path);
        }
        return group;
      };
      const missing = rows.filter(({y}) => y === null);
      return {
        height: 220, marginLeft: 52, marginRight: 20, marginTop: 14, marginBottom: 30, x: x.scale, y: {...y.scale, clamp: true},
        marks: [
          ...axisAtBottom(x), ...axisAtLeft(y), Plot.ruleY([1], {stroke: "var(--ink)", strokeOpacity: 0.5, strokeDasharray: "3 3"}),
          dots,
          Plot.dot(missing, {x: "at", frameAnchor: "bottom", dy: -6, r: 4, symbol: "times", stroke: "var(--bad)", ...tagged(missing, (row) => `${name(row.c)}: ${OUTCOMES[row.outcome]}`)}),
        ],
      };
    },
  };
}
