//! Tables of latency ratios: to the baseline under the same load and, for loads with connections that
//! do not read, to the same load in which all connections read. A load in which no latency can be
//! compared has no table; a note under its first table gives the reason.

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

/// The reasons why latencies are not compared under a load, if there is no table with them although the
/// load compares latencies.
pub fn notes(summary: &Summary, load: &LoadShape) -> Vec<Note> {
    // A single round has no intervals, which a doubt reports. A load on shared CPUs has no latencies.
    let expected =
        load.compares_latency() && summary.asked.rounds > 1 && !summary.asked.cpus.are_shared(load);
    let each = [OF_BASELINE, OF_ALL_READING].map(|of| parts(summary, load, of));
    let each: Vec<_> = each.into_iter().filter(|each| !is_shown(load, each)).flatten().collect();
    if expected { reasons(&each) } else { Vec::new() }
}

/// Returns the ratio of a cell, if it has one.
type Of = fn(&Cell) -> &[LatencyRatio];
const OF_BASELINE: Of = |cell| cell.latency_to_baseline.as_slice();
const OF_ALL_READING: Of = |cell| cell.latency_to_all_reading.as_slice();

fn to_baseline(summary: &Summary, load: &LoadShape) -> Option<Table> {
    table(summary, load, &summary.asked.baseline, parts(summary, load, OF_BASELINE))
}

fn to_all_reading(summary: &Summary, load: &LoadShape) -> Option<Table> {
    let with = "the load in which all connections read";
    table(summary, load, with, parts(summary, load, OF_ALL_READING))
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
    let ratio = |e: Option<Estimate>| e.map_or_else(none, |e| plain(numbers::ratio(&e)));
    let row = |(cell, of): &(&Cell, &LatencyRatio)| {
        let cells = vec![plain(visible(&cell.contender)), ratio(of.p95), ratio(of.p99)];
        Row::plain(asked.is_reference(&cell.contender), cells)
    };
    let title = visible(&format!("latency{of} compared with {with} · {} · {load}", asked.workload));
    let columns = vec![
        Column::left("contender"),
        Column::right("p95", 1).titled("p95 ratio"),
        Column::right("p99", 2).titled("p99 ratio"),
    ];
    let table = Table::plain(title, columns, each.iter().map(row).collect());
    Some(Table { notes: reasons(&each), ..table })
}

/// Why ratios are missing: a note for each reason.
fn reasons(each: &[(&Cell, &LatencyRatio)]) -> Vec<Note> {
    let mut remarks: Vec<(String, String)> = Vec::new();
    for (cell, ratio) in each {
        let Some(missing) = &ratio.missing else { continue };
        let remark = (visible(&cell.contender), visible(missing));
        // If the cell's own latency is void, both comparisons give the same reason.
        if !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }
    together("no latency ratio", remarks, false).collect()
}
