// What is shown: the data, which contenders and loads are visible, and which contender is emphasised.

const state = {data: null, hidden: new Set(), pinned: new Set(), over: null, load: -1, linear: false};
const COLOURS = 8;
const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "wye", "cross"];
const DASHES = ["none", "6 3", "2 3", "8 3 2 3"];

// Prepares the data: each cell gets the indices of its contender and load.
function take(data) {
  state.data = data;
  const {asked, cells} = data.summary;
  const index = new Map(data.contenders.map((name, c) => [name, c]));
  const key = (load) => JSON.stringify(load);
  const loads = new Map(asked.loads.map((load, l) => [key(load), l]));
  data.cells = cells.map((cell, i) => ({
    cell, c: index.get(cell.contender), l: loads.get(key(cell.load)), ladder: data.ladders[i],
  }));
  const twin = asked.twin_of && `${asked.twin_of}-twin`;
  const raced = new Set(data.cells.filter(({cell}) => cell.verdict.kind !== "skipped").map(({c}) => c));
  let nth = 0;
  data.looks = data.contenders.map((name, c) => {
    if (name === "null") return {raced: raced.has(c), colour: "var(--soft)", symbol: "times", dash: "2 3", reference: true};
    if (name === twin) return {raced: raced.has(c), colour: "var(--soft)", symbol: "plus", dash: "6 3", reference: true};
    if (!raced.has(c)) return {raced: false, colour: "var(--soft)", symbol: "circle", dash: "none"};
    const look = {
      raced: true, colour: `var(--c${nth % COLOURS})`, symbol: SYMBOLS[nth % SYMBOLS.length],
      dash: DASHES[Math.floor(nth / COLOURS) % DASHES.length],
    };
    nth += 1;
    return look;
  });
}

const name = (c) => state.data.names[c];
const look = (c) => state.data.looks[c];
const isShown = (c) => !state.hidden.has(c);
const per = () => state.data.summary.asked.cost_per?.one ?? "request";
const voids = (cell, figure) => cell.verdict.void.includes(figure);

// The cells of a load that were run, in the order of the table: contenders, then references.
function cellsOf(load) {
  const all = state.data.cells.filter(({cell, c, l}) => l === load && cell.verdict.kind !== "skipped" && isShown(c));
  return [...all.filter(({c}) => !look(c).reference), ...all.filter(({c}) => look(c).reference)];
}

// The contenders to emphasise; empty: all alike.
const emphasised = () => (state.over === null ? state.pinned : new Set([...state.pinned, state.over]));

// Dims everything that belongs to other contenders.
function emphasise(root = document) {
  const chosen = emphasised();
  document.documentElement.classList.toggle("chosen", chosen.size > 0);
  for (const element of root.querySelectorAll("[data-c]")) {
    const mine = chosen.has(Number(element.dataset.c));
    element.classList.toggle("dim", chosen.size > 0 && !mine);
    element.classList.toggle("mine", mine);
  }
}
