//! Members that come and go beside those that stay, where servers send unasked: see `Plan::passing`.
//!
//! A member that leaves is owed nothing that is sent from then on, and waits until it has what was sent
//! before. So nothing that it is owed goes unchecked, and what is still on its way to it when it goes is what
//! the server was sending meanwhile.

use super::{driver::Driver, state::Worker};
use crate::{connection::Connection, shared::Phase, socket};
use regatta_script::Dialect;
use std::cmp::Reverse;

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// The load begins: the first members come.
    pub(super) fn begin_to_pass(&mut self) {
        if self.passing.begin() {
            self.waiting.extend(self.passing.slots().map(|slot| Reverse((self.now, slot))));
        }
    }

    /// A turn of the loop is over: members leave whose time it is.
    #[inline]
    pub(super) fn pass(&mut self) {
        if !self.passing.is_none() {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        if !self.comes_and_goes() {
            return;
        }
        while let Some(slot) = self.passing.next_due(self.now) {
            self.dialect.leave(&mut self.connections[slot as usize].talk);
        }
        while let Some(slot) = self.next_to_go() {
            self.go(slot);
        }
    }

    fn next_to_go(&mut self) -> Option<u32> {
        let (dialect, connections) = (self.dialect, &self.connections);
        self.passing.next_to_go(|slot| dialect.may_go(&connections[slot as usize].talk))
    }

    /// Whether members come and go in this phase.
    fn comes_and_goes(&self) -> bool {
        matches!(self.phase, Phase::WarmingUp | Phase::Measuring)
    }

    /// A member goes that has all that it is owed.
    fn go(&mut self, slot: u32) {
        let Connection { socket, talk, aside, waits_to_write, .. } =
            &mut self.connections[slot as usize];
        if self.passing.resets()
            && let Some(socket) = socket
        {
            // Where the kernel refuses, it ends as any other.
            let _ = socket::reset_on_close(socket);
            return self.has_left(slot);
        }
        self.dialect.say_goodbye(talk, aside);
        let waits = *waits_to_write;
        self.passing.closes(slot, self.now);
        if !waits {
            self.write(slot);
        }
    }

    /// A member has left: another one comes.
    pub(super) fn has_left(&mut self, slot: u32) {
        self.count.passed += 1;
        self.close(slot);
        if self.comes_and_goes() {
            self.waiting.push(Reverse((self.now, slot)));
        }
    }
}
