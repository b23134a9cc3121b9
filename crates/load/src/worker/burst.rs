//! A burst on one load thread: which slot belongs to which instance, what each connection has still
//! to send, and when each instance was last answered. A connection that is through is closed and
//! not opened again.

use super::Worker;
use crate::clock::Nanos;
use regatta_script::Dialect;

/// The instances of one load thread. Slots take turns among them, so that all begin at once.
pub(super) struct Burst {
    /// Requests that each slot has not sent yet.
    left: Vec<u32>,
    /// When the last reply of each instance came; 0 for none.
    last_replies: Vec<Nanos>,
}

impl Burst {
    /// `instances` instances with as many of the `slots` each; every slot sends `requests`.
    pub fn new(instances: usize, slots: usize, requests: u32) -> Self {
        Burst { left: vec![requests; slots], last_replies: vec![0; instances] }
    }

    /// The slot sends one request more.
    pub fn sends(&mut self, slot: u32) {
        self.left[slot as usize] -= 1;
    }

    /// So many requests were not written after all.
    pub fn takes_back(&mut self, slot: u32, requests: u64) {
        self.left[slot as usize] += requests as u32;
    }

    /// Whether the slot has still something to send.
    pub fn has_more(&self, slot: u32) -> bool {
        self.left[slot as usize] > 0
    }

    /// The slot's connection is lost, and is not opened again: returns what it had still to send.
    pub fn gives_up(&mut self, slot: u32) -> u32 {
        std::mem::take(&mut self.left[slot as usize])
    }

    /// The slot was answered.
    pub fn answered(&mut self, slot: u32, at: Nanos) {
        let instance = slot as usize % self.last_replies.len();
        self.last_replies[instance] = at;
    }

    /// When the last reply of each instance of this thread came.
    pub fn into_last_replies(self) -> Vec<Nanos> {
        self.last_replies
    }
}

impl<D: Dialect> Worker<'_, D> {
    /// A connection of a burst was answered: it asks for more, or is through.
    pub(super) fn next_in_burst(&mut self, slot: u32) {
        let Some(burst) = &mut self.burst else { return };
        let left = &mut burst.left[slot as usize];
        let owed = self.connections[slot as usize].cursor.owed();
        let k = self.depth.saturating_sub(owed).min(*left);
        *left -= k;
        match (k, owed) {
            // Some of the last stay open to the end, to see whether more comes than was asked for;
            // none of them while another may wait for its place on the server.
            (0, 0) if self.shared.opened() == self.plan.connections && self.keeps(slot) => {}
            (0, 0) => self.close(slot),
            (0, _) => {}
            _ => self.ask(slot, k),
        }
    }
}
