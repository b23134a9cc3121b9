//! Whether a peer takes what it is sent.

use std::time::{Duration, Instant};

/// Watches how much of the output the peer has acknowledged.
///
/// A write that succeeds is no progress of the peer: it may have found room that was left over in
/// the kernel. Nor is a socket that is not writable a standstill: Linux reports room only once a
/// third of the send buffer is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of what was sent that were acknowledged at the last look; less than 0 if some are
    /// unacknowledged that were sent before the count began.
    acknowledged: i64,
    /// When the peer was last seen to have taken something.
    took: Instant,
    /// At the last look it had taken nothing of what it was sent.
    stands: bool,
}

impl Progress {
    /// Watches from now on.
    pub fn new(now: Instant) -> Self {
        Progress { acknowledged: i64::MIN, took: now, stands: false }
    }

    /// When the peer was last seen to have taken something.
    #[inline]
    pub fn took(&self) -> Instant {
        self.took
    }

    /// From now on a standstill counts, unless there is one already: a peer that takes nothing gains
    /// no time by being sent more.
    pub fn restart(&mut self, now: Instant) {
        if !self.stands {
            self.took = now;
        }
    }

    /// At `now`, of `sent` bytes in all, so many are unacknowledged.
    pub fn look(&mut self, now: Instant, sent: u64, unacknowledged: usize) {
        let acknowledged = sent as i64 - unacknowledged as i64;
        // A peer that has taken everything is not the one that is waited for.
        self.stands = acknowledged <= self.acknowledged && unacknowledged > 0;
        if !self.stands {
            self.took = now;
        }
        self.acknowledged = acknowledged;
    }

    /// Whether the peer has taken nothing for `limit`.
    pub fn is_stalled(&self, now: Instant, limit: Duration) -> bool {
        now >= self.took + limit
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
        progress.look(at(1), 1000, 1000);
        assert_eq!(progress.took(), at(1), "the first look has nothing to compare with");
        // More is sent, nothing is acknowledged.
        progress.look(at(3), 5000, 5000);
        assert!(!progress.is_stalled(at(3), limit));
        assert!(progress.is_stalled(at(4), limit));
        progress.look(at(4), 5000, 4999);
        assert_eq!(progress.took(), at(4));
        progress.look(at(5), 5000, 4999);
        assert_eq!(progress.took(), at(4));
        progress.look(at(6), 5000, 0);
        progress.look(at(7), 5000, 0);
        assert_eq!(progress.took(), at(7), "nothing is owed");
        progress.restart(at(9));
        assert!(!progress.is_stalled(at(11), limit));
        assert!(progress.is_stalled(at(12), limit));
        progress.look(at(12), 6000, 1000);
        progress.look(at(13), 7000, 2000);
        progress.restart(at(14));
        assert_eq!(progress.took(), at(7 + 2), "it stands still, and is sent more");
    }
}
