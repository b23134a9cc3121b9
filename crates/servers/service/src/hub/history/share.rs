//! The memory that all histories of a process have, and their counters.

use regatta_engine::{Charge, Counter, Memory};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// What the histories of all rooms share.
#[derive(Debug, Default)]
pub(in super::super) struct Share {
    memory: Arc<Memory>,
    bytes: AtomicUsize,
    messages: AtomicUsize,
    /// Members that got everything behind the position that they named.
    pub recoveries: Counter,
    /// Members that did not.
    pub failed_recoveries: Counter,
    /// Messages that members got although these were sent before they joined.
    pub recovered: Counter,
    /// Notices to members that they miss messages.
    pub gaps: Counter,
}

impl Share {
    pub(super) fn new(memory: Arc<Memory>) -> Share {
        Share { memory, ..Share::default() }
    }

    /// What all of them need, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// The number of messages in all of them.
    pub fn messages(&self) -> usize {
        self.messages.load(Relaxed)
    }

    /// How much one room may have now, in bytes: as much as is left of half of the memory, and of all of it. So a
    /// few rooms may have much, many have less each, and none needs to be searched for one that has too much
    /// ([`Charge::set`]). The other half is for members.
    fn free(&self) -> usize {
        let of_histories = (self.memory.limit() / 2).saturating_sub(self.bytes());
        of_histories.min(self.memory.limit().saturating_sub(self.memory.held()))
    }
}

/// What the history of one room has of the share. It is returned on drop.
#[derive(Debug)]
pub(super) struct Part {
    share: Arc<Share>,
    messages: usize,
    bytes: usize,
    /// What it needs beside the messages, which are charged themselves.
    charge: Charge,
}

impl Part {
    pub fn new(share: &Arc<Share>) -> Part {
        let charge = Charge::new(Arc::clone(&share.memory));
        Part { share: Arc::clone(share), messages: 0, bytes: 0, charge }
    }

    /// Replaces what it has. `own`: what of the bytes is not charged elsewhere.
    pub fn set(&mut self, messages: usize, bytes: usize, own: usize) {
        // Wrapping, because one of them may have become less.
        self.share.messages.fetch_add(messages.wrapping_sub(self.messages), Relaxed);
        self.share.bytes.fetch_add(bytes.wrapping_sub(self.bytes), Relaxed);
        (self.messages, self.bytes) = (messages, bytes);
        self.charge.set(own);
    }

    /// Whether it may have so many bytes, if it has what was [set](Part::set) last.
    pub fn fits(&self) -> bool {
        self.bytes <= self.share.free()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.set(0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_have_at_most_half_of_the_memory_and_leave_a_part_to_others() {
        let memory = Arc::new(Memory::new(1_000));
        let share = Arc::new(Share::new(Arc::clone(&memory)));
        let (mut one, mut other) = (Part::new(&share), Part::new(&share));
        one.set(1, 250, 10);
        assert!(one.fits() && memory.held() == 10);
        one.set(1, 251, 10);
        assert!(!one.fits(), "249 are left of the half");
        one.set(1, 100, 10);
        other.set(2, 200, 0);
        assert!(other.fits() && share.bytes() == 300 && share.messages() == 3);
        let mut members = Charge::new(Arc::clone(&memory));
        members.set(800);
        assert!(!other.fits() && one.fits(), "190 are left of all");
        drop((one, other));
        assert_eq!((share.bytes(), share.messages(), memory.held()), (0, 0, 800));
    }
}
