//! Which sends belong to the measured window: latencies are those of what was sent inside it.

use crate::{
    Until,
    clock::{self, Nanos},
};
use std::ops::Range;

/// The moments of the window, as one load thread knows them.
#[derive(Clone, Debug)]
pub(crate) struct Sends {
    inside: Range<Nanos>,
    /// Length of a window of time.
    length: Option<Nanos>,
}

impl Sends {
    /// Of a window that has not opened.
    pub fn of(until: Until) -> Self {
        let length = match until {
            Until::Elapsed(length) => Some(length.as_nanos() as Nanos),
            Until::Requests(_) | Until::Done => None,
        };
        Sends { inside: Nanos::MAX..Nanos::MAX, length }
    }

    /// The window began at this moment, maybe a little ago.
    pub fn open(&mut self, at: Nanos) {
        // Nothing was sent before the window of a counted load.
        self.inside = self.length.map_or(0..Nanos::MAX, |length| at..at.saturating_add(length));
    }

    /// It is over, for this thread.
    pub fn close(&mut self) {
        self.inside.end = self.inside.end.min(clock::now());
    }

    /// Whether what was sent at this moment, or was due then, belongs to the window.
    #[inline]
    pub fn contain(&self, sent_at: Nanos) -> bool {
        self.inside.contains(&sent_at)
    }
}
