//! The open streams: a table from identifiers to states.

use crate::{rule::Rule, window::Window};

/// The state of an open stream; `E` is what only one of the ends knows about it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot<E> {
    /// The identifier; 0 if the slot is free.
    pub id: u32,
    pub send_window: Window,
    pub receive_window: Window,
    /// Whether the received message must not have content.
    pub is_bare: bool,
    /// Its Content-Length.
    pub declared: Option<u64>,
    /// Bytes of content received.
    pub received: u64,
    pub exchange: E,
}

impl<E> Slot<E> {
    /// Counts content of this length, in bytes; `ends`: the message is complete then.
    #[inline]
    pub fn receive(&mut self, content: u32, ends: bool) -> Result<(), Rule> {
        self.received += u64::from(content);
        let is_too_long = self.declared.is_some_and(|length| self.received > length);
        match self.is_bare {
            true if content > 0 => Err(Rule::ContentForbidden),
            false if is_too_long || ends && !self.has_declared_length() => Err(Rule::ContentLength),
            _ => Ok(()),
        }
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
pub(crate) struct Streams<E> {
    slots: Vec<Slot<E>>,
    used: u32,
}

impl<E: Copy + Default> Streams<E> {
    /// Creates a table for this many streams. It grows for more.
    pub fn new(max: u32) -> Self {
        Streams { slots: vec![Slot::default(); (2 * max as usize).next_power_of_two()], used: 0 }
    }

    pub fn len(&self) -> u32 {
        self.used
    }

    pub fn iter(&self) -> impl Iterator<Item = &Slot<E>> {
        self.slots.iter().filter(|slot| slot.id != 0)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot<E>> {
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
    pub fn get(&self, id: u32) -> Option<&Slot<E>> {
        let at = self.find(id);
        Some(&self.slots[at]).filter(|slot| slot.id != 0)
    }

    #[inline]
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Slot<E>> {
        let at = self.find(id);
        Some(&mut self.slots[at]).filter(|slot| slot.id != 0)
    }

    /// Adds a stream.
    #[inline]
    pub fn insert(&mut self, slot: Slot<E>) {
        if 2 * (self.used as usize + 1) > self.slots.len() {
            self.grow();
        }
        let at = self.find(slot.id);
        self.slots[at] = slot;
        self.used += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let before = std::mem::take(&mut self.slots);
        self.slots = vec![Slot::default(); 2 * before.len()];
        for slot in before.into_iter().filter(|slot| slot.id != 0) {
            let at = self.find(slot.id);
            self.slots[at] = slot;
        }
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
        self.slots[hole] = Slot::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use std::collections::BTreeMap;

    proptest! {
        /// It grows. Identifiers increase, and streams end in any order, so that old ones collide with new ones.
        #[test]
        fn it_is_a_map(
            max in 1_u32..20,
            most in 1_u32..20,
            steps in vec((any::<bool>(), any::<usize>()), 0..400)) {
            let (mut streams, mut model) = (Streams::new(most), BTreeMap::new());
            let mut next = 1;
            for (opens, which) in steps {
                if opens && model.len() < max as usize {
                    streams.insert(Slot { id: next, exchange: next * 7, ..Slot::default() });
                    model.insert(next, next * 7);
                    next += 2;
                } else if let Some((&id, _)) = model.iter().nth(which % model.len().max(1)) {
                    streams.remove(id);
                    streams.remove(id);
                    model.remove(&id);
                }
                prop_assert_eq!(streams.len() as usize, model.len());
                for id in (1..next).step_by(2) {
                    let place = streams.get(id).map(|slot| slot.exchange);
                    prop_assert_eq!(place, model.get(&id).copied());
                    prop_assert_eq!(streams.get_mut(id).is_some(), place.is_some());
                }
                prop_assert_eq!(streams.iter().count(), model.len());
                prop_assert_eq!(streams.iter_mut().count(), model.len());
            }
        }
    }
}
