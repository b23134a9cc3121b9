//! Tables of operations other than requests: one for each load under which such operations were
//! counted, e.g. the deliveries of a hub.

use crate::{
    columns::{figure, latency, not_known, plain},
    numbers,
    parts::parts,
    table::{Column, Row, Table, visible},
};
use regatta_record::{Cell, Figure, LoadShape, OperationFigures, Percentile, Summary, Unknown};

/// The tables, in the order of the loads.
pub fn operations(summary: &Summary) -> Vec<Table> {
    summary.asked.loads.iter().filter_map(|load| table(summary, load)).collect()
}

fn table(summary: &Summary, load: &LoadShape) -> Option<Table> {
    let each = parts(summary, load, |cell| &cell.operations);
    if each.is_empty() {
        return None;
    }
    let unit = numbers::rate_unit(each.iter().filter_map(|(_, kind)| Some(kind.rate_per_s?.mean)));
    let column = |title: &str, right, drop_rank, brief| Column {
        title: title.to_owned(),
        right,
        drop_rank,
        brief,
    };
    let row = |(cell, kind): &(&Cell, &OperationFigures)| {
        let is_unknown = |figure| kind.not_known.contains(&figure);
        let rate = match kind.rate_per_s {
            None if is_unknown(Unknown::Rate) => not_known(),
            rate => {
                let text = rate.map(|rate| numbers::estimate(&rate, unit.size));
                figure(cell, Figure::Rate, text)
            }
        };
        let percentile = |percentile| {
            let is_unknown = is_unknown(Unknown::Latency(percentile));
            latency(cell, kind.percentile(percentile), is_unknown)
        };
        Row {
            reference: summary.asked.is_reference(&cell.contender),
            cells: vec![
                plain(visible(&cell.contender)),
                plain(visible(&kind.operation.several)),
                plain(numbers::grouped(kind.count)),
                rate,
                percentile(Percentile::P50),
                percentile(Percentile::P95),
                percentile(Percentile::P99),
            ],
        }
    };
    Some(Table {
        title: visible(&format!(
            "operations beside requests · {} · {load}",
            summary.asked.workload
        )),
        result: String::new(),
        columns: vec![
            column("contender", false, 0, false),
            column("operations", false, 0, false),
            column("number", true, 4, false),
            column(unit.name, true, 2, true),
            column("p50", true, 3, true),
            column("p95", true, 1, true),
            column("p99", true, 1, true),
        ],
        rows: each.iter().map(row).collect(),
        notes: Vec::new(),
    })
}
