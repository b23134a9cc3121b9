//! How many listeners a hub may count.

use super::{Broadcast, Head, Roster};
use crate::time::Nanos;
use std::{ops::RangeInclusive, sync::atomic::Ordering::*};

/// Time after which a server has noticed that a connection closed, and no longer counts it.
const NOTICED: Nanos = 2_000_000_000;

impl Roster {
    /// Counts an opened connection, which may become a member.
    pub fn connection_opened(&self) {
        self.head(Head::Opened).fetch_add(1, Relaxed);
    }

    /// Counts a closed connection.
    pub fn connection_closed(&self) {
        self.head(Head::Closed).fetch_add(1, Relaxed);
    }

    /// Returns the listener counts that a server may report now for a broadcast. It counts at least the
    /// members that were present when it was sent and have not started to leave since. It counts at
    /// most all opened connections, because it may register one at its upgrade, except those that
    /// closed long before the broadcast was sent. If the broadcast is not known, only the number of
    /// opened connections limits the count.
    pub fn listeners(&self, number: u64) -> RangeInclusive<u64> {
        let of = |word| self.broadcast(number, word).load(Relaxed);
        let (members, leavers) = (of(Broadcast::Members), of(Broadcast::Leavers));
        let (forgotten, is_known) = (of(Broadcast::Forgotten), self.sent(number).is_some());
        let opened = self.head(Head::Opened).load(Relaxed);
        if !is_known {
            return 0..=opened;
        }
        let left_since = self.head(Head::Leavers).load(Relaxed).saturating_sub(leavers);
        members.saturating_sub(left_since)..=opened.saturating_sub(forgotten).max(members)
    }

    /// The number of members whose connections the server must have closed since the load began, so that it may report
    /// so few listeners of a broadcast, with `elsewhere` members on other machines; `None` if it may in any case
    /// ([`Roster::listeners`]).
    #[cold]
    pub fn closed_for(&self, number: u64, listeners: u64, elsewhere: u64) -> Option<u64> {
        let _lock = self.lock();
        let least = self.listeners(number).start().saturating_add(elsewhere);
        let lacking = least.saturating_sub(listeners);
        (lacking > 0).then(|| self.head(Head::Lost).load(Relaxed) + lacking)
    }

    /// Number of members whose connections the server has closed so far.
    pub fn closed(&self) -> u64 {
        self.head(Head::Lost).load(Relaxed)
    }

    /// Returns the number of connections that closed so long before `at` that no server still counts
    /// them. Requires the lock.
    pub(super) fn forgotten(&self, at: Nanos) -> u64 {
        let [updated_at, then, forgotten] =
            [Head::UpdatedAt, Head::ClosedThen, Head::Forgotten].map(|word| self.head(word));
        if at.saturating_sub(updated_at.load(Relaxed)) >= NOTICED {
            forgotten.store(then.load(Relaxed), Relaxed);
            then.store(self.head(Head::Closed).load(Relaxed), Relaxed);
            updated_at.store(at, Relaxed);
        }
        forgotten.load(Relaxed)
    }
}
