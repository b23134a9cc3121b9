//! Whether the network between load and contender was full.

use super::observed::CellRounds;
use regatta_record::{Carried, NetworkFull, NetworkUse, Side};

/// Share of the speed of an interface from which it counts as full.
const FULL: f64 = 0.9;
/// Share from which the speed cannot be true.
const IMPOSSIBLE: f64 = 1.05;
/// Share of TCP segments that were sent again from which packets are lost because the network has no room for them.
const RESENT: f64 = 0.001;
/// Fewer than this many may have been lost by chance.
const LEAST_RESENT: u64 = 20;

/// What shows that the network was full, over all slices; `None`: nothing does, or nothing is known.
pub fn full(observed: &CellRounds) -> Option<NetworkFull> {
    let mut all = NetworkUse::default();
    for used in observed.lives.iter().flatten().filter_map(|life| life.network.as_ref()) {
        all.add(used);
    }
    let sides = || {
        let sides = [(Side::Server, all.server.as_ref()), (Side::Load, all.load.as_ref())];
        sides.into_iter().filter_map(|(side, carried)| Some((side, carried?)))
    };
    sides().find_map(|(side, carried)| line(side, carried, all.ns)).or_else(|| {
        let lossy = sides().filter_map(|(side, carried)| Some((lost(carried)?, side)));
        let (share, side) = lossy.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(NetworkFull::Lost { by: side, resent: share })
    })
}

/// An interface that carried nearly as much as it can, in one of its directions.
fn line(side: Side, carried: &Carried, ns: u64) -> Option<NetworkFull> {
    let line_bits_per_s = carried.line_bits_per_s?;
    let bytes = carried.received_bytes.max(carried.sent_bytes);
    let bits_per_s = 8e9 * bytes as f64 / ns as f64;
    let share = bits_per_s / line_bits_per_s as f64;
    (FULL..IMPOSSIBLE).contains(&share).then(|| NetworkFull::Line {
        of: side,
        interface: carried.interface.clone(),
        bits_per_s,
        line_bits_per_s,
    })
}

/// The share of its segments that were sent again, if it is large.
fn lost(carried: &Carried) -> Option<f64> {
    let all = carried.segments + carried.resent;
    let share = carried.resent as f64 / all.max(1) as f64;
    (carried.resent >= LEAST_RESENT && share >= RESENT).then_some(share)
}
