//! How long epoll waits: to the nanosecond, whichever other crates are built with this one.

use regatta_sys::{Readiness, epoll::Epoll};
use std::time::{Duration, Instant};

/// A system call with a timeout in milliseconds would never return earlier.
#[test]
fn a_wait_below_a_millisecond_is_not_rounded_up_to_one() {
    let mut epoll = Epoll::new().unwrap();
    let mut wait = || {
        let started = Instant::now();
        epoll.wait(&mut Vec::new(), Some(Duration::from_micros(50))).unwrap();
        started.elapsed()
    };
    let shortest = (0..1000).map(|_| wait()).min().unwrap();
    assert!(shortest >= Duration::from_micros(50), "{shortest:?}");
    assert!(shortest < Duration::from_millis(1), "{shortest:?}");
}
