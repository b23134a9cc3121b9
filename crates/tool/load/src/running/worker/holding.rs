//! Requests whose last byte is held back for a while. The server cannot know such a request yet: a reply
//! that arrives before the byte is sent was guessed, and disqualifies.
//!
//! Each thread samples a few connections, at random moments of the warm-up, and again after the window
//! in a closed loop that keeps its connections; never inside the window. The byte held back is the last
//! one of a write, so it belongs to the last of several pipelined requests. If replies come in any order,
//! the dialect knows which reply is too early ([`Dialect::early`]).

use super::{driver::Driver, state::Worker};
use crate::{
    clock::Nanos,
    running::shared::Phase,
    sockets::connection::{Connection, State},
};
use regatta_record::Exchange;
use regatta_script::{Dialect, printable};

/// The part of a write that is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    Nothing,
    LastByte,
    /// The last byte of the previous write is still held back.
    All,
}

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// Enters a phase: releases all held-back bytes, and starts a new sample if the phase has one.
    pub(super) fn hold_in(&mut self, phase: Phase) {
        self.release(Nanos::MAX);
        // After the window a scheduled load may send only requests that were due, and some drives have
        // closed their connections.
        let kept = !V::SCHEDULED && !V::ENDS_CONNECTIONS;
        // The last drain of a lane belongs to no slice.
        let is_last = phase == Phase::Draining && self.slice.is_none();
        let samples = phase == Phase::WarmingUp || (is_last && kept);
        self.holding.begin(samples, self.now);
    }

    /// Decides how much of a connection's next write is held back.
    #[inline]
    pub(super) fn holds_back(&mut self, slot: u32) -> Back {
        match (self.connections[slot as usize].held, self.holding.wants_more()) {
            (None, false) => Back::Nothing,
            (None, true) => self.begin_to_hold(slot),
            (Some(_), _) => Back::All,
        }
    }

    #[cold]
    fn begin_to_hold(&mut self, slot: u32) -> Back {
        let connection = &mut self.connections[slot as usize];
        let bytes = self.dialect.unsent(&connection.cursor, &mut connection.talk, self.now).len();
        // What the dialect remembers is ignored if nothing is held back.
        let is_last = const { !D::MULTIPLEXED } || self.dialect.hold(&mut connection.talk);
        let holds = connection.socket.is_some() && is_last;
        if !holds || !self.holding.takes(self.phase, bytes, self.now) {
            return Back::Nothing;
        }
        connection.held = Some(self.holding.hold(slot, self.now));
        Back::LastByte
    }

    /// Writes the held-back bytes that are due.
    pub(super) fn release(&mut self, now: Nanos) {
        while let Some((due, slot)) = self.holding.next_due(now) {
            // The slot may hold another connection by now.
            let held = &mut self.connections[slot as usize].held;
            if held.take_if(|held| held.until == due).is_some() {
                self.write(slot);
            }
        }
    }

    /// After the window: sends one more request on a connection that has all its replies, if the sample
    /// needs one.
    #[inline]
    pub(super) fn ask_once_more(&mut self, slot: u32) {
        if !self.holding.wants_more() || self.phase != Phase::Draining || slot >= self.active {
            return;
        }
        let connection = &self.connections[slot as usize];
        let is_idle = connection.state == State::Open && connection.cursor.owed() == 0;
        if is_idle && !connection.ended && !self.dialect.ends(&connection.talk) {
            self.ask(slot, 1);
        }
    }

    /// Returns the wrong exchange if one of the replies just received, in the first `n` bytes of the
    /// buffer, answers a request whose last byte is still held back.
    #[inline]
    pub(super) fn too_early(&self, slot: u32, n: usize) -> Option<Exchange> {
        let Connection { held, cursor, .. } = &self.connections[slot as usize];
        let is_answered = cursor.owed() <= held.as_ref()?.behind;
        is_answered.then(|| self.early(slot, n))
    }

    /// The same if replies come in any order.
    #[inline]
    pub(super) fn too_early_on_stream(&self, slot: u32) -> Option<Box<Exchange>> {
        let Connection { held, talk, replies, .. } = &self.connections[slot as usize];
        held.as_ref()?;
        let early = self.dialect.early(talk)?;
        Some(Box::new(Exchange { reply_index: *replies, ..early }))
    }

    /// The same for bytes that are not a correct reply, if every other request was answered before.
    pub(super) fn nothing_but_early(&self, slot: u32, n: usize) -> Option<Exchange> {
        let Connection { held, cursor, .. } = &self.connections[slot as usize];
        let is_alone = cursor.owed() <= held.as_ref()?.behind + 1;
        is_alone.then(|| self.early(slot, n))
    }

    fn early(&self, slot: u32, n: usize) -> Exchange {
        let Connection { cursor, replies, .. } = &self.connections[slot as usize];
        let script = self.dialect.script();
        let request = match cursor.unsent(script) {
            // The last byte was released meanwhile.
            [] => cursor.last_request(script).unwrap_or_default(),
            _ => script.request(cursor.owed_to(script) % script.count()),
        };
        Exchange {
            sent: printable(&request[..request.len().saturating_sub(1)]),
            expected: "nothing yet: the last byte of the request had not been sent".into(),
            received: printable(&self.buffer[..n]),
            reply_index: *replies,
        }
    }
}
