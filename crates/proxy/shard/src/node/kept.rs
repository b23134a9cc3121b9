//! What is kept of the requests in flight over a connection to a node, in their order: their first bytes for the slow log, or
//! in a cluster all bytes, so that they can be sent to another node.

use regatta_proto::resp::Value;

/// Maximum size of a request that is kept whole, in bytes. A longer one is not sent again.
pub(crate) const LONGEST: usize = 256 << 10;

/// Maximum number of bytes that are kept of other requests.
pub(crate) const HEAD: usize = 128;

/// Bytes kept for a connection beyond which nothing is kept of further requests; where they are kept whole, the clients that
/// use the connection are paused instead.
pub(crate) const MOST: usize = 1 << 20;

/// Memory that is kept when no request is in flight before the next one, in bytes.
const SPARE: usize = 64 << 10;

/// The size of an entry in bytes.
pub(crate) const ENTRY: usize = 12;

/// What is kept of the requests in flight over a connection, in their order. An entry and bytes of the request follow one
/// another in one buffer, so that there is only one copy for each request, and none is allocated in the steady state.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    bytes: Vec<u8>,
    /// How many of the bytes belong to requests that have been answered, and where the last of these begins.
    taken: usize,
    last: usize,
    /// Requests are kept whole.
    is_whole: bool,
}

/// A request in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// When it arrived: a number of [`Clock`](crate::observe::clock::Clock).
    pub(crate) arrived_us: u32,
    /// In a cluster: the slot of its keys. `None`: it has none.
    pub(crate) slot: Option<u16>,
    /// How often it was sent before.
    pub(crate) hops: u8,
}

/// The slot of a request without keys.
const NO_SLOT: u16 = u16::MAX;

impl Entry {
    /// `length`: how many bytes of the request follow, and whether these are all.
    #[inline]
    fn write(self, (length, is_all): (usize, bool)) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..4].copy_from_slice(&self.arrived_us.to_le_bytes());
        bytes[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        bytes[8..10].copy_from_slice(&self.slot.unwrap_or(NO_SLOT).to_le_bytes());
        bytes[10..].copy_from_slice(&[self.hops, u8::from(is_all)]);
        bytes
    }
}

/// What is kept of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    pub(crate) entry: Entry,
    /// Its bytes, or the first of them.
    pub(crate) bytes: &'a [u8],
    /// These are all.
    pub(crate) is_all: bool,
}

impl<'a> Request<'a> {
    /// Reads the request that begins here.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (entry, rest) = bytes.split_first_chunk::<ENTRY>()?;
        let [a, b, c, d, .., low, high, hops, is_all] = *entry;
        let slot = Some(u16::from_le_bytes([low, high])).filter(|slot| *slot != NO_SLOT);
        let entry = Entry { arrived_us: u32::from_le_bytes([a, b, c, d]), slot, hops };
        Some(Request { entry, bytes: rest.get(..length_at(bytes))?, is_all: is_all != 0 })
    }

    /// Its first bytes, for the slow log.
    pub(crate) fn head(self) -> &'a [u8] {
        &self.bytes[..self.bytes.len().min(HEAD)]
    }

    /// The name of its command. `None`: it is not among the bytes that are kept.
    pub(crate) fn name(self) -> Option<&'a [u8]> {
        let (Value::Elements(_, _, arguments), _) = Value::read(self.bytes)? else { return None };
        match Value::read(arguments)? {
            (Value::Bulk(name), _) => Some(name),
            _ => None,
        }
    }
}

/// The number of bytes that follow the entry that begins here; 0 if there is none.
#[inline]
fn length_at(bytes: &[u8]) -> usize {
    match bytes {
        [_, _, _, _, a, b, c, d, ..] => u32::from_le_bytes([*a, *b, *c, *d]) as usize,
        _ => 0,
    }
}

impl Kept {
    /// From now on, requests are kept whole, unless they are longer than [`LONGEST`].
    pub(crate) fn keep_whole(&mut self) {
        self.is_whole = true;
    }

