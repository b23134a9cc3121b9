// The forest plot: ratios of costs to the baseline's, with intervals. A ratio that differs between states of the
// machine has a tick for each state.

const RELATIONS = {
  baseline: {word: "baseline", colour: "var(--ink)", symbol: "diamond"},
  tied: {word: "tied", colour: "var(--ink)", symbol: "square"},
  "not-told-apart": {word: "unclear", colour: "var(--soft)", symbol: "circle", hollow: true},
  cheaper: {word: "cheaper", colour: "var(--good)", symbol: "circle"},
  "dearer": {word: "costlier", colour: "var(--warn)", symbol: "circle"},
};
const UNRELATED = {word: "", colour: "var(--soft)", symbol: "times", hollow: true};

function forestRows(load) {
  return cellsOf(load).map(({cell, c}) => {
    const isBaseline = cell.relation === "baseline";
    const estimate = isBaseline ? {mean: 1, low: 1, high: 1} : cell.ratio_to_baseline;
    const isVoid = voids(cell, "cost");
    const relation = isVoid || look(c).reference ? UNRELATED : RELATIONS[cell.relation] ?? UNRELATED;
    const word = look(c).reference ? (cell.contender === "null" ? "floor" : "twin") : isVoid && estimate ? "void" : isVoid ? "" : relation.word;
    const why = cell.verdict.kind;
    const text = isBaseline ? "1" : estimate ? ratio(estimate) : why;
    const states = cell.states_differ ? cell.by_state.map(({ratio}) => ratio) : [];
    return {c, estimate, relation, word, text, why, states, ...(estimate ?? {})};
  });
}

function forest(load, title) {
  return {
    kind: "forest", load, title,
    note: `95% intervals${cellsOf(load).some(({cell}) => cell.states_differ) ? "; ticks: ratios in the states of the machine" : ""}`,
    rows: () => forestRows(load).filter((row, _, all) => all.some((row) => row.estimate && row.word !== "baseline")),
    options(rows, width) {
      const narrow = width < 520;
      const known = rows.filter((row) => row.estimate);
      const ticks = known.flatMap((row) => row.states.map(({mean}) => ({...row, mean})));
      const edges = [...known.flatMap(({low, high}) => [low, high]), ...ticks.map(({mean}) => mean), 0.9, 1.1];
      const says = (row) => (narrow ? brief(row.text) : row.text);
      const column = Math.max(...rows.map((row) => widthOfText(says(row))));
      const words = narrow ? 0 : Math.max(...rows.map(({word}) => widthOfText(word)));
      const said = (row) => `${name(row.c)}: ${row.text}${row.word ? `, ${row.word}` : ""}${row.estimate ? ` (${row.why})` : ""}${row.states.length > 0 ? `; by state of the machine: ${row.states.map(ratio).join(", ")}` : ""}`;
      const marginLeft = Math.min(narrow ? 118 : 160, 14 + Math.max(...rows.map((row) => widthOfText(name(row.c)))));
      const marginRight = 16 + column + (words ? words + 12 : 0);
      const x = axis(edges, (width - marginLeft - marginRight) / 50, {format: (value) => `${short(value)}×`, pad: 1.04});
      if (state.linear) x.scale.domain[0] = 0;
      const y = (row) => row.c;
      return {
        height: 52 + 24 * rows.length,
        marginLeft, marginRight,
        marginTop: 20, marginBottom: 32,
        x: x.scale,
        y: {type: "band", domain: rows.map(y), label: null},
        marks: [
          ...axisAtBottom(x),
          Plot.ruleX([1], {stroke: "var(--ink)", strokeOpacity: 0.55, strokeDasharray: "3 3"}),
          Plot.link(known, {x1: "low", x2: "high", y1: y, y2: y, stroke: plain((row) => row.relation.colour), strokeWidth: 3, strokeLinecap: "round", ...tagged(known, said)}),
          Plot.text(ticks, {x: "mean", y, text: () => "|", fill: plain((row) => row.relation.colour), fontWeight: 700, ...tagged(ticks, said)}),
          Plot.dot(known, {
            x: "mean", y, r: 5, symbol: (row) => row.relation.symbol, stroke: plain((row) => row.relation.colour), strokeWidth: 1.8,
            fill: plain((row) => (row.relation.hollow ? "var(--paper)" : row.relation.colour)), ...tagged(known, said),
          }),
          Plot.text(rows, {y, frameAnchor: "left", dx: -8, textAnchor: "end", text: (row) => shorten(name(row.c), narrow ? 15 : 21), fill: plain((row) => (look(row.c).reference ? "var(--soft)" : "var(--ink)")), fontWeight: plain((row) => (row.word === "baseline" ? 700 : 400)), ...tagged(rows, said)}),
          Plot.text(rows, {y, frameAnchor: "right", dx: 10 + column, textAnchor: "end", text: says, fill: plain((row) => (row.estimate ? "var(--ink)" : "var(--soft)")), ...tagged(rows, said)}),
          words ? Plot.text(rows, {y, frameAnchor: "right", dx: 22 + column, textAnchor: "start", text: "word", fill: plain((row) => row.relation.colour), fontWeight: 600, ...tagged(rows, said)}) : null,
        ],
      };
    },
  };
}
