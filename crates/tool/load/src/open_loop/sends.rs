//! Decides which sends belong to the measured window: only their latencies count.

use crate::{
    Until,
    clock::{self, Nanos},
};
use std::ops::Range;

/// The bounds of the window, as one load thread knows them.
#[derive(Clone, Debug)]
pub(crate) struct WindowBounds {
    inside: Range<Nanos>,
    /// Length of a window of a fixed duration.
    length: Option<Nanos>,
}

impl WindowBounds {
    /// For a window that has not opened.
    pub fn of(until: Until) -> Self {
        let length = match until {
            Until::Elapsed(length) => Some(length.as_nanos() as Nanos),
            Until::Requests(_) | Until::Done => None,
        };
        WindowBounds { inside: Nanos::MAX..Nanos::MAX, length }
    }

    /// The window opened at this moment, possibly a little earlier than now.
    pub fn open(&mut self, at: Nanos) {
        // All requests before the window of a counted load, if there are any, are already settled.
        self.inside = self.length.map_or(0..Nanos::MAX, |length| at..at.saturating_add(length));
    }

    /// The window is over, for this thread.
    pub fn close(&mut self) {
        self.inside.end = self.inside.end.min(clock::now());
    }

    /// Whether a request that was sent, or was due, at this moment belongs to the window.
    #[inline]
    pub fn contain(&self, sent_at: Nanos) -> bool {
        self.inside.contains(&sent_at)
    }
}
