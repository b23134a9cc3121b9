//! The deadlines of connections: a heap of lazy entries.
//!
//! A deadline moves with almost every request, and almost always to a later time. So its entry does
//! not move with it: when the entry's time comes, the connection's actual deadline is checked. An
//! entry belongs to an index in the table of connections, not to one connection. So a server whose
//! connections live for one request adds hardly any entries.

use std::{cmp::Reverse, collections::BinaryHeap, time::Instant};

/// The deadlines of a core.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
    /// The earliest entry of each place.
    earliest: Vec<Option<Instant>>,
}

impl Timers {
    /// Ensures that the place has an entry at `due` or earlier.
    #[inline]
    pub(crate) fn ensure(&mut self, place: usize, due: Instant) {
        if self.earliest.get(place).is_some_and(|e| e.is_some_and(|earliest| earliest <= due)) {
            return;
        }
        self.add(place, due);
    }

    fn add(&mut self, place: usize, due: Instant) {
        if self.earliest.len() <= place {
            self.earliest.resize(place + 1, None);
        }
        self.earliest[place] = Some(due);
        self.heap.push(Reverse((due, place as u32)));
    }

    /// The time of the earliest entry.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes and returns the next place that is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<usize> {
        while let Some(&Reverse((at, place))) = self.heap.peek()
            && at <= now
        {
            self.heap.pop();
            let place = place as usize;
            // Otherwise the entry is obsolete: an earlier one was added after it, and has been
            // taken already.
            if self.earliest[place] == Some(at) {
                self.earliest[place] = None;
                return Some(place);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_earliest_entry_of_a_place_counts_and_later_ones_are_not_added() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        assert_eq!(timers.next(), None);
        timers.ensure(3, at(20));
        timers.ensure(3, at(20));
        timers.ensure(3, at(30));
        assert_eq!(timers.heap.len(), 1);
        timers.ensure(3, at(10));
        timers.ensure(1, at(15));
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.pop(at(9)), None);
        assert_eq!(timers.pop(at(10)), Some(3));
        assert_eq!(timers.pop(at(10)), None);
        assert_eq!(timers.pop(at(40)), Some(1));
        assert_eq!(timers.pop(at(40)), None, "the entry at 20 was replaced by the one at 10");
        timers.ensure(3, at(50));
        assert_eq!(timers.pop(at(50)), Some(3));
        assert_eq!(timers.next(), None);
    }
}
