//! Members that join and leave while others stay, on servers that push messages: see `Plan::passing`.
//!
//! A leaving member waits for all messages sent before it began to leave, so every message that it must
//! get is checked. Later messages are not required; any still in flight when it closes are such.

use super::{driver::Driver, state::Worker};
use crate::{
    running::shared::Phase,
    sockets::{connection::Connection, socket},
};
use regatta_script::Dialect;
use std::cmp::Reverse;

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// The load begins: connects the first members.
    pub(super) fn start_members(&mut self) {
        if self.passing.begin() {
            self.waiting.extend(self.passing.slots().map(|slot| Reverse((self.now, slot))));
        }
    }

    /// A turn of the loop is over: lets members leave whose stay is over.
    #[inline]
    pub(super) fn update_members(&mut self) {
        if !self.passing.is_none() {
            self.let_members_leave();
        }
    }

    fn let_members_leave(&mut self) {
        if !self.members_change() {
            return;
        }
        while let Some(slot) = self.passing.next_due(self.now) {
            self.dialect.leave(&mut self.connections[slot as usize].talk);
        }
        while let Some(slot) = self.next_to_go() {
            self.close_member(slot);
        }
    }

    fn next_to_go(&mut self) -> Option<u32> {
        let (dialect, connections) = (self.dialect, &self.connections);
        self.passing.next_to_go(|slot| dialect.may_go(&connections[slot as usize].talk))
    }

    /// Whether members join and leave in this phase.
    fn members_change(&self) -> bool {
        matches!(self.phase, Phase::WarmingUp | Phase::Measuring)
    }

    /// Closes the connection of a member that has received all required messages.
    fn close_member(&mut self, slot: u32) {
        let Connection { socket, talk, aside, waits_to_write, .. } =
            &mut self.connections[slot as usize];
        if self.passing.resets()
            && let Some(socket) = socket
        {
            // If the kernel refuses, the close is an ordinary one.
            let _ = socket::reset_on_close(socket);
            return self.member_left(slot);
        }
        self.dialect.say_goodbye(talk, aside);
        let waits = *waits_to_write;
        self.passing.closes(slot, self.now);
        if !waits {
            self.write(slot);
        }
    }

    /// Counts a member that has left, and schedules another one while members still join.
    pub(super) fn member_left(&mut self, slot: u32) {
        self.count.passed += 1;
        self.close(slot);
        if self.members_change() {
            self.waiting.push(Reverse((self.now, slot)));
        }
    }
}
