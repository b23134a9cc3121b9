//! Requests whose last byte is held back for a while. Nobody can know such a request yet: a reply that
//! comes before the byte was made up, and disqualifies.
//!
//! A sample of a few connections of each thread, at random moments of the warm-up, and once more after
//! the window on connections that are kept: never inside the window. Held back is the end of what is
//! written at once, so the last of several requests.

use super::{driver::Driver, state::Worker};
use crate::{
    clock::Nanos,
    connection::{Connection, State},
    shared::Phase,
};
use regatta_record::Exchange;
use regatta_script::{Dialect, printable};

/// What is kept back of what is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    Nothing,
    LastByte,
    /// The last byte of what was written before is kept back still.
    All,
}

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// A phase begins: where a sample is to be taken, it is; what is held back elsewhere is released.
    pub(super) fn hold_in(&mut self, phase: Phase) {
        self.release(Nanos::MAX);
        // After the window nothing may be sent that was not due, and connections may be closed by now.
        let kept = !V::SCHEDULED && !V::ENDS_CONNECTIONS;
        let samples = phase == Phase::WarmingUp || (phase == Phase::Draining && kept);
        self.holding.begin(samples, self.now);
    }

    /// What a connection keeps back of what it has to write.
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
        if connection.socket.is_none() || !self.holding.takes(self.phase, bytes, self.now) {
            return Back::Nothing;
        }
        connection.held = Some(self.holding.hold(slot, self.now));
        Back::LastByte
    }

    /// Writes the bytes that were due until now.
    pub(super) fn release(&mut self, now: Nanos) {
        while let Some((due, slot)) = self.holding.next_due(now) {
            // The slot may have another connection since then.
            let held = &mut self.connections[slot as usize].held;
            if held.take_if(|held| held.until == due).is_some() {
                self.write(slot);
            }
        }
    }

    /// After the window: a connection that has all of its replies is asked once more, if the sample wants
    /// one.
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

    /// What is wrong if one of the replies that have just come, in the first `n` bytes of the buffer, is
    /// to a request of which the last byte is still held back.
    #[inline]
    pub(super) fn too_early(&self, slot: u32, n: usize) -> Option<Exchange> {
        let Connection { held, cursor, .. } = &self.connections[slot as usize];
        let is_answered = cursor.owed() <= held.as_ref()?.behind;
        is_answered.then(|| self.early(slot, n))
    }

    /// The same of bytes that are no reply that is due, where every other request had its reply before.
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
