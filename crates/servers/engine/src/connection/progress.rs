//! Whether a peer acknowledges its output.

use crate::Limits;
use std::time::{Duration, Instant};

/// Watches how much of the output the peer has acknowledged.
///
/// A successful write does not prove progress of the peer: it may have used free space in the
/// kernel's send buffer. A socket that is not writable does not prove a stall: Linux reports it as
/// writable only once a third of the send buffer is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes acknowledged at the last check. Negative if bytes sent before counting started are
    /// still unacknowledged.
    acknowledged: i64,
    /// When the stall timer was last restarted: the peer acknowledged something, or had nothing to
    /// acknowledge.
    took: Instant,
    /// At the last check, it had acknowledged nothing of its pending output.
    stands: bool,
}

impl Progress {
    /// Starts to watch now.
    pub fn new(now: Instant) -> Self {
        Progress { acknowledged: i64::MIN, took: now, stands: false }
    }

    /// When the peer was last seen to acknowledge something, or to have nothing to acknowledge.
    #[inline]
    pub fn last_progress(&self) -> Instant {
        self.took
    }

    /// Restarts the stall timer, unless the peer has stalled already: sending more to a stalled
    /// peer gives it no extra time.
    pub fn restart(&mut self, now: Instant) {
        if !self.stands {
            self.took = now;
        }
    }

    /// Records a check at `now`: of `sent` bytes in total, this many are unacknowledged.
    pub fn sample(&mut self, now: Instant, sent: u64, unacknowledged: usize) {
        let acknowledged = sent as i64 - unacknowledged as i64;
        // A peer that has acknowledged everything has not stalled.
        self.stands = acknowledged <= self.acknowledged && unacknowledged > 0;
        if !self.stands {
            self.took = now;
        }
        self.acknowledged = acknowledged;
    }

    /// Whether the peer has acknowledged nothing for `limit`.
    pub fn is_stalled(&self, now: Instant, limit: Duration) -> bool {
        now >= self.took + limit
    }
}

/// When a peer was last active: when it sent something, or acknowledged output. For loops that
/// serve one connection.
#[derive(Debug)]
pub struct Activity {
    heard: Instant,
    looked: Instant,
    progress: Progress,
    /// Total bytes written.
    sent: u64,
    /// Written since the peer was last seen to have acknowledged everything.
    owes: bool,
}

impl Activity {
    /// Starts with a connection that has just opened.
    pub fn new(now: Instant) -> Self {
        Activity { heard: now, looked: now, progress: Progress::new(now), sent: 0, owes: false }
    }

    /// Records that the peer sent something.
    pub fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Records that the kernel accepted this many bytes of output.
    pub fn wrote(&mut self, bytes: usize) {
        self.sent += bytes as u64;
        self.owes |= bytes > 0;
    }

    /// Records that the kernel accepts no more output. The stall timer starts.
    pub fn waits_for_room(&mut self, now: Instant) {
        self.progress.restart(now);
    }

    /// When to call [`Activity::has_timed_out`] next. `inside` is the start of the request that is
    /// still incomplete.
    pub fn due(&self, limits: &Limits, inside: Option<Instant>) -> Instant {
        let due = limits.due(self.last(), inside);
        // Acknowledgements are noticed only by checking.
        let look = self.heard.max(self.looked) + limits.idle / 4;
        if self.owes { due.min(look) } else { due }
    }

    /// Whether the peer has been silent, or inside a request, for too long. `unacknowledged`
    /// returns the bytes written but not acknowledged.
    pub fn has_timed_out(
        &mut self,
        now: Instant,
        unacknowledged: impl FnOnce() -> usize,
        limits: &Limits,
        inside: Option<Instant>,
    ) -> bool {
        if self.owes {
            self.sample(now, unacknowledged());
        }
        self.looked = now;
        now >= limits.due(self.last(), inside)
    }

    /// Whether the peer has acknowledged nothing for `limit`, while output is pending.
    pub fn is_stalled(&mut self, now: Instant, unacknowledged: usize, limit: Duration) -> bool {
        self.sample(now, unacknowledged);
        self.progress.is_stalled(now, limit)
    }

    fn sample(&mut self, now: Instant, unacknowledged: usize) {
        self.progress.sample(now, self.sent, unacknowledged);
        self.owes = unacknowledged > 0;
    }

    fn last(&self) -> Instant {
        self.heard.max(self.progress.last_progress())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_acknowledged_counts() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let limit = Duration::from_secs(3);
        let mut progress = Progress::new(at(0));
        progress.sample(at(1), 1000, 1000);
        assert_eq!(progress.last_progress(), at(1), "the first check has nothing to compare with");
        // More is sent, nothing is acknowledged.
        progress.sample(at(3), 5000, 5000);
        assert!(!progress.is_stalled(at(3), limit));
        assert!(progress.is_stalled(at(4), limit));
        progress.sample(at(4), 5000, 4999);
        assert_eq!(progress.last_progress(), at(4));
        progress.sample(at(5), 5000, 4999);
        assert_eq!(progress.last_progress(), at(4));
        progress.sample(at(6), 5000, 0);
        progress.sample(at(7), 5000, 0);
        assert_eq!(progress.last_progress(), at(7), "nothing is unacknowledged");
        progress.restart(at(9));
        assert!(!progress.is_stalled(at(11), limit));
        assert!(progress.is_stalled(at(12), limit));
        progress.sample(at(12), 6000, 1000);
        progress.sample(at(13), 7000, 2000);
        progress.restart(at(14));
        assert_eq!(progress.last_progress(), at(7 + 2), "it has stalled, and is sent more");
    }

    #[test]
    fn a_silent_peer_is_active_while_it_acknowledges() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let limits = Limits { idle: Duration::from_secs(8), request: Duration::from_secs(60) };
        let mut peer = Activity::new(at(0));
        assert_eq!(peer.due(&limits, None), at(8), "nothing is sent");
        peer.wrote(100);
        assert_eq!(peer.due(&limits, None), at(2));
        assert!(!peer.has_timed_out(at(7), || 0, &limits, None));
        assert_eq!(peer.due(&limits, None), at(15), "everything is acknowledged");
        peer.wrote(100);
        assert!(!peer.has_timed_out(at(15), || 40, &limits, None));
        assert!(!peer.has_timed_out(at(17), || 30, &limits, None));
        assert_eq!(peer.due(&limits, None), at(19));
        assert!(!peer.has_timed_out(at(24), || 30, &limits, None));
        assert!(peer.has_timed_out(at(25), || 30, &limits, None), "nothing more is acknowledged");
        peer.heard(at(25));
        assert!(!peer.has_timed_out(at(25), || 30, &limits, None));
        let inside = Some(at(25) - limits.request);
        assert!(peer.has_timed_out(at(25), || 0, &limits, inside), "the request takes too long");
    }
}
