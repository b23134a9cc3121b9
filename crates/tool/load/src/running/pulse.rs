//! Decides whether the server of a load is alive. Reads no clock.

use crate::{
    Plan,
    clock::{Nanos, SECOND},
    running::shared::Sums,
};

/// After this long with refused connections only, and no settled request, the server counts as dead.
pub(crate) const DEAD_AFTER: Nanos = 2 * SECOND;

/// Decides whether the server is alive. It counts as dead in three cases: no request was settled for
/// [`DEAD_AFTER`] while connections were refused and no reply was pending; no request was settled for
/// `patience`; or requests were only lost, and none answered, for `patience`.
#[derive(Default)]
pub(crate) struct Pulse {
    settled: u64,
    refused: u64,
    last: Nanos,
    replies: u64,
    /// Number of requests settled when the last reply came, and the time of that reply.
    answered: (u64, Nanos),
    patience: Nanos,
}

impl Pulse {
    /// For a load with this reply timeout and patience.
    pub fn new(plan: &Plan) -> Self {
        Pulse { patience: (plan.timeout + plan.patience).as_nanos() as Nanos, ..Pulse::default() }
    }

    /// From now on, the server has its full patience again.
    pub fn restart(&mut self, now: Nanos) {
        self.last = now;
        self.answered.1 = now;
    }

    /// Whether the server is alive, with these sums at `now`.
    pub fn is_alive(&mut self, now: Nanos, sums: &Sums) -> bool {
        if sums.settled != self.settled {
            *self = Pulse { settled: sums.settled, refused: sums.refused, last: now, ..*self };
        }
        if sums.replies != self.replies {
            *self = Pulse { replies: sums.replies, answered: (sums.settled, now), ..*self };
        }
        let only_refusals = sums.awaited == 0 && sums.refused > self.refused;
        let silence = now - self.last;
        let (settled, answered) = self.answered;
        let only_losses = sums.settled > settled && now - answered >= self.patience;
        !only_losses && silence < if only_refusals { DEAD_AFTER } else { self.patience }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_only_loses_requests_is_dead_after_the_patience() {
        let sums = |replies, settled| Sums {
            replies,
            active_replies: replies,
            settled,
            awaited: 4,
            refused: 0,
            dropped: 0,
            owed_ends: 0,
            errors: 0,
            open: 4,
            all_entered: true,
        };
        let mut pulse = Pulse { patience: 10 * SECOND, ..Pulse::default() };
        pulse.restart(0);
        // A loss every second, and a reply in the fifth.
        let alive: Vec<bool> =
            (1..=17).map(|i| pulse.is_alive(i * SECOND, &sums(u64::from(i >= 5), i))).collect();
        assert_eq!(alive.iter().position(|alive| !alive), Some(14), "15 s: 10 s after the reply");
    }
}
