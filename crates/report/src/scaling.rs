//! Scaling tables: one for each load that ran on several numbers of cores.

use crate::{
    columns::{none, plain},
    numbers,
    table::{Column, Row, Table, visible},
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
    let column = |title: &str, right, drop_rank| Column {
        title: title.to_owned(),
        right,
        drop_rank,
        brief: false,
    };
    let mut columns = vec![
        column("contender", false, 0),
        column("cores", true, 1),
        column(&format!("cost vs {fewest}"), true, 0),
    ];
    if with_rate {
        columns.push(column(&format!("rate vs {fewest}"), true, 2));
    }
    let ratio = |e: Option<Estimate>| e.map_or_else(none, |e| plain(numbers::ratio(&e)));
    let row = |(cell, scaling): &(&Cell, Scaling)| {
        let mut cells = vec![
            plain(visible(&cell.contender)),
            plain(scaling.cores.to_string()),
            ratio(scaling.cost),
        ];
        cells.extend(with_rate.then(|| ratio(scaling.rate)));
        Row { reference: summary.asked.is_reference(&cell.contender), cells }
    };
    let (references, contenders): (Vec<_>, Vec<_>) =
        scaled.iter().partition(|(c, _)| summary.asked.is_reference(&c.contender));
    Some(Table {
        title: visible(&format!("scaling over cores · {} · {load}", summary.asked.workload)),
        result: String::new(),
        columns,
        rows: contenders.into_iter().chain(references).map(row).collect(),
        notes: Vec::new(),
    })
}
