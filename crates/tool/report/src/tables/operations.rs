//! Tables of operations other than requests: one for each load under which such operations were
//! counted, e.g. the deliveries of a hub.

use crate::{
    numbers,
    table::{Column, Row, Table, visible},
    tables::{
        columns::{figure, latency, not_known, plain},
        parts::parts,
    },
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
    let unit_of = |percentile: Percentile| {
        let all = each.iter().filter_map(|(_, kind)| Some(kind.percentile(percentile)?.ns));
        numbers::time_unit(all)
    };
    let units = [Percentile::P50, Percentile::P95, Percentile::P99].map(unit_of);
    let row = |(cell, kind): &(&Cell, &OperationFigures)| {
        let is_unknown = |figure| kind.not_known.contains(&figure);
        let rate = match kind.rate_per_s {
            None if is_unknown(Unknown::Rate) => not_known(),
            rate => {
                let text = rate.map(|rate| numbers::estimate(&rate, unit.size));
                figure(cell, Figure::Rate, text)
            }
        };
        let percentile = |percentile, unit| {
            let is_unknown = is_unknown(Unknown::Latency(percentile));
            latency(cell, kind.percentile(percentile), unit, is_unknown)
        };
        Row::plain(
            summary.asked.is_reference(&cell.contender),
            vec![
                plain(visible(&cell.contender)),
                plain(visible(&kind.operation.several)),
                plain(numbers::grouped(kind.count)),
                rate,
                percentile(Percentile::P50, units[0]),
                percentile(Percentile::P95, units[1]),
                percentile(Percentile::P99, units[2]),
            ],
        )
    };
    let title =
        visible(&format!("operations beside requests · {} · {load}", summary.asked.workload));
    let columns = vec![
        Column::left("contender"),
        Column::left("operations"),
        Column::right("number", 4),
        Column::right("rate", 2).unit(unit.name).brief(),
        Column::right("p50", 3).unit(units[0].name).brief(),
        Column::right("p95", 1).unit(units[1].name).brief(),
        Column::right("p99", 1).unit(units[2].name).brief(),
    ];
    Some(Table::plain(title, columns, each.iter().map(row).collect()))
}
