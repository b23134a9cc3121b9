//! Counts of the losses that a hub announced.

use regatta_record::AnnouncedLosses;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Counts of what the hub announced to the members of this process.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub gaps: AtomicU64,
    /// Modulo 2^64: members of this process may take off what those of another one have counted.
    pub missed: AtomicU64,
    pub not_published: AtomicU64,
    pub unknown: AtomicU64,
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
        }
    }
}
