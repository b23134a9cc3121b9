//! A key that is only counted up, by one each time, from 0.

use super::Span;
use crate::time::Nanos;

/// An increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Increment {
    /// When it happened.
    pub span: Span,
    /// What its reply said that the count is now; `None` if it has no reply.
    pub count: Option<u64>,
}

/// Why a history has no explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// `other` had the same count.
    Twice {
        /// The increment with the same count.
        other: usize,
    },
    /// The count is higher than the number of increments that had begun: one was applied twice.
    TooHigh {
        /// Increments that had begun, this one included.
        most: u64,
    },
    /// The count is lower than the number of increments that had ended: one was lost.
    TooLow {
        /// Increments that had ended, and this one.
        least: u64,
    },
    /// `other` had ended before this one began, with a higher count.
    Backwards {
        /// The earlier increment.
        other: usize,
    },
}

/// A reply that no order of the increments explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexplained {
    /// What is wrong.
    pub why: Why,
    /// The increment whose reply is wrong, by its place in the history.
    pub event: usize,
}

/// Checks the history of one counter. There is no false alarm; an increment without a reply may hide one
/// that was applied twice.
///
/// # Errors
/// A reply that no order explains; the first that is found.
pub fn check(increments: &[Increment]) -> Result<(), Unexplained> {
    let mut calls: Vec<Nanos> = increments.iter().map(|one| one.span.call).collect();
    calls.sort_unstable();
    let answered = increments.iter().enumerate();
    let answered = answered.filter_map(|(i, one)| Some((i, one.span, one.count?)));
    let answered: Vec<(usize, Span, u64)> = answered.collect();
    // By their ends, each with the highest count up to it.
    let mut ends: Vec<(Nanos, (u64, usize))> =
        answered.iter().map(|(i, span, count)| (span.end, (*count, *i))).collect();
    ends.sort_unstable();
    let mut highest = (0, 0);
    for (_, count) in &mut ends {
        highest = highest.max(*count);
        *count = highest;
    }
    for (event, span, count) in &answered {
        let most = calls.partition_point(|call| *call <= span.end) as u64;
        let ended = ends.partition_point(|(end, _)| *end < span.call);
        let least = ended as u64 + 1;
        let before = ends[..ended].last().map(|(_, highest)| *highest);
        let why = match before {
            _ if *count > most => Why::TooHigh { most },
            _ if *count < least => Why::TooLow { least },
            Some((highest, other)) if highest > *count => Why::Backwards { other },
            _ => continue,
        };
        return Err(Unexplained { why, event: *event });
    }
    let mut counts: Vec<(u64, usize)> = answered.iter().map(|(i, _, count)| (*count, *i)).collect();
    counts.sort_unstable();
    match counts.windows(2).find(|two| two[0].0 == two[1].0) {
        Some(two) => Err(Unexplained { why: Why::Twice { other: two[0].1 }, event: two[1].1 }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
