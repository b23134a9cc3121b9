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
#[track_caller]
pub fn until_within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < end, "waited {limit:?} until {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
