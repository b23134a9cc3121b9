//! Losses that a server announces.

use serde::{Deserialize, Serialize};

/// What a server announced as lost, or as not known, if the load permits that (`--allow-gaps`). None of it
/// counts as delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnnouncedLosses {
    /// Gaps that members got.
    pub gaps: u64,
    /// Deliveries that members were owed when they got a gap, and that did not follow it.
    pub missed: u64,
    /// Broadcasts that the server reported as not published. Nobody got them.
    pub not_published: u64,
    /// Broadcasts for which the server did not know whether they were published. Copies that came are among the
    /// deliveries, and nobody was owed one.
    pub unknown: u64,
}

impl AnnouncedLosses {
    /// Adds what another process counted.
    pub fn add(&mut self, other: AnnouncedLosses) {
        self.gaps += other.gaps;
        // A process may take off what another one has counted; only the sum is at least 0.
        self.missed = self.missed.wrapping_add(other.missed);
        self.not_published += other.not_published;
        self.unknown += other.unknown;
    }
}
