//! The queue of free connections, for drives in which any connection can send any request. The one that
//! has been free longest comes first.

use crate::clock::Nanos;
use std::collections::VecDeque;

/// Slots with a place in their pipeline, or whose connection the next request opens. Each slot is queued
/// at most once.
pub(super) struct Turns {
    /// May contain slots whose connection is gone, until they reach the front. The first one never is.
    queue: VecDeque<u32>,
    places: Vec<Place>,
}

/// Whether a slot is in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    No,
    /// It is, and has been free since this moment.
    Since(Nanos),
    /// It is, but its connection is gone. When a server dies, all connections are lost one after the
    /// other; removing each from the middle of the queue would take quadratic time.
    Gone,
}

impl Turns {
    /// For `slots` slots, none of which is free yet.
    pub fn new(slots: usize) -> Self {
        Turns { queue: VecDeque::with_capacity(slots), places: vec![Place::No; slots] }
    }

    /// The slot has a place in its pipeline, since this moment unless it is queued already.
    #[inline]
    pub fn freed(&mut self, slot: u32, at: Nanos) {
        let place = &mut self.places[slot as usize];
        match place {
            Place::Since(_) => return,
            Place::No => self.queue.push_back(slot),
            Place::Gone => {}
        }
        *place = Place::Since(at);
    }

    /// Takes the next slot. Returns it with the time since which it has been free.
    #[inline]
    pub fn next(&mut self) -> Option<(u32, Nanos)> {
        let slot = self.queue.pop_front()?;
        let place = std::mem::replace(&mut self.places[slot as usize], Place::No);
        self.skip_gone();
        let Place::Since(since) = place else { return None };
        Some((slot, since))
    }

    /// Whether no slot is free.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The slot's connection is gone.
    pub fn gone(&mut self, slot: u32) {
        if let Some(place @ Place::Since(_)) = self.places.get_mut(slot as usize) {
            *place = Place::Gone;
            self.skip_gone();
        }
    }

    #[inline]
    fn skip_gone(&mut self) {
        while let Some(&slot) = self.queue.front()
            && self.places[slot as usize] == Place::Gone
        {
            self.places[slot as usize] = Place::No;
            self.queue.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_take_turns_and_are_queued_once() {
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
    fn lost_slots_do_not_accumulate_in_the_queue() {
        let slots = 200_000;
        let mut turns = Turns::new(slots as usize);
        for _ in 0..3 {
            (0..slots).for_each(|slot| turns.freed(slot, 10));
            // The last one is lost first, so that all stay queued until the first one is lost.
            (0..slots).rev().for_each(|slot| turns.gone(slot));
            assert!(turns.is_empty() && turns.next().is_none());
        }
        (0..9).for_each(|at| {
            turns.freed(0, 10);
            turns.freed(1, at);
            turns.gone(1);
        });
        assert_eq!(turns.queue.len(), 2, "a slot is queued once, gone or not");
    }
}
