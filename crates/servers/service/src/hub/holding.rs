//! What a member holds, counted towards the memory of the hub.

use regatta_engine::{Charge, Memory};
use std::sync::Arc;

/// What a member holds below this does not count, in bytes.
pub(super) const COUNTED: usize = 16 * 1024;
/// Output that a call may append without being refused for it, in bytes: most members read at once.
const FRESH: usize = 64 * 1024;
/// Bytes of pending output from which on messages wait for it to be written.
pub(super) const FULL: usize = 64 * 1024;
/// The reason of a Close frame when there is no memory for a member.
pub(super) const NO_MEMORY: &str = "the hub has no memory for this now";

/// What a member holds, if that is much.
#[derive(Debug)]
pub(super) struct Holding {
    charge: Charge,
    /// The output for which it is charged.
    unwritten: usize,
    /// A buffer of earlier output that is with the driver, in bytes.
    taken: usize,
}

impl Holding {
    /// Nothing yet.
    pub(super) fn new(memory: Arc<Memory>) -> Holding {
        Holding { charge: Charge::new(memory), unwritten: 0, taken: 0 }
    }

    /// A buffer of this many bytes of output is with the driver, and not in `output`.
    pub(super) fn set_taken(&mut self, bytes: usize) {
        self.taken = bytes;
    }

    /// All pending output, if `output` is what is not with the driver, in bytes.
    pub(super) fn pending(&self, output: usize) -> usize {
        output + self.taken
    }

    /// The output that counts, in bytes. What was written of a buffer still uses its memory until all of
    /// it is written; if the driver has taken one, `output` is another.
    pub(super) fn counted(&self, output: usize) -> usize {
        if self.taken > 0 { self.pending(output) } else { output.max(self.unwritten) }
    }

    /// Replaces what is counted. Returns false if there is no room for it. `own`: all but the output, in
    /// bytes. `output`: the output that is not with the driver. Before this call, `unread` bytes
    /// [counted](Holding::counted).
    pub(super) fn has_room(&mut self, own: usize, output: usize, unread: usize) -> bool {
        let output = self.counted(output);
        self.unwritten = if output < COUNTED { 0 } else { output };
        let all = own + output;
        let counted = if all < COUNTED { 0 } else { all };
        let has_room = counted == self.charge.bytes() || self.charge.set(counted);
        has_room || all - output.saturating_sub(unread).min(FRESH) < COUNTED
    }

    /// Whether there is room for this much output, in bytes. If so, it is counted.
    pub(super) fn fits(&mut self, own: usize, output: usize) -> bool {
        let before = self.unwritten;
        let fits = self.has_room(own, output, self.counted(output));
        if !fits {
            self.unwritten = before;
        }
        fits
    }

    /// All output is written, if none of these bytes is left, and none is with the driver.
    pub(super) fn drained(&mut self, output: usize) {
        if self.pending(output) == 0 {
            self.unwritten = 0;
        }
    }

    /// Whether output is counted that may be written by now.
    pub(super) fn counts_output(&self) -> bool {
        self.unwritten > 0
    }

    /// Whether anything is counted.
    pub(super) fn is_counted(&self) -> bool {
        self.charge.bytes() > 0
    }

    /// Counts nothing more.
    pub(super) fn free(&mut self) {
        self.charge.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn holding(limit: usize) -> (Holding, Arc<Memory>) {
        let memory = Arc::new(Memory::new(limit));
        (Holding::new(Arc::clone(&memory)), memory)
    }

    #[test]
    fn output_counts_until_all_is_written() {
        let (mut one, memory) = holding(1000 * KIB);
        assert!(one.has_room(COUNTED - 1, 0, 0) && !one.is_counted());
        assert!(one.has_room(KIB, 40 * KIB, 0));
        one.drained(KIB);
        assert!(one.has_room(0, KIB, 0), "most of it is written");
        assert_eq!((one.counted(KIB), memory.held()), (40 * KIB, 40 * KIB));
        one.drained(0);
        assert!(one.has_room(KIB, KIB, 0) && memory.held() == 0 && !one.counts_output());
    }

    #[test]
    fn output_with_the_driver_counts_beside_what_follows() {
        let (mut one, memory) = holding(1000 * KIB);
        assert!(one.has_room(0, 40 * KIB, 0));
        one.set_taken(40 * KIB);
        one.drained(0);
        assert!(one.counts_output() && one.has_room(0, 30 * KIB, 40 * KIB));
        assert_eq!((one.pending(30 * KIB), memory.held()), (70 * KIB, 70 * KIB));
        // The first is written, and the second is taken.
        one.set_taken(30 * KIB);
        assert!(one.has_room(0, 0, 30 * KIB) && memory.held() == 30 * KIB);
        one.set_taken(0);
        one.drained(0);
        assert!(one.has_room(0, 0, 0) && memory.held() == 0 && !one.counts_output());
    }

    #[test]
    fn fresh_output_is_counted_and_not_refused_unless_it_is_long() {
        let (mut one, memory) = holding(100 * KIB);
        assert!(one.has_room(KIB, 64 * KIB, 0), "36 are free");
        assert_eq!(memory.held(), 65 * KIB);
        assert!(!one.has_room(KIB, 65 * KIB, 64 * KIB), "64 were there before");
        one.free();
        one.drained(0);
        assert!(!one.has_room(0, 80 * KIB, 0), "16 more than what is fresh");
        one.free();
        one.drained(0);
        assert!(one.has_room(0, 80 * KIB - 1, 0));
    }

    #[test]
    fn output_that_does_not_fit_is_not_counted_as_output() {
        let (mut one, _) = holding(100 * KIB);
        assert!(one.fits(0, 20 * KIB));
        assert!(!one.fits(0, 60 * KIB) && one.unwritten == 20 * KIB);
        assert!(one.has_room(0, 20 * KIB, 20 * KIB));
    }
}
