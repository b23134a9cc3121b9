//! Which connection sends next, where requests do not belong to connections: each in turn, the one
//! that has been free longest first.

use crate::clock::Nanos;
use std::collections::VecDeque;

/// Slots with a place in their pipeline, in turn, each at most once.
pub(super) struct Turns {
    free: VecDeque<u32>,
    /// Since when a slot stands in `free`; none if it does not.
    since: Vec<Option<Nanos>>,
}

impl Turns {
    /// None of `slots` slots is free yet.
    pub fn new(slots: usize) -> Self {
        Turns { free: VecDeque::with_capacity(slots), since: vec![None; slots] }
    }

    /// The slot has a place in its pipeline, since this moment unless it stands in line already.
    #[inline]
    pub fn freed(&mut self, slot: u32, at: Nanos) {
        let since = &mut self.since[slot as usize];
        if since.is_none() {
            *since = Some(at);
            self.free.push_back(slot);
        }
    }

    /// Takes the next slot, and since when it has been free.
    #[inline]
    pub fn next(&mut self) -> Option<(u32, Nanos)> {
        let slot = self.free.pop_front()?;
        let since = self.since[slot as usize].take()?;
        Some((slot, since))
    }

    /// Whether no slot is free.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.free.is_empty()
    }

    /// The slot's connection is gone.
    pub fn gone(&mut self, slot: u32) {
        if self.since.get_mut(slot as usize).and_then(Option::take).is_some() {
            self.free.retain(|free| *free != slot);
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
    fn a_slot_without_a_connection_leaves_the_line() {
        let mut turns = Turns::new(3);
        (0..3).for_each(|slot| turns.freed(slot, 10));
        turns.gone(1);
        turns.freed(1, 20);
        assert_eq!(
            [0; 4].map(|_| turns.next()),
            [Some((0, 10)), Some((2, 10)), Some((1, 20)), None]
        );
        turns.gone(7);
    }
}
