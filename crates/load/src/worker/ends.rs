//! Connections that the server ends: as it had said, with a reply that ends so, or in the middle of
//! a write. Not every protocol has ways to say it.
//!
//! A server that says so does nothing wrong: it serves so many requests on each
//! connection. Requests that were already sent behind that reply will not be looked at; in closed loop
//! they are asked again on a new connection, as if they had not been sent, and in open loop, where
//! each has its moment, they are lost like those of any other close.
//!
//! Where requests do not belong to connections, the next connection is opened when its turn comes,
//! for a request that is sent anyway: none is made up for the sake of a connection. An idle one has
//! nothing to ask, and is opened again after a pause.

use super::{driver::Driver, loss::Loss, state::Worker};
use crate::{
    clock,
    connection::{Connection, LONGEST_PAUSE, State},
    shared::Phase,
    socket::Received,
};
use regatta_record::Exchange;
use regatta_script::{At, Dialect};
use std::cmp::Reverse;

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// The server ended its sending direction: the end of a reply, or a loss.
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

    /// Something came that is no reply; it may tell that the server ends the connection.
    pub(super) fn end_if_said(&mut self, slot: u32) {
        if self.dialect.ends(&self.connections[slot as usize].talk) {
            self.ended_as_said(slot);
        }
    }

    /// The server ends the connection as it said: no error, and a new connection goes on.
    pub(super) fn ended_as_said(&mut self, slot: u32) {
        if V::CHURNS {
            return V::goes_on(self, slot);
        }
        if self.passing.has(slot) {
            return self.has_left(slot);
        }
        let owed = self.connections[slot as usize].cursor.owed();
        self.close(slot);
        if V::SCHEDULED {
            self.count.errors.closed_early += u64::from(owed);
        } else {
            self.take_back(slot, owed);
        }
        let more = self.drive.has_more(slot);
        match self.phase {
            Phase::Connecting => self.ended.push(slot),
            Phase::WarmingUp | Phase::Measuring if more => self.open_again(slot),
            // What still stands in line needs connections.
            Phase::Draining if V::SCHEDULED && slot < self.active => {
                self.open_again(slot);
            }
            _ => {}
        }
    }

    /// A slot whose connection the server ended as it said: sees that there is another in time.
    pub(super) fn open_again(&mut self, slot: u32) {
        if slot >= self.active {
            return self.open_later(slot);
        }
        V::reopens(self, slot);
    }

    /// Opens a slot after its pause, which is twice as long the next time.
    pub(super) fn open_later(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        self.waiting.push(Reverse((self.now + connection.pause, slot)));
        connection.pause = (connection.pause * 2).min(LONGEST_PAUSE);
    }

    /// Opens the connection of a slot whose turn it is. Its first request is the one that is to be
    /// sent.
    pub(super) fn connect_in_turn(&mut self, slot: u32) {
        self.shared.opens();
        self.connections[slot as usize].beside = false;
        self.connect(slot);
    }

    /// The last `owed` requests of a connection that was closed are to be asked again: they are not
    /// settled after all.
    fn take_back(&mut self, slot: u32, owed: u32) {
        self.left += u64::from(owed);
        self.settled -= u64::from(owed);
        self.drive.takes_back(slot, owed);
    }

    /// The run is over: closes connections that are not used any more. A server that was told by a
    /// request that the connection ends must have ended it before.
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

    /// How many connections that are not used any more wait for the server to close.
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

    /// A write failed. What the server said before decides first: a reply that was wrong must not
    /// hide behind the reset that followed it, and one that said that it is the last explains it.
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
            if self.dialect.ends(&self.connections[slot as usize].talk) {
                return self.ended_as_said(slot);
            }
        }
        self.lost(slot, loss);
    }
}
