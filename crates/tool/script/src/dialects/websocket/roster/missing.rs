//! Deliveries that are missing: what the server owed on a connection that was lost, for too long, or at the end.

use super::{
    Broadcast, Further, Head, MAX_IN_FLIGHT, Roster, Sent,
    fates::{Fate, PUBLISHED},
};
use std::sync::atomic::Ordering::*;

/// Deliveries of a broadcast that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dialects::websocket) struct Missing {
    pub number: u64,
    pub sent: Sent,
    pub deliveries: u64,
    /// None of this broadcast was missing before. It has no delivery to the last member.
    pub is_first: bool,
}

impl Roster {
    /// Cancels a broadcast that a member was owed and has not received, because the server has lost its connection.
    /// Returns the delivery if it is missing and was not reported: it was still owed, and [`Roster::missing`] has not
    /// returned it. If it is not known yet whether the broadcast is published, [`Roster::publish`] returns it. As recorded
    /// by [`Roster::deliver`], the broadcast has no last delivery then.
    pub fn miss(&self, number: u64) -> Option<Missing> {
        let _lock = self.lock();
        if self.fate(number) != Some(Fate::Owed) {
            return None;
        }
        let missing = if self.is_open(number) { None } else { self.missing_of(number, 1) };
        self.further(number, Further::Missed).fetch_add(1, Relaxed);
        self.decrement_left(number);
        missing.filter(|_| self.broadcast(number, Broadcast::Reported).load(Relaxed) == 0)
    }

    /// Whether the result of a broadcast that was sent may still say that nobody is owed it.
    fn is_open(&self, number: u64) -> bool {
        self.may_be_lost && self.further(number, Further::Fate).load(Relaxed) == 0
    }

    /// So many deliveries of a broadcast are missing, besides those that [`Roster::miss`] has not returned. Requires the
    /// lock.
    fn missing_of(&self, number: u64, deliveries: u64) -> Option<Missing> {
        let missed = self.further(number, Further::Missed).load(Relaxed);
        let sent = self.sent(number)?;
        Some(match self.is_open(number) {
            true => Missing { number, sent, deliveries: deliveries + missed, is_first: true },
            false => Missing { number, sent, deliveries, is_first: missed == 0 },
        })
    }

    /// After [`TooMany`]: so many broadcasts were sent since the one in the next slot that its copies count as missing.
    /// Returns them. If errors are tolerated, they are `freed` and returned once: the copies must be recorded by
    /// [`Roster::deliver`] only, because they may come in this moment.
    pub fn overdue(&self, freed: bool) -> Option<Missing> {
        let _lock = self.lock();
        let number = self.head(Head::Next).load(Relaxed).checked_sub(MAX_IN_FLIGHT as u64)?;
        let left = self.broadcast(number, Broadcast::Left);
        let missing = self.missing_of(number, left.load(Acquire));
        if freed {
            // What comes now is too late to be known.
            self.broadcast(number, Broadcast::Number).store(u64::MAX, Release);
            if left.swap(0, AcqRel) > 0 {
                self.head(Head::Owed).fetch_sub(1, Relaxed);
            }
        }
        let is_new = self.broadcast(number, Broadcast::Reported).swap(1, AcqRel) == 0;
        missing.filter(|missing| (is_new || !freed) && missing.deliveries > 0)
    }

    /// Returns the deliveries that are still owed and that no call has returned before, in any process that
    /// shares the roster, by broadcast.
    pub fn missing(&self) -> Vec<Missing> {
        // So that none of them is counted as that of a lost connection, too.
        let _lock = self.lock();
        let next = self.next();
        let first = next.saturating_sub(MAX_IN_FLIGHT as u64);
        let each = (first..next).filter_map(|number| {
            let missing =
                self.missing_of(number, self.broadcast(number, Broadcast::Left).load(Acquire))?;
            let is_new = || self.broadcast(number, Broadcast::Reported).swap(1, AcqRel) == 0;
            (missing.deliveries > 0 && is_new()).then_some(missing)
        });
        each.collect()
    }

    /// A result says that this broadcast is published. Returns what is missing of it, because connections were lost
    /// before.
    pub fn publish(&self, number: u64) -> Option<Missing> {
        let _lock = self.lock();
        let missing = self.missing_of(number, 0).filter(|_| self.is_open(number));
        if self.fate(number) == Some(Fate::Owed) {
            self.further(number, Further::Fate).store(PUBLISHED, Relaxed);
        }
        let is_new = self.broadcast(number, Broadcast::Reported).load(Relaxed) == 0;
        missing.filter(|missing| is_new && missing.deliveries > 0)
    }
}
