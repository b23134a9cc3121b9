//! A client's pending replies, in the order of its requests.

use crate::reply::merging::Merging;
use std::collections::VecDeque;

/// Memory for stashed replies that a client keeps while none is stashed, in bytes.
const KEPT: usize = 4096;

/// A client's pending replies, in the order of its requests.
///
/// The reply to the oldest request is written at once, without a copy. Later replies are stashed
/// until all earlier ones have arrived.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    slots: VecDeque<Slot>,
    /// The number of the first slot.
    first: u32,
    /// Replies that arrived before it was their turn.
    stash: Vec<u8>,
    /// Bytes in the stash that are not yet written.
    stashed: usize,
    /// Bytes held by the parts of unfinished merges.
    merging: usize,
    /// Errors of the proxy, and merged ones, that nobody has counted yet.
    errors: u64,
    /// Replies in the slow log that wait for earlier ones.
    slow: Vec<SlowReply>,
}

/// Maximum number of replies in the slow log whose place in the output is noted. It is not noted of others.
const MOST_SLOW: usize = 64;

/// A reply to a request in the slow log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlowReply {
    /// The number of its slot.
    pub(crate) slot: u32,
    /// The number of the entry in the log.
    pub(crate) id: u64,
    /// When its first bytes arrived: a number of [`Clock`](crate::observe::clock::Clock).
    pub(crate) begun_us: u32,
}

#[derive(Debug)]
enum Slot {
    /// The reply has not arrived.
    Waiting,
    /// The reply is in the stash.
    Stashed { at: u32, length: u32 },
    /// The reply is merged from several.
    Merging(Box<Merging>),
}

