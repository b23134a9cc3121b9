// Tables: rows belong to contenders; columns can be sorted.

const SIZES = new Map([
  ["ns", 1e-9], ["µs", 1e-6], ["ms", 1e-3], ["s", 1], ["min", 60], ["B", 1], ["KiB", 1024], ["MiB", 1048576],
  ["GiB", 1073741824], ["/s", 1], ["k/s", 1e3], ["M/s", 1e6],
]);

// The value by which a text is sorted: its first number in its unit; null if it has none.
function sortValue(text) {
  if (text === "at once") return 0;
  const found = text.replace(/(\d),(?=\d{3}(?!\d))/g, "$1").replace(/[(),≥≤>~±]/g, " ").trim().match(/^(-?\d+(?:\.\d+)?) *([a-zµ/KMGiB]*)/i);
  return found ? Number(found[1]) * (SIZES.get(found[2]) ?? 1) : null;
}

// The cells of the titles; groups of columns may be above them.
const titlesOf = (table) => [...table.tHead.rows].at(-1).cells;

function sortBy(table, column, button) {
  const header = button.parentElement;
  const down = header.getAttribute("aria-sort") === "ascending";
  for (const other of titlesOf(table)) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => {
    const text = row.cells[column]?.textContent.trim() ?? "";
    return {row, text, value: sortValue(text)};
  });
  const numeric = rows.filter(({value}) => value !== null).length > rows.length / 2;
  rows.sort((a, b) => {
    if (!numeric) return (down ? -1 : 1) * a.text.localeCompare(b.text, "en", {numeric: true});
    if (a.value === null || b.value === null) return (a.value === null) - (b.value === null);
    return (down ? -1 : 1) * (a.value - b.value);
  });
  body.append(...rows.map(({row}) => row));
}

function bindTables(root) {
  const index = new Map(state.data.names.map((name, c) => [name, c]));
  for (const table of root.querySelectorAll("table.sortable")) {
    for (const [column, header] of [...titlesOf(table)].entries()) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.title = "Sort";
      button.addEventListener("click", () => sortBy(table, column, button));
      header.append(button);
    }
    // A line may break before an interval, but not inside it.
    for (const cell of table.matches(".plain") ? [] : table.tBodies[0].querySelectorAll("td")) {
      const text = cell.childElementCount === 0 ? cell.firstChild : null;
      const at = text ? text.data.indexOf(" [") : -1;
      if (at > 0) cell.append(make("span", {class: "whole"}, text.splitText(at + 1)));
    }
    for (const row of table.tBodies[0].rows) {
      const c = index.get(row.cells[0]?.textContent.trim());
      if (c !== undefined) row.dataset.c = c;
    }
  }
  const matrix = root.querySelector("table.matrix");
  if (matrix) {
    const columns = [...matrix.tHead.rows[0].cells].map((cell) => index.get(cell.textContent.trim()));
    for (const row of matrix.rows)
      for (const [i, cell] of [...row.cells].entries()) if (columns[i] !== undefined) cell.dataset.c = columns[i];
  }
}

// Hides the rows of hidden contenders and the sections of other loads.
function filterTables(root) {
  for (const element of root.querySelectorAll("tbody tr[data-c], table.matrix [data-c]"))
    element.hidden = !isShown(Number(element.dataset.c));
  for (const section of root.querySelectorAll("section.load"))
    section.hidden = state.load >= 0 && !section.dataset.load.split(" ").includes(String(state.load));
}
