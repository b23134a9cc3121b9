//! Which connection sends next, where requests do not belong to connections: each in turn, the one
//! that has been free longest first.

use crate::clock::Nanos;
use std::collections::VecDeque;

/// Slots with a place in their pipeline, or whose connection the next request is to open, in turn,
/// each at most once.
pub(super) struct Turns {
    /// Also slots that are gone, until their turn comes; the first one never is.
    line: VecDeque<u32>,
    stands: Vec<Stand>,
}

/// Whether a slot stands in line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stand {
    No,
    /// It does, and has been free since this moment.
    Since(Nanos),
    /// Its connection is gone, its place in line is still there. All connections of a dead server
    /// go one after the other: to look for each in the line would take the square of their number.
    Gone,
}

impl Turns {
    /// None of `slots` slots is free yet.
    pub fn new(slots: usize) -> Self {
        Turns { line: VecDeque::with_capacity(slots), stands: vec![Stand::No; slots] }
    }

    /// The slot has a place in its pipeline, since this moment unless it stands in line already.
    #[inline]
    pub fn freed(&mut self, slot: u32, at: Nanos) {
        let stand = &mut self.stands[slot as usize];
        match stand {
            Stand::Since(_) => return,
            Stand::No => self.line.push_back(slot),
            Stand::Gone => {}
        }
        *stand = Stand::Since(at);
    }

    /// Takes the next slot, and since when it has been free.
    #[inline]
    pub fn next(&mut self) -> Option<(u32, Nanos)> {
        let slot = self.line.pop_front()?;
        let stand = std::mem::replace(&mut self.stands[slot as usize], Stand::No);
        self.skip_gone();
        let Stand::Since(since) = stand else { return None };
        Some((slot, since))
    }

    /// Whether no slot is free.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// The slot's connection is gone.
    pub fn gone(&mut self, slot: u32) {
        if let Some(stand @ Stand::Since(_)) = self.stands.get_mut(slot as usize) {
            *stand = Stand::Gone;
            self.skip_gone();
        }
    }

    #[inline]
    fn skip_gone(&mut self) {
        while let Some(&slot) = self.line.front()
            && self.stands[slot as usize] == Stand::Gone
        {
            self.stands[slot as usize] = Stand::No;
            self.line.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_take_turns_and_stand_in_line_once() {
        let mut turns = Turns::new(3);
        for (slot, at) in [(2, 10), (0, 20), (2, 30), (1, 40)] {
            turns.freed(slot, at);
        }
        let next = [0; 4].map(|_| turns.next());
        assert_eq!(next, [Some((2, 10)), Some((0, 20)), Some((1, 40)), None]);
        turns.freed(2, 50);
        assert_eq!(turns.next(), Some((2, 50)));
    }

    #[test]
    fn a_slot_without_a_connection_has_no_turn() {
        let mut turns = Turns::new(4);
        (0..4).for_each(|slot| turns.freed(slot, 10));
        turns.gone(1);
        turns.gone(2);
        turns.gone(7);
        // It is free again, and was not meanwhile.
        turns.freed(2, 20);
        let next = [0; 4].map(|_| turns.next());
        assert_eq!(next, [Some((0, 10)), Some((2, 20)), Some((3, 10)), None]);
        turns.freed(1, 30);
        assert_eq!(turns.next(), Some((1, 30)));
    }

    #[test]
    fn slots_that_are_gone_leave_nothing_behind() {
        let slots = 200_000;
        let mut turns = Turns::new(slots as usize);
        for _ in 0..3 {
            (0..slots).for_each(|slot| turns.freed(slot, 10));
            // The last one goes first, so that all of them wait for the first one's turn.
            (0..slots).rev().for_each(|slot| turns.gone(slot));
            assert!(turns.is_empty() && turns.next().is_none());
        }
        (0..9).for_each(|at| {
            turns.freed(0, 10);
            turns.freed(1, at);
            turns.gone(1);
        });
        assert_eq!(turns.line.len(), 2, "a slot stands in line once, gone or not");
    }
}
