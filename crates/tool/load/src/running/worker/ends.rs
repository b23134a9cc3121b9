//! Connections that the server closes: after it announced the close, at the end of a reply that is
//! delimited by the close, or during a write. Not every protocol can announce a close.
//!
//! An announced close is not an error: many servers limit the requests per connection. Requests that
//! were already sent after the last served one are ignored by the server. A closed loop sends them again
//! on a new connection, as if they had not been sent. In an open loop, where each request has its due
//! time, they are lost, as with any other close.
//!
//! If any connection can send any request, the next connection is opened in its turn, for a request that
//! is sent anyway: no extra request is sent to open a connection. An idle connection sends no requests,
//! and is reopened after a pause.

use super::{driver::Driver, loss::Loss, state::Worker};
use crate::{
    clock,
    running::shared::Phase,
    sockets::{
        connection::{Connection, LONGEST_PAUSE, State},
        socket::Received,
    },
};
use regatta_record::Exchange;
use regatta_script::{At, Dialect};
use std::cmp::Reverse;

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// Handles end of input: it completes a reply, right or wrong, or the connection is lost.
    pub(super) fn end_of_input(&mut self, slot: u32) {
        self.now = clock::now();
        let Connection { cursor, talk, ended, replies: before, .. } =
            &mut self.connections[slot as usize];
        *ended = true;
        match self.dialect.end(At { cursor, talk, desk: &mut self.desk }, self.now) {
            Ok(true) => self.answered(slot, 1),
            Ok(false) => self.lost(slot, Loss::Closed),
            Err(mut exchange) => {
                exchange.reply_index = *before;
                self.unexpected_end(slot, *exchange);
            }
        }
    }

    /// Handles bytes that complete no reply: they may announce the close of the connection.
    pub(super) fn close_if_announced(&mut self, slot: u32) {
        if self.dialect.ends(&self.connections[slot as usize].talk) {
            self.announced_close(slot);
        }
    }

    /// Handles an announced close: it is not an error, and a new connection continues. In an open loop,
    /// the requests that it leaves unanswered are lost.
    pub(super) fn announced_close(&mut self, slot: u32) {
        if V::CHURNS {
            return V::goes_on(self, slot);
        }
        if self.passing.has(slot) {
            return self.member_left(slot);
        }
        let connection = &self.connections[slot as usize];
        let owed = connection.cursor.owed();
        let is_fruitless = D::MULTIPLEXED && connection.replies == 0;
        self.close(slot);
        if V::SCHEDULED {
            self.count.errors.closed_early += u64::from(owed);
        } else {
            self.take_back(slot, owed);
        }
        let more = self.drive.has_more(slot);
        match self.phase {
            Phase::Connecting => self.ended.push(slot),
            // A server that closes all connections before any reply is not asked again without a pause.
            Phase::WarmingUp | Phase::Measuring if more && is_fruitless => self.open_later(slot),
            Phase::WarmingUp | Phase::Measuring if more => self.open_again(slot),
            // Queued requests still need connections.
            Phase::Draining if V::SCHEDULED && slot < self.active => {
                self.open_again(slot);
            }
            _ => {}
        }
    }

    /// Closes a connection whose requests must be sent again, as if they had not been sent.
    pub(super) fn send_again(&mut self, slot: u32) {
        let owed = self.connections[slot as usize].cursor.owed();
        self.close(slot);
        self.take_back(slot, owed);
        if self.phase <= Phase::Measuring {
            self.open_again(slot);
        }
    }

    /// Arranges for a slot to be reopened after an announced close.
    pub(super) fn open_again(&mut self, slot: u32) {
        if slot >= self.active {
            return self.open_later(slot);
        }
        V::reopens(self, slot);
    }

    /// Opens a slot after its pause, and doubles the pause for the next time.
    pub(super) fn open_later(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        self.waiting.push(Reverse((self.now + connection.pause, slot)));
        connection.pause = (connection.pause * 2).min(LONGEST_PAUSE);
    }

    /// Opens the connection of a slot whose turn it is. Its first request is the one that is due.
    pub(super) fn connect_in_turn(&mut self, slot: u32) {
        self.shared.opens();
        self.connections[slot as usize].extra = false;
        self.connect(slot);
    }

    /// Takes back the last `owed` requests of a closed connection, to be sent again: they no longer
    /// count as settled.
    fn take_back(&mut self, slot: u32, owed: u32) {
        self.left += u64::from(owed);
        self.settled -= u64::from(owed);
        self.drive.takes_back(slot, owed);
    }

    /// Closes the unused connections at the end of the run. It is wrong if the server has not closed a
    /// connection whose last request asked for it, e.g. by `Connection: close`.
    pub(super) fn end_kept(&mut self) {
        for slot in 0..self.active {
            let Connection { state, cursor, talk, replies, .. } = &self.connections[slot as usize];
            if *state != State::Open {
                continue;
            }
            match self.dialect.owes_end(cursor, talk) {
                Some(exchange) if self.shared.closes_are_overdue() => {
                    let reply_index = replies.saturating_sub(1);
                    self.wrong(slot, Exchange { reply_index, ..exchange });
                }
                _ => self.close(slot),
            }
        }
    }

    /// Number of unused connections that wait for the server to close.
    pub(super) fn owed_ends(&self) -> u64 {
        if !V::CHURNS {
            return 0;
        }
        let open = self.connections.iter().filter(|connection| connection.state == State::Open);
        open.filter(|connection| {
            self.dialect.owes_end(&connection.cursor, &connection.talk).is_some()
        })
        .count() as u64
    }

    /// Handles a failed write. Bytes that the server sent before are checked first: the reset must not
    /// hide a wrong reply, and an announced close explains the failure.
    pub(super) fn broken(&mut self, slot: u32, loss: Loss) {
        let connection = &self.connections[slot as usize];
        if connection.state != State::Closed
            && let Ok(Received::Bytes(n)) = self.take_in(slot)
        {
            self.now = clock::now();
            match self.receive(slot, 0..n) {
                Ok(0) => {}
                Ok(replies) => self.settle(slot, replies),
                Err(exchange) => return self.unexpected(slot, exchange, n),
            }
            if const { D::MULTIPLEXED } {
                self.settle_unanswered(slot);
            }
            if self.dialect.ends(&self.connections[slot as usize].talk) {
                return self.announced_close(slot);
            }
        }
        self.lost(slot, loss);
    }
}
