//! The open streams: a table from identifiers to states.

use super::event::Stream;
use crate::{rule::Rule, window::Window};

/// The state of an open stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The identifier; 0 if the slot is free.
    pub id: u32,
    pub place: u32,
    /// Bytes of the request's content that are not sent yet.
    pub unsent: u64,
    pub send_window: Window,
    pub receive_window: Window,
    pub phase: Phase,
    /// Whether the response must not have content.
    pub is_bare: bool,
    /// Number of interim responses.
    pub interim: u8,
    /// Content-Length of the response.
    pub declared: Option<u64>,
    /// Bytes of content received.
    pub received: u64,
}

/// How much of the response has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No final head.
    Head,
    /// The head.
    Content,
}

impl Slot {
    /// The stream as the caller knows it.
    #[inline]
    pub fn stream(&self) -> Stream {
        Stream { id: self.id, place: self.place }
    }

    /// Admits a DATA frame with a payload of this length.
    #[inline]
    pub fn admit(&mut self, length: u32) -> Result<(), Rule> {
        if !self.receive_window.take(length) {
            return Err(Rule::StreamWindowExceeded);
        }
        if self.phase == Phase::Head { Err(Rule::DataBeforeHead) } else { Ok(()) }
    }

    /// Whether the content has the declared length.
    #[inline]
    pub fn has_declared_length(&self) -> bool {
        self.is_bare || self.declared.is_none_or(|length| length == self.received)
    }
}

/// The open streams, in an open-addressing table with linear probing. It has at least twice as many slots
/// as streams, and consecutive identifiers have consecutive slots, so a look-up nearly always needs one
/// comparison.
#[derive(Debug)]
pub(super) struct Streams {
    slots: Vec<Slot>,
    used: u32,
}

const FREE: Slot = Slot {
    id: 0,
    place: 0,
    unsent: 0,
    send_window: Window::ZERO,
    receive_window: Window::ZERO,
    phase: Phase::Head,
    is_bare: false,
    interim: 0,
    declared: None,
    received: 0,
};

impl Streams {
    /// Creates a table for this many streams.
    pub fn new(max: u32) -> Self {
        Streams { slots: vec![FREE; (2 * max as usize).next_power_of_two()], used: 0 }
    }

    pub fn len(&self) -> u32 {
        self.used
    }

    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.id != 0)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.slots.iter_mut().filter(|slot| slot.id != 0)
    }

    /// Where the search for an identifier starts. Those of clients are odd.
    #[inline]
    fn home(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// The slot of an identifier, which is not 0, or the free one where it belongs.
    #[inline]
    fn find(&self, id: u32) -> usize {
        let mut at = self.home(id);
        while self.slots[at].id != id && self.slots[at].id != 0 {
            at = self.after(at);
        }
        at
    }

    #[inline]
    pub fn get(&self, id: u32) -> Option<&Slot> {
        let at = self.find(id);
        Some(&self.slots[at]).filter(|slot| slot.id != 0)
    }

    #[inline]
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Slot> {
        let at = self.find(id);
        Some(&mut self.slots[at]).filter(|slot| slot.id != 0)
    }

    /// Adds a stream. There must be fewer than the maximum.
    #[inline]
    pub fn insert(&mut self, slot: Slot) {
        let at = self.find(slot.id);
        self.slots[at] = slot;
        self.used += 1;
    }

    /// Removes a stream, and moves those behind it that were displaced.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        let mut hole = self.find(id);
        if self.slots[hole].id == 0 {
            return;
        }
        self.used -= 1;
        let mask = self.slots.len() - 1;
        let mut at = self.after(hole);
        while self.slots[at].id != 0 {
            let home = self.home(self.slots[at].id);
            // It may move to the hole unless its home is behind the hole.
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.slots[hole] = FREE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use std::collections::BTreeMap;

    proptest! {
        /// Identifiers increase, and streams end in any order, so that old ones collide with new ones.
        #[test]
        fn it_is_a_map(max in 1_u32..20, steps in vec((any::<bool>(), any::<usize>()), 0..400)) {
            let (mut streams, mut model) = (Streams::new(max), BTreeMap::new());
            let mut next = 1;
            for (opens, which) in steps {
                if opens && model.len() < max as usize {
                    streams.insert(Slot { id: next, place: next * 7, ..FREE });
                    model.insert(next, next * 7);
                    next += 2;
                } else if let Some((&id, _)) = model.iter().nth(which % model.len().max(1)) {
                    streams.remove(id);
                    streams.remove(id);
                    model.remove(&id);
                }
                prop_assert_eq!(streams.len() as usize, model.len());
                for id in (1..next).step_by(2) {
                    let place = streams.get(id).map(|slot| slot.place);
                    prop_assert_eq!(place, model.get(&id).copied());
                    prop_assert_eq!(streams.get_mut(id).is_some(), place.is_some());
                }
                prop_assert_eq!(streams.iter().count(), model.len());
                prop_assert_eq!(streams.iter_mut().count(), model.len());
            }
        }
    }
}
