//! Tables of latency ratios: to the baseline under the same load and, for loads with connections that
//! do not read, to the same load in which all connections read. A load in which no latency can be
//! compared has no table; a note under its first table gives the reason.

use crate::{
    numbers,
    table::{Column, Note, Row, Table, visible},
    tables::{
        columns::{none, plain},
        parts::parts,
        why::together,
    },
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
    // In two regimes, a latency in parentheses says enough.
    let expected = summary.asked.regimes().is_none()
        && load.compares_latency()
        && summary.asked.rounds > 1
        && !summary.asked.cpus.are_shared(load);
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
    type Of = fn(&LatencyRatio) -> Option<Estimate>;
    let percentiles: [(Column, Of); 3] = [
        (Column::right("p50", 1).titled("p50 ratio"), |of| of.p50),
        (Column::right("p95", 1).titled("p95 ratio"), |of| of.p95),
        (Column::right("p99", 2).titled("p99 ratio"), |of| of.p99),
    ];
    let mut percentiles = percentiles.to_vec();
    percentiles.retain(|(_, percentile)| each.iter().any(|(_, of)| percentile(of).is_some()));
    let row = |(cell, of): &(&Cell, &LatencyRatio)| {
        let name = plain(visible(&cell.contender));
        let ratios = percentiles.iter().map(|(_, percentile)| ratio(percentile(of)));
        Row::plain(asked.is_reference(&cell.contender), [name].into_iter().chain(ratios).collect())
    };
    let title = visible(&format!("latency{of} compared with {with} · {} · {load}", asked.workload));
    let rows = each.iter().map(row).collect();
    let columns = percentiles.iter().map(|(column, _)| column.clone());
    let columns = [Column::left("contender")].into_iter().chain(columns).collect();
    let table = Table::plain(title, columns, rows);
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
