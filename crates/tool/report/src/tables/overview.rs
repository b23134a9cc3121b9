//! All loads of a race at a glance: a matrix of ratios, and the answer over all loads.

use crate::{
    numbers,
    table::{Column, Row, Table, Text, Tone, visible},
    tables::columns::{none, plain},
};
use regatta_record::{Cell, Estimate, Figure, Kind, LoadShape, Relation, Summary};

/// The meaning of the marks of the matrix.
pub const LEGEND: [(&str, &str); 4] = [
    ("=", "tied: within ±2%"),
    ("?", "unclear: not decided"),
    ("–", "no ratio"),
    ("·", "not raced yet"),
];

/// The cost of each contender as a multiple of the baseline's, with a row for each load. `None` with
/// fewer than two loads, and if there is no contender to compare.
pub fn overview(summary: &Summary) -> Option<Table> {
    let asked = &summary.asked;
    let with_cost: Vec<&LoadShape> = loads(summary);
    let names = compared(summary);
    if with_cost.len() < 2 || names.is_empty() {
        return None;
    }
    let columns = names.iter().map(|name| Column::right("ratio", 0).titled(&visible(name)));
    let row = |load: &&LoadShape| {
        let cells = names.iter().map(|name| mark(cell(summary, name, load)));
        let cells = [plain(visible(&load.to_string()))].into_iter().chain(cells).collect();
        Row::plain(false, cells)
    };
    let title = format!("cost as a multiple of {}'s · {}", asked.baseline, asked.workload);
    let columns = [Column::left("load")].into_iter().chain(columns).collect();
    Some(Table::plain(visible(&title), columns, with_cost.iter().map(row).collect()))
}

/// The loads that compare costs.
fn loads(summary: &Summary) -> Vec<&LoadShape> {
    summary.asked.loads.iter().filter(|load| load.beside.is_none()).collect()
}

/// The contenders that are compared with the baseline, in the order of the race.
fn compared(summary: &Summary) -> Vec<&String> {
    let asked = &summary.asked;
    let is_compared = |name: &&String| {
        **name != asked.baseline && !asked.is_reference(name) && !asked.is_skipped(name)
    };
    asked.contenders.iter().filter(is_compared).collect()
}

fn cell<'a>(summary: &'a Summary, name: &str, load: &LoadShape) -> Option<&'a Cell> {
    summary.cells.iter().find(|cell| cell.contender == name && cell.load == *load)
}

/// `1.75`, `1.00=`, `1.03?`, `42`.
fn mark(cell: Option<&Cell>) -> Text {
    let Some(cell) = cell.filter(|cell| cell.verdict.kind() != Kind::Skipped) else {
        return Text { text: "·".to_owned(), tone: Tone::Void };
    };
    let ratio = cell.ratio_to_baseline.filter(|_| !cell.verdict.voids(Figure::Cost));
    let (Some(ratio), Some(relation)) = (ratio, cell.relation) else { return none() };
    let (mark, tone) = match relation {
        Relation::Baseline => ("", Tone::Plain),
        Relation::Tied => ("=", Tone::Plain),
        Relation::Inconclusive => ("?", Tone::Void),
        Relation::Cheaper => ("", Tone::Good),
        Relation::Costlier => ("", Tone::Warn),
    };
    Text { text: format!("{}{mark}", mean(&ratio)), tone }
}

/// The answer over all loads, if there are at least two: one part for each contender.
pub fn overall(summary: &Summary) -> Option<String> {
    let baseline = visible(&summary.asked.baseline);
    let loads = loads(summary);
    if loads.len() < 2 {
        return None;
    }
    let mut same = Vec::new();
    let mut parts: Vec<(f64, String)> = Vec::new();
    for name in compared(summary) {
        let cells: Vec<&Cell> = loads
            .iter()
            .filter_map(|load| cell(summary, name, load))
            .filter(|c| c.band.is_some() && c.ratio_to_baseline.is_some())
            .collect();
        let ratios: Vec<Estimate> = cells.iter().filter_map(|c| c.ratio_to_baseline).collect();
        let count = |relation| cells.iter().filter(|c| c.relation == Some(relation)).count();
        let (cheaper, costlier) = (count(Relation::Cheaper), count(Relation::Costlier));
        let by_mean = |a: &&Estimate, b: &&Estimate| a.mean.total_cmp(&b.mean);
        let extremes = ratios.iter().min_by(by_mean).zip(ratios.iter().max_by(by_mean));
        let name = visible(name);
        match extremes {
            None => {}
            Some(_) if cheaper + costlier == 0 => same.push(match ratios.len() {
                all if all == loads.len() => name,
                of => format!("{name}{}", at_loads(of)),
            }),
            Some((least, most)) => {
                let range = range(least, most);
                let of = ratios.len();
                let all = [cheaper, costlier].contains(&of);
                let at = match (cheaper, costlier) {
                    _ if all && of == loads.len() => String::new(),
                    _ if all => at_loads(of),
                    (0, n) => format!(" (costlier at {n} of {of} loads)"),
                    (n, 0) => format!(" (cheaper at {n} of {of} loads)"),
                    (n, m) => format!(" (cheaper at {n} and costlier at {m} of {of} loads)"),
                };
                parts.push((most.mean, format!("{name} {range}{at}")));
            }
        }
    }
    if same.is_empty() && parts.is_empty() {
        return None;
    }
    parts.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut text = String::new();
    if let Some(((_, first), rest)) = parts.split_first() {
        text = format!("Over {} loads, as multiples of {baseline}'s cost: {first}", loads.len());
        rest.iter().for_each(|(_, part)| text += &format!(", {part}"));
        text += ".";
    }
    if !same.is_empty() {
        let gap = if text.is_empty() { "" } else { " " };
        text += &format!("{gap}No load distinguishes {} from {baseline}.", same.join(", "));
    }
    Some(text)
}

/// ` (at 2 loads)`.
fn at_loads(n: usize) -> String {
    format!(" (at {n} load{})", if n == 1 { "" } else { "s" })
}

/// The mean of a ratio, with the digits that its interval supports.
fn mean(ratio: &Estimate) -> String {
    numbers::brief(&numbers::bare_ratio(ratio))
}

/// `1.81–2.40×`.
fn range(least: &Estimate, most: &Estimate) -> String {
    let (low, high) = (mean(least), mean(most));
    if low == high { format!("{low}×") } else { format!("{low}–{high}×") }
}
