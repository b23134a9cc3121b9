//! Moves of hubs from one server of the broker to another. A hub that has moved announces it; the members of the others
//! get a gap, because what it published at the other server has not reached them.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Minimum time between two gaps because of other hubs, however many announcements come.
const APART: Duration = Duration::from_secs(1);

/// The moves of this hub, and the gaps that those of others cause.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// Where it was up the last time.
    before: Option<SocketAddr>,
    /// It was at another server, and its announcement of that has not come back.
    has_moved: bool,
    /// The number of its newest announcement.
    announced: Option<u64>,
    /// When all members got the last gap.
    gap_at: Option<Instant>,
    /// Another hub has moved, and all members get a gap at this time.
    due: Option<Instant>,
}

impl Moves {
    /// It is up at this address, and all members get a gap. Returns whether it has to announce that it has moved.
    pub(super) fn is_up(&mut self, at: Option<SocketAddr>, now: Instant) -> bool {
        self.has_moved |= self.before.is_some_and(|before| Some(before) != at);
        self.before = at;
        (self.gap_at, self.due) = (Some(now), None);
        self.has_moved
    }

    /// It announces its move with this number.
    pub(super) fn announces(&mut self, number: u64) {
        self.announced = Some(number);
    }

    /// Its announcement with this number was received. One of an earlier connection does not end the duty to announce a
    /// later move.
    pub(super) fn came_back(&mut self, number: u64) {
        self.has_moved &= self.announced != Some(number);
    }

    /// Another hub has moved: all members get a gap, now or a second after the last one.
    pub(super) fn other_moved(&mut self, now: Instant) {
        let next = self.gap_at.map_or(now, |last| last + APART);
        self.due.get_or_insert(now.max(next));
    }

    /// When all members get a gap.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether all members get a gap now.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        let is_due = self.due.take_if(|due| *due <= now).is_some();
        if is_due {
            self.gap_at = Some(now);
        }
        is_due
    }
}
