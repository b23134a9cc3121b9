//! Timeouts of silent clients. A client that acknowledges what was sent has not timed out.

use crate::Limits;
use regatta_engine::Activity;
use std::time::{Duration, Instant};

/// Time before the first check of a client, and between checks. A timeout is late by at most this.
pub fn check_interval(limits: Limits) -> Duration {
    limits.idle / 4
}

/// Checks a client that has sent nothing since its input is awaited. `unacknowledged`: bytes of output that it has
/// not acknowledged. `activity` is `None` at the first check. Returns when to check again, or `None` if the client
/// has timed out.
pub(super) fn next_check(
    activity: &mut Option<Activity>,
    now: Instant,
    unacknowledged: usize,
    limits: Limits,
) -> Option<Instant> {
    let activity = activity.get_or_insert_with(|| {
        let mut activity = Activity::new(now);
        activity.wrote(unacknowledged);
        activity
    });
    let has_timed_out = activity.has_timed_out(now, || unacknowledged, &limits, None);
    (!has_timed_out).then(|| activity.due(&limits, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a client at these times, in seconds, while so many bytes are unacknowledged. Returns when it is to be
    /// checked next, each time.
    fn checks<const N: usize>(checks: [(u64, usize); N]) -> [Option<u64>; N] {
        let limits = Limits { idle: Duration::from_secs(8), request: Duration::from_secs(2) };
        let (start, mut activity) = (Instant::now(), None);
        checks.map(|(at, unacknowledged)| {
            let now = start + Duration::from_secs(at);
            let next = next_check(&mut activity, now, unacknowledged, limits);
            next.map(|next| (next - start).as_secs())
        })
    }

    #[test]
    fn a_silent_client_is_kept_while_it_acknowledges_output() {
        // One byte is acknowledged at 6 s, and the others just before the timeout.
        assert_eq!(
            checks([(2, 500), (4, 500), (6, 499), (12, 499), (13, 499), (14, 0), (22, 0)]),
            [Some(4), Some(6), Some(8), Some(14), Some(14), Some(22), None]
        );
        assert_eq!(checks([(2, 7), (9, 7), (10, 7)]), [Some(4), Some(10), None]);
        assert_eq!(checks([(2, 0), (10, 0)]), [Some(10), None], "there is nothing to acknowledge");
    }
}
