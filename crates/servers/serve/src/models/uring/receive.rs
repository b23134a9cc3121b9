//! Receiving: which receive a connection gets, and what its completions do.

use super::{Driver, READ, Receiving};
use regatta_engine::{Conn, Engine};
use regatta_sys::{net, uring::Received};
use std::{io, mem};

/// Maximum number of starved receives that are restarted per turn.
const FEED: usize = 64;
/// How many receives of a connection are single, after one that received more than [`READ`] bytes in a turn.
const SINGLY: u8 = 64;

impl<E: Engine> Driver<'_, E> {
    /// Reads a new connection, for which no receive has been started yet.
    pub(super) fn read_now(&mut self, conn: Conn) {
        if self.is_held() {
            return;
        }
        let Some(slot) = self.sockets.get(conn) else { return };
        match net::read_now(&slot.fd, &mut self.input) {
            Ok(0) => self.core.ended(conn),
            Ok(read) => self.core.received(conn, &mut self.input[..read]),
            // The receive reports an error again.
            Err(_) => {}
        }
    }

    #[inline]
    pub(super) fn received(&mut self, place: u32, result: Received, more: bool) {
        let Some(conn) = self.sockets.at(place) else { return };
        let Some(slot) = self.sockets.get_mut(conn) else { return };
        let driver = &mut slot.driver;
        if !more {
            driver.receiving = Receiving::No;
        }
        if let Received::Bytes(buffer) = &result {
            if mem::replace(&mut driver.received_in, self.turn) != self.turn {
                driver.received = 0;
            }
            driver.received += buffer.len();
            if driver.received > READ {
                driver.singly = SINGLY;
            }
        }
        self.hear_first();
        match result {
            Received::Bytes(mut buffer) => {
                self.core.received(conn, self.ring.bytes(&mut buffer));
                self.ring.give_back(buffer);
            }
            Received::End => self.core.ended(conn),
            Received::Starved => {
                if let Some(slot) = self.sockets.get_mut(conn) {
                    slot.driver.receiving = Receiving::Starved;
                    self.starved.push_back(conn);
                }
            }
            Received::Cancelled => {}
            Received::Failed(_) => self.core.failed(conn),
        }
        self.change(conn);
        self.relieve();
    }

    /// Starts the receive if input is wanted. Cancels it if none is, or if it is armed and has to be single.
    #[inline]
    pub(super) fn receive(&mut self, conn: Conn) -> io::Result<()> {
        let is_held = self.is_held();
        let Some(slot) = self.sockets.get_mut(conn) else { return Ok(()) };
        let place = conn.index() as u32;
        let wants = self.core.wants_read(conn);
        if wants && is_held && !mem::replace(&mut slot.driver.held, true) {
            self.held.push(conn);
        }
        let state = &mut slot.driver;
        let many = state.singly == 0;
        let is_unsuited = state.receiving == Receiving::Many && !many;
        match (state.receiving, wants && !is_held) {
            (Receiving::No, true) => {
                state.fresh = false;
                state.singly = state.singly.saturating_sub(1);
                state.receiving = if many { Receiving::Many } else { Receiving::Once };
                self.ring.receive(&slot.fd, place, many)
            }
            (armed, wanted) if armed.is_armed() && (!wanted || is_unsuited) => {
                state.receiving = Receiving::Ending;
                self.ring.cancel_receive(place)
            }
            _ => Ok(()),
        }
    }

    /// Restarts the receives that found no free buffer. All buffers have been returned by now.
    pub(super) fn feed(&mut self) -> io::Result<()> {
        for _ in 0..self.starved.len().min(FEED) {
            let Some(conn) = self.starved.pop_front() else { break };
            if let Some(slot) = self.sockets.get_mut(conn)
                && slot.driver.receiving == Receiving::Starved
            {
                slot.driver.receiving = Receiving::No;
                self.receive(conn)?;
            }
        }
        Ok(())
    }
}
