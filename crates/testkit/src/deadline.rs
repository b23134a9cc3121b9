//! Waiting for a condition, with a deadline.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Deadline of a wait, unless a test sets its own.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Polls a condition until it is true. Panics after [`DEADLINE`].
#[track_caller]
pub fn until(what: &str, condition: impl FnMut() -> bool) {
    until_within(DEADLINE, what, condition);
}

/// Polls a condition until it is true. Panics after `limit`.
///
/// The pauses grow with the time waited, from 1 to 20 ms: some conditions read all of `/proc`, and tests that wait would
/// take the CPU from others.
#[track_caller]
pub fn until_within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        let waited = began.elapsed();
        assert!(waited < limit, "waited {limit:?} until {what}");
        thread::sleep((waited / 20).clamp(Duration::from_millis(1), Duration::from_millis(20)));
    }
}
