//! Requests in flight over a connection to a node of a cluster, kept so that they can be sent to another node.

use std::collections::VecDeque;

/// Maximum size of a request that is kept, in bytes. A longer one is not sent again.
pub(crate) const LONGEST: usize = 256 << 10;

/// Bytes kept for a connection beyond which the clients that use it are paused.
pub(crate) const MOST: usize = 1 << 20;

/// Memory that is kept when no request is in flight, in bytes.
const SPARE: usize = 64 << 10;

/// The requests in flight over a connection, in their order.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    bytes: Vec<u8>,
    /// How many of the bytes belong to requests that have been answered.
    taken: usize,
    entries: VecDeque<Entry>,
}

/// A request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The slot of its keys. `None`: it has none.
    pub(crate) slot: Option<u16>,
    /// How often it was sent before.
    pub(crate) hops: u8,
    /// Its error may be made by a program of the client, after it has written.
    pub(crate) runs_program: bool,
    /// Its size; 0 if it was not kept.
    length: u32,
}

impl Kept {
    /// Adds a request. `keeps`: also its bytes, if they are not too many.
    pub(crate) fn push(&mut self, request: &[u8], slot: Option<u16>, hops: u8, keeps: bool) {
        let keeps = keeps && request.len() <= LONGEST;
        let length = if keeps { request.len() as u32 } else { 0 };
        if keeps {
            self.bytes.extend_from_slice(request);
        }
        self.entries.push_back(Entry { slot, hops, runs_program: false, length });
    }

    /// Notes that the last request runs a program of the client.
    pub(crate) fn last_runs_program(&mut self) {
        if let Some(entry) = self.entries.back_mut() {
            entry.runs_program = true;
        }
    }

    /// Removes the first request, because its reply has arrived. Returns it with its bytes; none if they were not kept.
    pub(crate) fn pop(&mut self) -> Option<(Entry, &[u8])> {
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(SPARE);
            self.taken = 0;
        } else if self.taken > SPARE && self.taken > self.bytes.len() / 2 {
            // Each byte is moved once on average.
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        let entry = self.entries.pop_front()?;
        let start = self.taken;
        self.taken += entry.length as usize;
        Some((entry, &self.bytes[start..self.taken]))
    }

    /// The requests in flight.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The bytes of the requests in flight.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() - self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_in_their_order() {
        let mut kept = Kept::default();
        kept.push(b"one", Some(1), 0, true);
        kept.push(b"large", None, 0, false);
        kept.push(b"two", Some(2), 3, true);
        assert_eq!(kept.bytes(), 6);
        let (entry, bytes) = kept.pop().unwrap();
        assert_eq!((entry.slot, entry.hops, bytes), (Some(1), 0, &b"one"[..]));
        let (entry, bytes) = kept.pop().unwrap();
        assert_eq!((entry.slot, bytes), (None, &b""[..]));
        kept.push(&vec![0; LONGEST + 1], Some(9), 0, true);
        let (entry, bytes) = kept.pop().unwrap();
        assert_eq!((entry.slot, entry.hops, bytes), (Some(2), 3, &b"two"[..]));
        assert_eq!(kept.pop().unwrap().1, b"");
        assert!(kept.pop().is_none() && kept.bytes() == 0);
    }

    #[test]
    fn memory_is_bounded_by_what_is_in_flight() {
        let mut kept = Kept::default();
        kept.push(&[0; 1000], None, 0, true);
        for _ in 0..10_000 {
            kept.push(&[0; 1000], None, 0, true);
            kept.pop();
        }
        assert!(
            kept.bytes() == 1000 && kept.bytes.capacity() < 8 * SPARE,
            "{}",
            kept.bytes.capacity()
        );
    }
}
