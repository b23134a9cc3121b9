//! A key that is set, read and deleted.
//!
//! Every value is written only once, so the write that a read belongs to is known. The check then
//! only needs to sort (Gibbons and Korach, "Testing shared memories", 1997). A value's write and its
//! reads form a *cluster*. If the first end in a cluster is before its last call, the key certainly
//! holds the value between these two times. Two such intervals must not overlap. Every other
//! cluster, every deletion and every read of an absent key must be able to happen outside of them.
//!
//! For writes and reads of values this is exact. It is not known which deletion a read of an absent
//! key belongs to. With deletions, the check never reports an error falsely, but it does not find
//! every wrong history.

use super::Span;
use crate::time::Nanos;
use std::collections::HashMap;

/// What an operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// It set the key to this value. No other operation of the history sets this value.
    Wrote(u64),
    /// It found this value. A read without a reply does not belong in a history.
    Read(u64),
    /// It found that the key is absent.
    ReadNothing,
    /// It deleted the key, which may have been absent.
    Deleted,
}

/// An operation on the key. The key is absent initially.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it happened.
    pub span: Span,
    /// What it did.
    pub did: Did,
}

/// Why a history has no explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A value was read that was never written.
    NeverWritten,
    /// A value was read before its write started.
    NotWrittenYet,
    /// A value was read although `other` had replaced or deleted it before the read started.
    Stale,
    /// The key was read as absent although `other` shows that it held a value.
    Lost,
}

/// A reply that no order of the operations explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexplained {
    /// The kind of error.
    pub why: Why,
    /// Index of the operation whose reply is wrong.
    pub event: usize,
    /// An operation that contradicts it.
    pub other: Option<usize>,
}

/// A write and the reads of its value.
struct Cluster {
    write: usize,
    /// Earliest end among them: the key has held the value since then or earlier.
    first_end: Nanos,
    /// Latest call among them. If it is after `first_end`, the key still holds the value then.
    last_call: Nanos,
    /// The operation with the latest call.
    last: usize,
}

/// Checks the history of one key.
///
/// # Errors
/// The first reply found that no order of the operations explains.
///
/// # Panics
/// Panics if two operations write the same value.
pub fn check(events: &[Event]) -> Result<(), Unexplained> {
    let clusters = clusters(events)?;
    let held = held(&clusters)?;
    for cluster in clusters.iter().filter(|cluster| cluster.first_end >= cluster.last_call) {
        let Some(around) = around(&held, cluster.last_call, cluster.first_end) else { continue };
        return Err(stale(around, cluster.write));
    }
    for (i, event) in events.iter().enumerate() {
        if !matches!(event.did, Did::Deleted | Did::ReadNothing) {
            continue;
        }
        let Some(around) = around(&held, event.span.call, event.span.end) else { continue };
        return Err(match event.did {
            Did::Deleted => stale(around, i),
            _ => Unexplained { why: Why::Lost, event: i, other: Some(around.last) },
        });
    }
    absences(events, &clusters)
}

fn stale(held: &Cluster, other: usize) -> Unexplained {
    Unexplained { why: Why::Stale, event: held.last, other: Some(other) }
}

fn clusters(events: &[Event]) -> Result<Vec<Cluster>, Unexplained> {
    let (mut places, mut clusters) = (HashMap::new(), Vec::new());
    for (i, event) in events.iter().enumerate() {
        if let Did::Wrote(value) = event.did {
            let Span { call, end } = event.span;
            let before = places.insert(value, clusters.len());
            assert!(before.is_none(), "the value {value} is written twice");
            clusters.push(Cluster { write: i, first_end: end, last_call: call, last: i });
        }
    }
    for (i, event) in events.iter().enumerate() {
        let Did::Read(value) = event.did else { continue };
        let Some(place) = places.get(&value) else {
            return Err(Unexplained { why: Why::NeverWritten, event: i, other: None });
        };
        let cluster = &mut clusters[*place];
        if event.span.end < events[cluster.write].span.call {
            let other = Some(cluster.write);
            return Err(Unexplained { why: Why::NotWrittenYet, event: i, other });
        }
        cluster.first_end = cluster.first_end.min(event.span.end);
        if event.span.call > cluster.last_call {
            (cluster.last_call, cluster.last) = (event.span.call, i);
        }
    }
    Ok(clusters)
}

/// Returns the clusters whose value the key holds during a known interval, sorted by interval.
fn held(clusters: &[Cluster]) -> Result<Vec<&Cluster>, Unexplained> {
    let mut held: Vec<&Cluster> =
        clusters.iter().filter(|cluster| cluster.first_end < cluster.last_call).collect();
    held.sort_unstable_by_key(|cluster| cluster.first_end);
    match held.windows(2).find(|two| two[1].first_end < two[0].last_call) {
        Some(two) => Err(stale(two[0], two[1].write)),
        None => Ok(held),
    }
}

/// Returns the cluster whose value the key held from before `from` until after `to`. The intervals
/// of `held` do not overlap.
fn around<'c>(held: &[&'c Cluster], from: Nanos, to: Nanos) -> Option<&'c Cluster> {
    let started = held.partition_point(|cluster| cluster.first_end < from);
    let last = held[..started].last()?;
    (to < last.last_call).then_some(*last)
}

/// Checks that every read of an absent key has a deletion that may have happened after all values
/// that were certainly written before the read started, or that there are no such values.
fn absences(events: &[Event], clusters: &[Cluster]) -> Result<(), Unexplained> {
    let deletions = events.iter().filter(|event| event.did == Did::Deleted);
    // Sorted by call, each with the latest end up to it.
    let mut deletions: Vec<(Nanos, Nanos)> =
        deletions.map(|event| (event.span.call, event.span.end)).collect();
    deletions.sort_unstable();
    let mut latest = 0;
    for (_, end) in &mut deletions {
        latest = latest.max(*end);
        *end = latest;
    }
    // Sorted by the time from which a value was certainly there, each with the latest-called write
    // up to it.
    let write = |cluster: &Cluster| (events[cluster.write].span.call, cluster.write);
    let mut values: Vec<(Nanos, (Nanos, usize))> =
        clusters.iter().map(|cluster| (cluster.first_end, write(cluster))).collect();
    values.sort_unstable();
    let mut last = (0, 0);
    for (_, write) in &mut values {
        last = last.max(*write);
        *write = last;
    }
    for (i, event) in events.iter().enumerate() {
        if event.did != Did::ReadNothing {
            continue;
        }
        let there = values.partition_point(|(end, _)| *end < event.span.call);
        let Some((_, (written, write))) = values[..there].last() else { continue };
        let possible = deletions.partition_point(|(call, _)| *call <= event.span.end);
        if deletions[..possible].last().is_none_or(|(_, end)| end < written) {
            return Err(Unexplained { why: Why::Lost, event: i, other: Some(*write) });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
