//! Messages of a running server on stderr, at most one line per second.

use std::{
    io::{Write, stderr},
    time::{Duration, Instant},
};

/// Connections that the model refused. They are reported together.
#[derive(Default)]
pub(crate) struct Refusals {
    pending: u64,
    last_reported: Option<Instant>,
}

impl Refusals {
    /// Counts a connection that was refused and closed. The first is reported at once, further ones
    /// together, at most once per second.
    pub(crate) fn add(&mut self, now: Instant, because: &str) {
        const EVERY: Duration = Duration::from_secs(1);
        self.pending += 1;
        if self.last_reported.is_some_and(|last| now < last + EVERY) {
            return;
        }
        let one = if self.pending == 1 { "connection" } else { "connections" };
        // The server runs even if stderr is closed.
        let _ = writeln!(stderr(), "regatta: refused {} {one}: {because}", self.pending);
        self.pending = 0;
        self.last_reported = Some(now);
    }
}
