//! The doubts about a race.

use crate::table::visible;
use regatta_record::Summary;

/// The doubts, one sentence each.
pub fn doubts(summary: &Summary) -> Vec<String> {
    // In duels a line of the heading has them.
    let in_rounds = summary.precision.iter().filter(|_| summary.duels.is_empty());
    let missing = in_rounds.flat_map(|precision| &precision.missing);
    let of_gate = summary.gate.iter().flat_map(|gate| &gate.doubts);
    missing.chain(of_gate).chain(&summary.doubts).map(|doubt| visible(doubt)).collect()
}
