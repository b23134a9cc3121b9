//! Counts of the losses that a hub announced, of its wrong deliveries, and of what else is known of broadcasts.

use regatta_record::{AnnouncedLosses, BroadcastCounts, WrongDeliveries};
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Counts of what the hub announced to the members of this process.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub gaps: AtomicU64,
    /// Modulo 2^64: members of this process may take off what those of another one have counted.
    pub missed: AtomicU64,
    pub not_published: AtomicU64,
    pub unknown: AtomicU64,
    pub unknown_deliveries: AtomicU64,
}

impl Losses {
    /// The counts so far.
    pub fn counted(&self) -> AnnouncedLosses {
        let of = |count: &AtomicU64| count.load(Relaxed);
        AnnouncedLosses {
            gaps: of(&self.gaps),
            missed: of(&self.missed),
            not_published: of(&self.not_published),
            unknown: of(&self.unknown),
            unknown_deliveries: of(&self.unknown_deliveries),
        }
    }
}

/// How a delivery is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It has not come.
    Missing,
    Twice,
    OutOfOrder,
    /// No member has sent it, or its result says that it is not published.
    Unsent,
}

/// Counts of wrong deliveries to the members of this process.
#[derive(Debug, Default)]
pub(super) struct WrongCounts {
    missing: AtomicU64,
    twice: AtomicU64,
    out_of_order: AtomicU64,
    unsent: AtomicU64,
}

impl WrongCounts {
    /// Counts wrong deliveries of a kind.
    pub fn add(&self, wrong: Wrong, deliveries: u64) {
        let count = match wrong {
            Wrong::Missing => &self.missing,
            Wrong::Twice => &self.twice,
            Wrong::OutOfOrder => &self.out_of_order,
            Wrong::Unsent => &self.unsent,
        };
        count.fetch_add(deliveries, Relaxed);
    }

    /// The counts so far.
    pub fn counted(&self) -> WrongDeliveries {
        let of = |count: &AtomicU64| count.load(Relaxed);
        WrongDeliveries {
            missing: of(&self.missing),
            twice: of(&self.twice),
            out_of_order: of(&self.out_of_order),
            unsent: of(&self.unsent),
        }
    }
}

/// What else is counted for the members of this process: see [`BroadcastCounts`].
#[derive(Debug, Default)]
pub(super) struct OtherCounts {
    pub joins: AtomicU64,
    pub failed_joins: AtomicU64,
    pub wrong_results: AtomicU64,
    pub absent: AtomicU64,
}

impl OtherCounts {
    /// The counts so far.
    pub fn counted(&self) -> BroadcastCounts {
        let of = |count: &AtomicU64| count.load(Relaxed);
        BroadcastCounts {
            joins: of(&self.joins),
            failed_joins: of(&self.failed_joins),
            wrong_results: of(&self.wrong_results),
            absent: of(&self.absent),
        }
    }
}
