//! The first bytes of the requests in flight over a connection, and when they arrived, for the slow log.

/// Maximum number of bytes that are kept of a request.
pub(crate) const LONGEST: usize = 128;

/// Maximum number of bytes that are kept for a connection. Nothing is kept of a request beyond that.
const MOST: usize = 1 << 20;

/// Memory that is kept when no request is in flight before the next one, in bytes.
const KEPT: usize = 64 * 1024;

/// Bytes of the time that is kept before those of the request.
const TIME: usize = size_of::<u32>();

/// The first bytes of requests, in their order, each after the time of its arrival. Each entry of the connection's queue
/// has the length of its own.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    bytes: Vec<u8>,
    /// How many of the bytes belong to requests that have been answered.
    taken: usize,
}

impl Heads {
    /// Keeps the first bytes of a request, and when it arrived: a number of [`Clock`](super::clock::Clock). Returns how
    /// many bytes are kept.
    #[inline]
    pub(crate) fn push(&mut self, request: &[u8], arrived_us: u32) -> u8 {
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
            self.taken = 0;
        } else if self.taken > KEPT && self.taken > self.bytes.len() / 2 {
            // Each byte is moved once on average.
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        if self.bytes.len() - self.taken >= MOST {
            return 0;
        }
        let head = &request[..request.len().min(LONGEST)];
        self.bytes.extend_from_slice(&arrived_us.to_le_bytes());
        self.bytes.extend_from_slice(head);
        (TIME + head.len()) as u8
    }

    /// Returns what was kept of the first request, which is this many bytes, and forgets it: when it arrived, and its
    /// first bytes. Of a request of which nothing was kept, the time is unknown.
    #[inline]
    pub(crate) fn take(&mut self, length: u8) -> (Option<u32>, &[u8]) {
        let start = self.taken;
        self.taken += usize::from(length);
        match self.bytes[start..self.taken].split_first_chunk::<TIME>() {
            Some((time, head)) => (Some(u32::from_le_bytes(*time)), head),
            None => (None, b""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn what_is_kept_is_bounded_and_released() {
        let (mut heads, mut lengths) = (Heads::default(), VecDeque::new());
        for _ in 0..3 * MOST / LONGEST {
            lengths.push_back(heads.push(&[b'x'; 1000], 7));
        }
        assert!(heads.bytes.len() <= MOST + TIME + LONGEST);
        assert_eq!((lengths[0], *lengths.back().unwrap()), ((TIME + LONGEST) as u8, 0));
        for length in lengths.drain(..) {
            let (time, head) = heads.take(length);
            assert_eq!(time, (length > 0).then_some(7));
            assert_eq!(head, vec![b'x'; usize::from(length).saturating_sub(TIME)]);
        }
        assert_eq!(heads.push(b"GET", 8), 3 + TIME as u8);
        assert!(heads.bytes.capacity() <= KEPT, "{} bytes", heads.bytes.capacity());
    }

    proptest! {
        #[test]
        fn each_request_gets_its_own_bytes_back(
            steps in proptest::collection::vec((0usize..200, 0usize..3), 1..3000),
        ) {
            let (mut heads, mut pending) = (Heads::default(), VecDeque::new());
            for (number, (length, answered)) in steps.into_iter().enumerate() {
                let request = vec![number as u8; length];
                let time = number as u32 * 1_000_003;
                let kept = heads.push(&request, time);
                prop_assert_eq!(usize::from(kept), TIME + length.min(LONGEST));
                pending.push_back((kept, time, request[..length.min(LONGEST)].to_vec()));
                for _ in 0..answered {
                    if let Some((kept, time, expected)) = pending.pop_front() {
                        let found = heads.take(kept);
                        prop_assert_eq!(found, (Some(time), &expected[..]));
                    }
                }
            }
        }
    }
}
