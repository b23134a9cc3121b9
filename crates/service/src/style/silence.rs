//! When a silent client has timed out: one that takes what it was sent has not.

use crate::Limits;
use std::time::{Duration, Instant};

/// How long a wait for a client lasts until it is looked at for the first time, and between looks. A
/// timeout is late by at most one of them.
pub fn look(limits: Limits) -> Duration {
    limits.idle / 4
}

/// Watches a client while it is waited for, by a look in every quarter of the idle timeout.
#[derive(Debug, Default)]
pub(super) struct Silence {
    last: Option<Look>,
}

#[derive(Debug)]
struct Look {
    /// Bytes of what was sent that were acknowledged; less than 0 if some are unacknowledged that
    /// were sent before the count began.
    acknowledged: i64,
    /// When the client may have taken something for the last time.
    took: Instant,
}

impl Silence {
    /// The client has sent nothing until `now`. Of `sent` bytes in all, so many are unacknowledged.
    /// Returns the time until the next look, or `None` if the client has timed out.
    pub(super) fn look(
        &mut self,
        now: Instant,
        sent: u64,
        unacknowledged: usize,
        limits: Limits,
    ) -> Option<Duration> {
        let acknowledged = sent as i64 - unacknowledged as i64;
        let took = match &self.last {
            Some(last) if acknowledged <= last.acknowledged => last.took,
            // There is nothing to compare with at the first look.
            _ => now,
        };
        self.last = Some(Look { acknowledged, took });
        let left = (took + limits.idle).saturating_duration_since(now);
        (!left.is_zero()).then(|| left.min(look(limits)))
    }

    /// The client was heard of. Returns whether it had been looked at.
    pub(super) fn ends(&mut self) -> bool {
        self.last.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { idle: Duration::from_secs(8), request: Duration::from_secs(2) };
    const SOON: Option<Duration> = Some(Duration::from_secs(2));

    #[test]
    fn a_silent_client_goes_on_while_it_takes_what_it_was_sent() {
        let start = Instant::now();
        let mut silence = Silence::default();
        let mut look = |s, sent, unacknowledged| {
            silence.look(start + Duration::from_secs(s), sent, unacknowledged, LIMITS)
        };
        assert_eq!(look(2, 0, 500), SOON);
        assert_eq!(look(4, 0, 500), SOON);
        assert_eq!(look(6, 0, 499), SOON, "it took one byte");
        assert_eq!(look(8, 0, 499), SOON);
        assert_eq!(look(12, 100, 599), SOON, "it was sent more, and took nothing");
        assert_eq!(look(13, 100, 599), Some(Duration::from_secs(1)), "a look is not late");
        assert_eq!(look(14, 100, 0), SOON, "it took all just before it had timed out");
        assert_eq!(look(16, 100, 0), SOON);
        assert_eq!(look(20, 200, 0), SOON, "it took what it was sent since");
        assert_eq!(look(28, 200, 0), None);
    }

    #[test]
    fn a_client_that_was_heard_of_is_looked_at_anew() {
        let start = Instant::now();
        let mut silence = Silence::default();
        assert!(!silence.ends());
        assert_eq!(silence.look(start, 0, 7, LIMITS), SOON);
        assert!(silence.ends());
        assert_eq!(silence.look(start + LIMITS.idle, 0, 7, LIMITS), SOON);
        assert_eq!(silence.look(start + 2 * LIMITS.idle, 0, 7, LIMITS), None);
    }
}
