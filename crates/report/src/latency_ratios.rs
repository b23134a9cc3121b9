//! Latencies compared, as tables: with the baseline's under the same load, and where connections do not
//! read, with the load that differs in this alone. A load in which no latency can be compared has no
//! table; a note under its first table says why.

use crate::{
    columns::{none, plain},
    numbers,
    parts::parts,
    table::{Column, Note, Row, Table, visible},
    why::together,
};
use regatta_record::{Cell, Estimate, LatencyRatio, LoadShape, Summary};

/// The tables, in the order of the loads.
pub fn latency_ratios(summary: &Summary) -> Vec<Table> {
    let loads = summary.asked.loads.iter();
    loads
        .flat_map(|load| [to_baseline(summary, load), to_all_reading(summary, load)])
        .flatten()
        .collect()
}

/// Why no latency is compared with the baseline's under a load at which it could be.
pub fn notes(summary: &Summary, load: &LoadShape) -> Vec<Note> {
    let each = parts(summary, load, of_baseline);
    // One round has no intervals at all, which a doubt says; nor has a load on shared CPUs.
    let expected = load.compares_latency()
        && summary.asked.rounds > 1
        && !summary.asked.cpus.are_shared(load)
        && !is_shown(load, &each);
    if expected { reasons(&each) } else { Vec::new() }
}

fn of_baseline(cell: &Cell) -> &[LatencyRatio] {
    cell.latency_to_baseline.as_slice()
}

fn to_baseline(summary: &Summary, load: &LoadShape) -> Option<Table> {
    let with = &summary.asked.baseline;
    table(summary, load, with, parts(summary, load, of_baseline))
}

fn to_all_reading(summary: &Summary, load: &LoadShape) -> Option<Table> {
    let each = parts(summary, load, |cell| cell.latency_to_all_reading.as_slice());
    table(summary, load, "the load of which all connections read", each)
}

fn is_shown(load: &LoadShape, each: &[(&Cell, &LatencyRatio)]) -> bool {
    load.compares_latency() && each.iter().any(|(_, ratio)| ratio.is_there())
}

fn table(
    summary: &Summary,
    load: &LoadShape,
    with: &str,
    each: Vec<(&Cell, &LatencyRatio)>,
) -> Option<Table> {
    if !is_shown(load, &each) {
        return None;
    }
    let asked = &summary.asked;
    let of = match &asked.latency_of {
        operation if operation.is_request() => String::new(),
        operation => format!(" of the {}", operation.one),
    };
    let column =
        |title: &str, right, goes| Column { title: title.to_owned(), right, goes, brief: false };
    let ratio = |e: Option<Estimate>| e.map_or_else(none, |e| plain(numbers::ratio(&e)));
    let row = |(cell, of): &(&Cell, &LatencyRatio)| Row {
        reference: asked.is_reference(&cell.contender),
        cells: vec![plain(visible(&cell.contender)), ratio(of.p95), ratio(of.p99)],
    };
    Some(Table {
        title: visible(&format!("latency{of} compared with {with} · {} · {load}", asked.workload)),
        result: String::new(),
        columns: vec![
            column("contender", false, 0),
            column("p95 ratio", true, 1),
            column("p99 ratio", true, 2),
        ],
        rows: each.iter().map(row).collect(),
        notes: reasons(&each),
    })
}

/// Why ratios are missing: a note for each reason.
fn reasons(each: &[(&Cell, &LatencyRatio)]) -> Vec<Note> {
    let remarks = each.iter().filter_map(|(cell, ratio)| {
        Some((visible(&cell.contender), visible(ratio.missing.as_deref()?)))
    });
    together("no latency ratio", remarks, false).collect()
}