impl Ring {
    /// The number of pending replies.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The number of reply bytes held.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.stashed + self.merging
    }

    /// Returns how many replies of [`Ring::answer`] and [`Ring::part`] were errors since the last call.
    pub(crate) fn take_errors(&mut self) -> u64 {
        std::mem::take(&mut self.errors)
    }

    /// Reserves a slot for the reply to the next request. Returns its number.
    #[inline]
    pub(crate) fn wait(&mut self) -> u32 {
        self.slots.push_back(Slot::Waiting);
        self.last()
    }

    /// Reserves a slot for a merged reply. Returns its number.
    pub(crate) fn merge(&mut self, merging: Box<Merging>) -> u32 {
        self.slots.push_back(Slot::Merging(merging));
        self.last()
    }

    fn last(&self) -> u32 {
        self.first.wrapping_add(self.slots.len() as u32 - 1)
    }

    /// Adds a reply that is already complete.
    pub(crate) fn answer(&mut self, reply: &[u8], out: &mut Vec<u8>) {
        self.errors += u64::from(reply.first() == Some(&b'-'));
        if self.slots.is_empty() {
            out.extend_from_slice(reply);
        } else {
            let slot = self.stash(reply);
            self.slots.push_back(slot);
        }
    }

    /// Returns whether this reply is the next to be written.
    #[inline]
    pub(crate) fn is_first(&self, number: u32) -> bool {
        number == self.first && !self.slots.is_empty()
    }

    /// Returns whether this reply has not arrived, or only parts of it.
    pub(crate) fn is_pending(&self, number: u32) -> bool {
        let slot = self.place(number).map(|place| &self.slots[place]);
        matches!(slot, Some(Slot::Waiting | Slot::Merging(_)))
    }

    /// Returns whether all parts of this merged reply have arrived, and it waits for a confirmation.
    pub(crate) fn awaits_confirmation(&self, number: u32) -> bool {
        let slot = self.place(number).map(|place| &self.slots[place]);
        matches!(slot, Some(Slot::Merging(merging)) if merging.awaits_confirmation())
    }

    /// Returns whether no later reply is pending.
    pub(crate) fn is_last(&self, number: u32) -> bool {
        number == self.last()
    }

    /// Completes a slot with its whole reply, or with the remainder of a reply whose start was
    /// already written. Appends to `out` the replies that can now be written.
    #[inline]
    pub(crate) fn complete(&mut self, number: u32, reply: &[u8], out: &mut Vec<u8>) {
        if self.is_first(number) {
            out.extend_from_slice(reply);
            self.slots.pop_front();
            self.first = self.first.wrapping_add(1);
            if !self.slots.is_empty() {
                self.flush(out);
            }
        } else if let Some(place) = self.place(number) {
            self.slots[place] = self.stash(reply);
        }
    }

    /// Adds a part of a merged reply, or the error that replaces it. Appends to `out` the replies
    /// that can now be written.
    pub(crate) fn part(&mut self, number: u32, out: &mut Vec<u8>, part: impl FnOnce(&mut Merging)) {
        let Some(place) = self.place(number) else { return };
        let Slot::Merging(merging) = &mut self.slots[place] else { return };
        let before = merging.held();
        part(merging);
        self.merging = self.merging - before + merging.held();
        if !merging.is_done() {
            return;
        }
        self.merging -= merging.held();
        let mut reply = Vec::new();
        merging.write(&mut reply);
        self.errors += u64::from(reply.first() == Some(&b'-'));
        self.complete(number, &reply, out);
    }

    /// Notes a reply in the slow log if it is not written yet. Returns whether it is written.
    pub(crate) fn note_slow(&mut self, reply: SlowReply) -> bool {
        let is_written = self.place(reply.slot).is_none();
        if !is_written && self.slow.len() < MOST_SLOW {
            self.slow.push(reply);
        }
        is_written
    }

    /// Whether replies in the slow log wait for earlier ones.
    #[inline]
    pub(crate) fn has_slow(&self) -> bool {
        !self.slow.is_empty()
    }

    /// Calls this for each reply in the slow log that was written since it was noted.
    pub(crate) fn written_slow(&mut self, mut each: impl FnMut(SlowReply)) {
        let (first, count) = (self.first, self.slots.len());
        self.slow.retain(|reply| {
            let waits = (reply.slot.wrapping_sub(first) as usize) < count;
            if !waits {
                each(*reply);
            }
            waits
        });
    }

    fn place(&self, number: u32) -> Option<usize> {
        let place = number.wrapping_sub(self.first) as usize;
        (place < self.slots.len()).then_some(place)
    }

    fn stash(&mut self, reply: &[u8]) -> Slot {
        if self.stash.len() > KEPT && self.stashed < self.stash.len() / 2 {
            self.compact();
        }
        // The stash of a client is bounded far below 4 GiB.
        let (at, length) = (self.stash.len() as u32, reply.len() as u32);
        self.stash.extend_from_slice(reply);
        self.stashed += reply.len();
        Slot::Stashed { at, length }
    }

    /// Removes the gaps from the stash. Each byte is moved once on average.
    fn compact(&mut self) {
        let mut stash = Vec::with_capacity(self.stashed * 2);
        for slot in &mut self.slots {
            if let Slot::Stashed { at, length } = slot {
                let start = *at as usize;
                *at = stash.len() as u32;
                stash.extend_from_slice(&self.stash[start..start + *length as usize]);
            }
        }
        self.stash = stash;
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        while let Some(Slot::Stashed { at, length }) = self.slots.front() {
            let (start, length) = (*at as usize, *length as usize);
            out.extend_from_slice(&self.stash[start..start + length]);
            self.stashed -= length;
            self.slots.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        if self.stashed == 0 {
            self.stash.clear();
            self.stash.shrink_to(KEPT);
        }
        if self.slots.is_empty() {
            self.slots.shrink_to(KEPT / size_of::<Slot>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_oldest_pending_reply_is_written_at_once() {
        let (mut ring, mut out) = (Ring::default(), Vec::new());
        let (one, two, three) = (ring.wait(), ring.wait(), ring.wait());
        ring.answer(b"four", &mut out);
        ring.complete(two, b"two", &mut out);
        assert_eq!((out.len(), ring.held()), (0, 7));
        ring.complete(one, b"one", &mut out);
        assert_eq!(out, b"onetwo");
        ring.complete(three, b"three", &mut out);
        assert_eq!(out, b"onetwothreefour");
        assert!(ring.is_empty() && ring.held() == 0);
        ring.answer(b"five", &mut out);
        assert!(out.ends_with(b"five"));
    }

    #[test]
    fn a_slow_reply_is_written_after_those_before_it() {
        let (mut ring, mut out) = (Ring::default(), Vec::new());
        let (one, two, three) = (ring.wait(), ring.wait(), ring.wait());
        let slow = |slot| SlowReply { slot, id: u64::from(slot), begun_us: 5 };
        ring.complete(two, b"two", &mut out);
        assert!(!ring.note_slow(slow(two)) && ring.has_slow());
        ring.written_slow(|reply| panic!("{reply:?} waits"));
        ring.complete(one, b"one", &mut out);
        assert!(ring.note_slow(slow(one)), "it is written already");
        let mut written = Vec::new();
        ring.written_slow(|reply| written.push(reply));
        assert_eq!((written, ring.has_slow()), (vec![slow(two)], false));
        for _ in 0..2 * MOST_SLOW {
            ring.note_slow(slow(three));
        }
        assert_eq!(ring.slow.len(), MOST_SLOW);
    }

    #[test]
    fn memory_is_released_after_a_burst() {
        let (mut ring, mut out) = (Ring::default(), Vec::new());
        let numbers: Vec<u32> = (0..10_000).map(|_| ring.wait()).collect();
        for number in numbers.iter().rev() {
            ring.complete(*number, &[b'x'; 100], &mut out);
        }
        assert_eq!(out.len(), 1_000_000);
        assert!(ring.stash.capacity() <= KEPT && ring.slots.capacity() * size_of::<Slot>() <= KEPT);
    }

    #[test]
    fn the_stash_does_not_keep_replies_already_written() {
        let (mut ring, mut out) = (Ring::default(), Vec::new());
        // The queue is never empty, and every second reply comes too early.
        let mut first = ring.wait();
        for _ in 0..10_000 {
            let (early, next) = (ring.wait(), ring.wait());
            ring.complete(early, &[b'x'; 1000], &mut out);
            ring.complete(first, b"y", &mut out);
            first = next;
            assert!(ring.stash.len() < 10_000, "{} bytes", ring.stash.len());
        }
    }

    proptest! {
        #[test]
        fn replies_go_out_in_the_order_of_the_requests(
            // A reply is never empty: RESP has at least a type and a line end.
            sizes in proptest::collection::vec(1usize..3000, 1..40),
            order in proptest::collection::vec(any::<u32>(), 40),
            start in any::<u32>(),
        ) {
            let mut ring = Ring { first: start, ..Ring::default() };
            let replies: Vec<Vec<u8>> =
                sizes.iter().enumerate().map(|(i, size)| vec![i as u8; *size]).collect();
            let (mut out, mut open) = (Vec::new(), Vec::new());
            for (i, reply) in replies.iter().enumerate() {
                match order[i] % 4 {
                    0 => ring.answer(reply, &mut out),
                    _ => open.push((ring.wait(), i)),
                }
                if order[i] % 3 == 0 && !open.is_empty() {
                    let (number, i) = open.swap_remove(order[i] as usize % open.len());
                    ring.complete(number, &replies[i], &mut out);
                }
            }
            while !open.is_empty() {
                let (number, i) = open.swap_remove(order[open.len()] as usize % open.len());
                ring.complete(number, &replies[i], &mut out);
            }
            prop_assert_eq!(out, replies.concat());
            prop_assert!(ring.is_empty() && ring.held() == 0);
        }
    }
}
