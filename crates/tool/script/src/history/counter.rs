//! A key that is only incremented, by one each time, starting at 0.

use super::Span;
use crate::time::Nanos;

/// An increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Increment {
    /// When it happened.
    pub span: Span,
    /// The count in its reply; `None` if it has no reply.
    pub count: Option<u64>,
}

/// Why a history has no explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// `other` has the same count.
    Twice {
        /// The increment with the same count.
        other: usize,
    },
    /// The count is higher than the number of increments started so far: one was applied twice.
    TooHigh {
        /// Number of increments started so far, including this one.
        most: u64,
    },
    /// The count is lower than the number of increments completed, including this one: one was lost.
    TooLow {
        /// Number of increments completed before this one started, plus this one.
        least: u64,
    },
    /// `other`, which has a higher count, ended before this increment started.
    Backwards {
        /// The earlier increment.
        other: usize,
    },
}

/// A reply that no order of the increments explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexplained {
    /// The kind of error.
    pub why: Why,
    /// Index of the increment whose reply is wrong.
    pub event: usize,
}

/// Checks the history of one counter. It never reports an error falsely, but an increment without a
/// reply may hide another that was applied twice.
///
/// # Errors
/// The first reply found that no order of the increments explains.
pub fn check(increments: &[Increment]) -> Result<(), Unexplained> {
    let mut calls: Vec<Nanos> = increments.iter().map(|one| one.span.call).collect();
    calls.sort_unstable();
    let answered = increments.iter().enumerate();
    let answered = answered.filter_map(|(i, one)| Some((i, one.span, one.count?)));
    let answered: Vec<(usize, Span, u64)> = answered.collect();
    // Sorted by end, each with the highest count up to it.
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
