//! Counts of the losses that a hub announced, and of its wrong deliveries.

use regatta_record::{AnnouncedLosses, WrongDeliveries};
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
    /// Nobody was owed it: a member was away.
    Absent,
}

/// Counts of wrong deliveries to the members of this process.
#[derive(Debug, Default)]
pub(super) struct WrongCounts {
    missing: AtomicU64,
    twice: AtomicU64,
    out_of_order: AtomicU64,
    unsent: AtomicU64,
    absent: AtomicU64,
}

impl WrongCounts {
    /// Counts wrong deliveries of a kind.
    pub fn add(&self, wrong: Wrong, deliveries: u64) {
        let count = match wrong {
            Wrong::Missing => &self.missing,
            Wrong::Twice => &self.twice,
            Wrong::OutOfOrder => &self.out_of_order,
            Wrong::Unsent => &self.unsent,
            Wrong::Absent => &self.absent,
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
            absent: of(&self.absent),
        }
    }
}
