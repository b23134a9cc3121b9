//! What a server says on stderr while it serves: never more than a line a second.

use std::time::{Duration, Instant};

/// Connections that the model could not take, told together.
#[derive(Default)]
pub(crate) struct Refusals {
    untold: u64,
    last_told: Option<Instant>,
}

impl Refusals {
    /// Another one, closed at once. The first is told at once, more of them once a second.
    pub(crate) fn add(&mut self, now: Instant, because: &str) {
        const EVERY: Duration = Duration::from_secs(1);
        self.untold += 1;
        if self.last_told.is_some_and(|last| now < last + EVERY) {
            return;
        }
        let one = if self.untold == 1 { "connection" } else { "connections" };
        eprintln!("regatta: refused {} {one}: {because}", self.untold);
        self.untold = 0;
        self.last_told = Some(now);
    }
}
