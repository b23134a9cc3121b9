//! Timeouts of silent clients. A client that acknowledges what was sent has not timed out.

use crate::Limits;
use std::time::{Duration, Instant};

/// Time before the first check of a client, and between checks. A timeout is late by at most this.
pub fn check_interval(limits: Limits) -> Duration {
    limits.idle / 4
}

/// Checks a client in every quarter of the idle timeout while its input is awaited.
#[derive(Debug, Default)]
pub(super) struct Silence {
    last: Option<Check>,
}

#[derive(Debug)]
struct Check {
    /// Bytes sent that were acknowledged. Negative if bytes sent before the count started are
    /// unacknowledged.
    acknowledged: i64,
    /// When the client last acknowledged something, at the latest.
    took: Instant,
}

impl Silence {
    /// Checks a client that has sent nothing until `now`. `unacknowledged` of the `sent` bytes are
    /// unacknowledged. Returns the time until the next check, or `None` if the client has timed
    /// out.
    pub(super) fn check(
        &mut self,
        now: Instant,
        sent: u64,
        unacknowledged: usize,
        limits: Limits,
    ) -> Option<Duration> {
        let acknowledged = sent as i64 - unacknowledged as i64;
        let took = match &self.last {
            Some(last) if acknowledged <= last.acknowledged => last.took,
            // The first check has nothing to compare with.
            _ => now,
        };
        self.last = Some(Check { acknowledged, took });
        let left = (took + limits.idle).saturating_duration_since(now);
        (!left.is_zero()).then(|| left.min(check_interval(limits)))
    }

    /// Resets after input arrived. Returns whether there had been a check.
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
    fn a_silent_client_is_kept_while_it_acknowledges_output() {
        let start = Instant::now();
        let mut silence = Silence::default();
        let mut check = |s, sent, unacknowledged| {
            silence.check(start + Duration::from_secs(s), sent, unacknowledged, LIMITS)
        };
        assert_eq!(check(2, 0, 500), SOON);
        assert_eq!(check(4, 0, 500), SOON);
        assert_eq!(check(6, 0, 499), SOON, "one byte was acknowledged");
        assert_eq!(check(8, 0, 499), SOON);
        assert_eq!(check(12, 100, 599), SOON, "more was sent, nothing was acknowledged");
        assert_eq!(check(13, 100, 599), Some(Duration::from_secs(1)), "the check is not late");
        assert_eq!(check(14, 100, 0), SOON, "all was acknowledged just before the timeout");
        assert_eq!(check(16, 100, 0), SOON);
        assert_eq!(check(20, 200, 0), SOON, "what was sent since was acknowledged");
        assert_eq!(check(28, 200, 0), None);
    }

    #[test]
    fn input_from_the_client_restarts_the_timeout() {
        let start = Instant::now();
        let mut silence = Silence::default();
        assert!(!silence.ends());
        assert_eq!(silence.check(start, 0, 7, LIMITS), SOON);
        assert!(silence.ends());
        assert_eq!(silence.check(start + LIMITS.idle, 0, 7, LIMITS), SOON);
        assert_eq!(silence.check(start + 2 * LIMITS.idle, 0, 7, LIMITS), None);
    }
}
