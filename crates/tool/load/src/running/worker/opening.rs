//! What a dialect sends besides requests: the bytes that open a connection, e.g. an upgrade, answers to
//! the server, e.g. to a ping, and signs of life. For dialects without any, none of this is compiled.

use super::{driver::Driver, loss::Loss, state::Worker, talk::send_bytes};
use crate::{
    clock::{Nanos, SECOND},
    sockets::connection::State,
};
use regatta_script::Dialect;

/// Interval in which connections are asked for signs of life: [`Dialect::keep_alive`].
const KEEPS_ALIVE: Nanos = 2 * SECOND;

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// Prepares the bytes that open a connection; they are sent before the first request.
    pub(super) fn begin_opening(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        // No input yet, so this cannot fail.
        let opened = self.dialect.open(&mut connection.talk, &mut &[][..], &mut connection.aside);
        connection.opening = !matches!(opened, Ok(true));
    }

    /// Continues to open a connection, with `n` bytes received into the buffer.
    pub(super) fn continue_opening(&mut self, slot: u32, n: usize) {
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
                // Bytes after it are handled before writing, because writing may close the connection.
                if left > 0 {
                    self.handle_bytes(slot, left);
                }
                let connection = &self.connections[slot as usize];
                if connection.state != State::Closed && !connection.waits_to_write {
                    self.write(slot);
                }
            }
            Err(exchange) => self.wrong(slot, *exchange),
        }
    }

    /// Sends the dialect's answers to what was received, if there are any.
    #[inline]
    pub(super) fn send_answers(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        if connection.state == State::Closed {
            return;
        }
        self.dialect.asides(&mut connection.talk, &mut connection.aside);
        if !connection.aside.is_empty() && !connection.waits_to_write {
            self.write(slot);
        }
    }

    /// Sends the signs of life that are due, on all connections that are read.
    #[inline]
    pub(super) fn keep_alive(&mut self) {
        if !const { D::OPENS } || self.now < self.next_sign || !self.dialect.keeps_alive() {
            return;
        }
        self.next_sign = self.now + KEEPS_ALIVE;
        for slot in 0..self.connections.len() as u32 {
            if self.connections[slot as usize].state == State::Open && !self.stalls(slot) {
                self.dialect.keep_alive(&mut self.connections[slot as usize].talk, self.now);
                self.send_answers(slot);
            }
        }
    }

    /// Sends the bytes that are not requests, if the cursor is between two requests. Returns whether the
    /// write was partial; `None` if requests may follow at once.
    #[inline]
    pub(super) fn send_aside(&mut self, slot: u32) -> Result<Option<bool>, Loss> {
        let connection = &mut self.connections[slot as usize];
        let Some(socket) = &connection.socket else { return Ok(Some(false)) };
        let script = self.dialect.script();
        let cursor = &connection.cursor;
        let is_between = cursor.begun_to(script) == cursor.owed_to(script);
        // TLS may have handshake bytes to send.
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
