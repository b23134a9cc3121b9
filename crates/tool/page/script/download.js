// The numbers as files.

function save(text, file, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Nested objects as one flat one, with keys joined by dots.
function flat(value, prefix, into) {
  for (const [key, inner] of Object.entries(value)) {
    if (inner !== null && typeof inner === "object") flat(inner, `${prefix}${key}.`, into);
    else into[prefix + key] = inner;
  }
  return into;
}

// A field of a CSV file. A spreadsheet would compute a text that starts like a formula.
function field(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function csv(rows) {
  const columns = [...new Set(rows.flatMap(Object.keys))];
  return [columns, ...rows.map((row) => columns.map((column) => row[column]))]
    .map((fields) => fields.map(field).join(",")).join("\n") + "\n";
}

const cellsCsv = () => csv(state.data.summary.cells.map((cell) => {
  const {load, contender, ...figures} = cell;
  const l = state.data.summary.asked.loads.findIndex((other) => JSON.stringify(other) === JSON.stringify(load));
  return {load: state.data.loads[l], contender, ...flat(figures, "", {})};
}));

const roundsCsv = () => {
  const {rounds, contenders, loads} = state.data;
  let at = 0;
  return csv(rounds.contender.map((c, i) => ({
    seconds: (at += rounds.after_s[i]), round: rounds.pass[i] + 1, load: loads[rounds.load[i]], contender: contenders[c],
    outcome: ["finished", "disqualified", "failed", "cannot-hold"][rounds.outcome[i]],
    cost_ns: rounds.cost_ns[i], rate_per_s: rounds.rate_per_s[i], p99_ns: rounds.p99_ns[i],
  })));
};

const DOWNLOADS = [
  ["summary.json", "All figures, with nine digits", () => save(JSON.stringify(state.data.summary, null, 2), "summary.json", "application/json")],
  ["cells.csv", "A row for each contender and load", () => save(cellsCsv(), "cells.csv", "text/csv")],
  ["rounds.csv", "A row for each round, with four digits", () => save(roundsCsv(), "rounds.csv", "text/csv")],
];