    /// Keeps a request. Returns whether there was room.
    #[inline]
    pub(crate) fn push(&mut self, request: &[u8], entry: Entry) -> bool {
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(SPARE);
            (self.taken, self.last) = (0, 0);
        } else if self.taken > SPARE && self.taken > self.bytes.len() / 2 {
            // Each byte is moved once on average.
            self.bytes.drain(..self.taken);
            (self.taken, self.last) = (0, 0);
        }
        let longest = if self.is_whole { LONGEST } else { HEAD };
        let is_all = request.len() <= longest;
        let length = if is_all { request.len() } else { HEAD };
        if !self.is_whole && self.in_flight() >= MOST {
            return false;
        }
        self.bytes.reserve(ENTRY + length);
        self.bytes.extend_from_slice(&entry.write((length, is_all)));
        self.bytes.extend_from_slice(&request[..length]);
        true
    }

    /// Removes the first request, because its reply has arrived. It is [`Kept::last`] until the next one is kept.
    #[inline]
    pub(crate) fn pop(&mut self) {
        let rest = &self.bytes[self.taken..];
        self.last = self.taken;
        self.taken += rest.len().min(ENTRY + length_at(rest));
    }

    /// The request that was removed last.
    pub(crate) fn last(&self) -> Request<'_> {
        Request::read(&self.bytes[self.last..]).unwrap_or_default()
    }

    /// The requests in flight.
    pub(crate) fn requests(&self) -> impl Iterator<Item = Request<'_>> {
        let mut rest = &self.bytes[self.taken..];
        std::iter::from_fn(move || {
            let request = Request::read(rest)?;
            rest = &rest[ENTRY + request.bytes.len()..];
            Some(request)
        })
    }

    /// The bytes of requests that are kept whole, with their entries.
    #[inline]
    pub(crate) fn whole_bytes(&self) -> usize {
        if self.is_whole { self.in_flight() } else { 0 }
    }

    #[inline]
    fn in_flight(&self) -> usize {
        self.bytes.len() - self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn whole() -> Kept {
        let mut kept = Kept::default();
        kept.keep_whole();
        kept
    }

    #[test]
    fn requests_come_back_in_their_order() {
        let mut kept = whole();
        let entry = |slot, hops| Entry { slot, hops, arrived_us: 7 };
        assert!(kept.push(b"one", entry(Some(1), 0)));
        assert!(kept.push(b"two", entry(Some(0), 3)));
        assert!(kept.push(&vec![b'x'; LONGEST + 1], entry(Some(16_383), 0)));
        assert!(kept.push(b"", entry(None, 0)));
        let slots: Vec<_> = kept.requests().map(|request| request.entry.slot).collect();
        assert_eq!(slots, [Some(1), Some(0), Some(16_383), None]);
        kept.pop();
        assert_eq!(kept.last(), Request { entry: entry(Some(1), 0), bytes: b"one", is_all: true });
        kept.pop();
        assert_eq!(kept.last(), Request { entry: entry(Some(0), 3), bytes: b"two", is_all: true });
        kept.pop();
        let long = Request { entry: entry(Some(16_383), 0), bytes: &[b'x'; HEAD], is_all: false };
        assert_eq!((kept.last(), kept.whole_bytes()), (long, ENTRY));
        kept.pop();
        assert_eq!(kept.last(), Request { entry: entry(None, 0), bytes: b"", is_all: true });
        assert_eq!((kept.requests().count(), kept.whole_bytes()), (0, 0));
    }

    #[test]
    fn memory_is_bounded_by_what_is_in_flight() {
        let mut kept = whole();
        kept.push(&[0; 1000], Entry::default());
        for _ in 0..10_000 {
            kept.push(&[0; 1000], Entry::default());
            kept.pop();
        }
        assert!(
            kept.whole_bytes() == ENTRY + 1000 && kept.bytes.capacity() < 8 * SPARE,
            "{}",
            kept.bytes.capacity()
        );
    }

    #[test]
    fn of_requests_that_are_not_kept_whole_a_bounded_part_is_kept() {
        let mut kept = Kept::default();
        let count =
            (0..3 * MOST / HEAD).filter(|_| kept.push(&[b'x'; 1000], Entry::default())).count();
        assert!((MOST / (ENTRY + HEAD)..=MOST / HEAD).contains(&count), "{count}");
        assert_eq!(kept.whole_bytes(), 0);
        for _ in 0..count {
            kept.pop();
            assert_eq!((kept.last().bytes, kept.last().is_all), (&[b'x'; HEAD][..], false));
        }
        assert!(kept.push(b"GET", Entry::default()));
        assert!(kept.bytes.capacity() <= SPARE, "{} bytes", kept.bytes.capacity());
    }

    #[test]
    fn a_request_of_which_the_head_is_kept_has_its_name() {
        let request = [&b"*3\r\n$4\r\nEVAL\r\n$1000000\r\n"[..], &[b'x'; 1_000_000]].concat();
        let mut kept = whole();
        assert_eq!(kept.last().name(), None);
        kept.push(&request, Entry::default());
        kept.pop();
        assert_eq!((kept.last().name(), kept.last().is_all), (Some(&b"EVAL"[..]), false));
    }

    proptest! {
        #[test]
        fn each_request_gets_its_own_bytes_back(
            is_whole in any::<bool>(),
            steps in proptest::collection::vec((0usize..300, 0usize..3), 1..3000),
        ) {
            let (mut kept, mut pending) = (Kept::default(), VecDeque::new());
            kept.is_whole = is_whole;
            for (number, (length, answered)) in steps.into_iter().enumerate() {
                let request = vec![number as u8; length];
                let arrived_us = number as u32 * 1_000_003;
                let entry = Entry { arrived_us, ..Entry::default() };
                prop_assert!(kept.push(&request, entry), "there is room");
                pending.push_back((arrived_us, request));
                for _ in 0..answered {
                    if let Some((arrived_us, request)) = pending.pop_front() {
                        let is_all = is_whole || request.len() <= HEAD;
                        let bytes = if is_all { &request[..] } else { &request[..HEAD] };
                        let entry = Entry { arrived_us, ..Entry::default() };
                        kept.pop();
                        prop_assert_eq!(kept.last(), Request { entry, bytes, is_all });
                        prop_assert_eq!(kept.requests().count(), pending.len());
                    }
                }
            }
        }
    }
}
