//! What a dialect says beside requests: what opens a connection, e.g. an upgrade, and answers to what the
//! server asks. For dialects without either nothing of this is compiled.

use super::{driver::Driver, loss::Loss, state::Worker, talk::send_bytes};
use crate::connection::State;
use regatta_script::Dialect;

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// A connection is about to be made: what opens it goes first.
    pub(super) fn begin_opening(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        // Nothing came that could be wrong.
        let opened = self.dialect.open(&mut connection.talk, &mut &[][..], &mut connection.aside);
        connection.opening = !matches!(opened, Ok(true));
    }

    /// `n` bytes came into the buffer, of a connection that is being opened.
    pub(super) fn go_on_opening(&mut self, slot: u32, n: usize) {
        let connection = &mut self.connections[slot as usize];
        let mut rest = &self.buffer[..n];
        match self.dialect.open(&mut connection.talk, &mut rest, &mut connection.aside) {
            Ok(done) => {
                let left = rest.len();
                if done {
                    connection.opening = false;
                    self.begins_now(slot);
                }
                self.buffer.copy_within(n - left..n, 0);
                // What came behind it is taken first: writing may end the connection.
                if left > 0 {
                    self.came(slot, left);
                }
                let connection = &self.connections[slot as usize];
                if connection.state != State::Closed && !connection.waits_to_write {
                    self.write(slot);
                }
            }
            Err(exchange) => self.wrong(slot, *exchange),
        }
    }

    /// Sends what the dialect says to what came, if it says anything.
    #[inline]
    pub(super) fn say_aside(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        if connection.state == State::Closed {
            return;
        }
        self.dialect.asides(&mut connection.talk, &mut connection.aside);
        if !connection.aside.is_empty() && !connection.waits_to_write {
            self.write(slot);
        }
    }

    /// Sends what is beside requests, if it is its turn. Returns whether it was cut short; `None` if
    /// requests may follow at once.
    #[inline]
    pub(super) fn send_aside(&mut self, slot: u32) -> Result<Option<bool>, Loss> {
        let connection = &mut self.connections[slot as usize];
        let Some(socket) = &connection.socket else { return Ok(Some(false)) };
        let script = self.dialect.script();
        let cursor = &connection.cursor;
        let is_between = cursor.begun_to(script) == cursor.owed_to(script);
        // TLS may have something of its own to send.
        let has_to_send =
            !connection.aside.is_empty() || connection.opening && connection.tls.is_some();
        if has_to_send && is_between {
            let state = connection.state;
            let (n, cut) = send_bytes(socket, &mut connection.tls, state, &connection.aside)?;
            connection.aside.drain(..n);
            if n > 0 {
                self.wrote_first(slot);
            }
            if cut {
                return Ok(Some(true));
            }
        }
        let is_opening = self.connections[slot as usize].opening;
        Ok(is_opening.then_some(false))
    }
}
