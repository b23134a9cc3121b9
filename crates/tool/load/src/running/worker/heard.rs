//! Operations beside requests: messages that servers push, and messages of replies that are streams. For a
//! dialect that has only requests, the counting is not compiled.

use super::{driver::Driver, state::Worker};
use crate::{clock::Nanos, counts::operations::Operations, sockets::connection::Connection};
use regatta_record::Exchange;
use regatta_script::{At, Dialect};

/// Whether replies may be streams of messages in this dialect.
pub(super) const fn streams<D: Dialect>() -> bool {
    D::OPERATIONS.len() > 1 && !D::PUSHES
}

/// Passes received bytes to the dialect, and counts the pushed operations in them. Returns the number of
/// completed replies.
#[inline]
pub(super) fn hear<D: Dialect>(
    dialect: &D,
    at: At<'_, D>,
    came: &[u8],
    now: Nanos,
    operations: &mut Operations,
) -> Result<u32, Box<Exchange>> {
    if const { D::PUSHES } {
        dialect.receive(at, came, now, &mut operations.listen(now))
    } else {
        dialect.receive(at, came, now, &mut ())
    }
}

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// Announces the next `k` requests of a connection to the dialect before they are written, with the
    /// time from which their latency counts.
    #[inline]
    pub(super) fn announce(&mut self, slot: u32, k: u32, now: Nanos) {
        if const { D::PUSHES } {
            let connection = &mut self.connections[slot as usize];
            let place = self.times.next_place(&connection.sent);
            let from = self.drive.intended(place).unwrap_or(now);
            self.dialect.asked(&mut connection.talk, k, from);
        }
    }

    /// Counts the next `replies` replies, one by one, with the messages of those that are streams. The drive
    /// decides which of them are inside the window.
    pub(super) fn count_streams(&mut self, slot: u32, replies: u32) {
        for _ in 0..replies {
            self.order_answered(slot, 1);
            if self.are_late(slot, 1) {
                self.answered_late(slot);
                continue;
            }
            let connection = &self.connections[slot as usize];
            let streamed = self.dialect.streamed(&connection.talk);
            let from = self.counts_from(slot, connection);
            let before = self.count.requests;
            V::answered(self, slot, 1);
            if let Some(streamed) = streamed {
                let is_inside = self.count.requests > before;
                self.count.operations.streamed(streamed, from, is_inside);
            }
        }
    }

    /// Counts the wrong operations of the last bytes, if they are tolerated.
    #[inline]
    pub(super) fn count_wrong_pushes(&mut self) {
        if let Some(wrong) = self.count.operations.take_wrong() {
            self.count.errors.wrong_reply += wrong.count;
            wrong.first.into_iter().for_each(|exchange| self.shared.saw_wrong(*exchange));
        }
    }

    /// Counts the next `replies` replies. Those that are refusals are counted apart, and have no latency.
    #[inline]
    pub(super) fn count_unless_refused(&mut self, slot: u32, replies: u32) {
        let mut counted = 0;
        while let Some(refused) = self.next_refused(slot) {
            if refused > counted {
                V::answered(self, slot, refused - counted);
            }
            self.count_refused(slot);
            counted = refused + 1;
        }
        if replies > counted {
            V::answered(self, slot, replies - counted);
        }
    }

    #[inline]
    fn next_refused(&mut self, slot: u32) -> Option<u32> {
        self.dialect.next_refused(&mut self.connections[slot as usize].talk)
    }

    /// Counts a reply that is a refusal.
    #[cold]
    fn count_refused(&mut self, slot: u32) {
        self.replies -= 1;
        self.unexpected += 1;
        self.count.refused += u64::from(self.counts && slot < self.active);
        let connection = &mut self.connections[slot as usize];
        self.drive.refused(slot, connection, &self.times, self.now);
        self.times.pop_run(&mut connection.sent, 1);
    }

    /// The moment from which the latency of the oldest request of a connection counts; `None` if it does not.
    #[inline]
    fn counts_from(&self, slot: u32, connection: &Connection<D::ConnectionState>) -> Option<Nanos> {
        if slot >= self.active || !self.drive.is_counted(connection) {
            return None;
        }
        match V::SCHEDULED {
            true => self.drive.intended(self.times.oldest_place(&connection.sent)),
            false => Some(self.times.oldest(&connection.sent)),
        }
    }
}
