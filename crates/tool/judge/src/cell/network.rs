//! Whether the network between load and contender was full.

use super::observed::CellRounds;
use regatta_record::{Carried, NetworkFull, NetworkUse, Side};

/// Share of the speed of an interface from which it counts as full.
const FULL: f64 = 0.9;
/// Share from which the speed cannot be true.
const IMPOSSIBLE: f64 = 1.05;
/// How much less or more the other end may have seen of the same direction: frames may be lost, and drivers count them
/// differently. Beyond that, something else used the interface, or a counter is wrong.
const ALIKE: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// What shows that the network was full, over all slices; `None`: nothing does, or nothing is known.
pub fn full(observed: &CellRounds) -> Option<NetworkFull> {
    let mut all = NetworkUse::default();
    for used in observed.lives.iter().flatten().filter_map(|life| life.network.as_ref()) {
        all.add(used);
    }
    let (server, load) = (all.server.as_ref(), all.load.as_ref());
    let ends = [(Side::Server, server, load), (Side::Load, load, server)];
    ends.into_iter().find_map(|(side, end, other)| line(side, end?, other))
}

/// An interface that carried nearly as much as it can in one of its directions, if the other end does not contradict.
fn line(side: Side, end: &Carried, other: Option<&Carried>) -> Option<NetworkFull> {
    let line_bits_per_s = end.line_bits_per_s?;
    let sends_more = end.sent_bytes > end.received_bytes;
    let bits_per_s = |end: &Carried, sent: bool| {
        let bytes = if sent { end.sent_bytes } else { end.received_bytes };
        8e9 * bytes as f64 / end.ns as f64
    };
    let (own, others) =
        (bits_per_s(end, sends_more), other.map(|other| bits_per_s(other, !sends_more)));
    let is_alike = others.is_none_or(|others| ALIKE.contains(&(others / own)));
    let is_possible = |line: u64, bits_per_s: f64| bits_per_s < IMPOSSIBLE * line as f64;
    let line_of_other = other.and_then(|other| other.line_bits_per_s);
    let may_be = is_possible(line_bits_per_s, own)
        && line_of_other.zip(others).is_none_or(|(line, others)| is_possible(line, others));
    let is_full = own >= FULL * line_bits_per_s as f64;
    (is_full && may_be && is_alike).then(|| NetworkFull::Line {
        of: side,
        interface: end.interface.clone(),
        bits_per_s: own,
        line_bits_per_s,
    })
}
