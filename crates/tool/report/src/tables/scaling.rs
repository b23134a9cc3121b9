//! Scaling tables: one for each load that ran on several numbers of cores.

use crate::{
    numbers,
    table::{Column, Row, Table, visible},
    tables::columns::{none, plain},
};
use regatta_record::{Cell, Estimate, LoadShape, Scaling, Summary};

/// The tables, in the order of the loads.
pub fn scaling(summary: &Summary) -> Vec<Table> {
    let mut loads: Vec<LoadShape> = Vec::new();
    for load in summary.asked.loads.iter().map(without_cores) {
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    loads.iter().filter_map(|load| table(summary, load)).collect()
}

fn without_cores(load: &LoadShape) -> LoadShape {
    LoadShape { cores: None, ..*load }
}

fn table(summary: &Summary, load: &LoadShape) -> Option<Table> {
    let names = summary.asked.contenders.iter();
    let of = |name: &String| {
        let cells = summary.cells.iter().filter(move |c| c.contender == *name);
        let scaled = cells.filter(|c| without_cores(&c.load) == *load);
        let mut scaled: Vec<_> = scaled.filter_map(|c| Some((c, c.scaling?))).collect();
        scaled.sort_by_key(|(_, scaling)| scaling.cores);
        scaled
    };
    let scaled: Vec<(&Cell, Scaling)> = names.flat_map(of).collect();
    let fewest = scaled.iter().map(|(_, scaling)| scaling.from_cores).min()?;
    let with_rate = scaled.iter().any(|(_, scaling)| scaling.rate.is_some());
    let mut columns = vec![
        Column::left("contender"),
        Column::right("cores", 1),
        Column::right("cost", 0).titled(&format!("cost vs {fewest}")),
    ];
    if with_rate {
        columns.push(Column::right("rate", 2).titled(&format!("rate vs {fewest}")));
    }
    let ratio = |e: Option<Estimate>| e.map_or_else(none, |e| plain(numbers::ratio(&e)));
    let row = |(cell, scaling): &(&Cell, Scaling)| {
        let mut cells = vec![
            plain(visible(&cell.contender)),
            plain(scaling.cores.to_string()),
            ratio(scaling.cost),
        ];
        cells.extend(with_rate.then(|| ratio(scaling.rate)));
        Row::plain(summary.asked.is_reference(&cell.contender), cells)
    };
    let (references, contenders): (Vec<_>, Vec<_>) =
        scaled.iter().partition(|(c, _)| summary.asked.is_reference(&c.contender));
    let title = visible(&format!("scaling over cores · {} · {load}", summary.asked.workload));
    let rows = contenders.into_iter().chain(references).map(row).collect();
    Some(Table::plain(title, columns, rows))
}
