//! One client connection: its socket, its place in the script, and when its outstanding requests
//! were sent. Decides nothing; the worker does.

use crate::{
    clock::{MS, Nanos},
    held::Held,
    tls::Session,
};
use regatta_script::Cursor;
use rustix::fd::OwnedFd;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No socket.
    Closed,
    /// Nothing could be written yet; with TLS, the handshake is going on.
    Connecting,
    /// Its first request is written; with the reply it counts as open.
    Unanswered,
    /// The server has answered it.
    Open,
}

/// Pause after a first failure to open a connection; doubles with each further one.
pub(crate) const SHORTEST_PAUSE: Nanos = 10 * MS;
/// Longest pause between attempts.
pub(crate) const LONGEST_PAUSE: Nanos = 1_000 * MS;

/// A connection slot; reused when its connection was lost.
pub(crate) struct Connection<T> {
    pub socket: Option<OwnedFd>,
    /// With a socket, where the plan asks for TLS.
    pub tls: Option<Box<Session>>,
    pub state: State,
    /// A write was cut short (or is not possible yet): the poller tells when there is room.
    pub waits_to_write: bool,
    pub cursor: Cursor,
    /// What the dialect keeps of it.
    pub talk: T,
    /// Its first request is beside the schedule of an open loop, or the bound on what is in flight.
    pub beside: bool,
    /// The last byte of a request is held back.
    pub held: Option<Held>,
    /// The dialect opens it: its first request waits.
    pub opening: bool,
    /// To be sent beside requests, between two of them.
    pub aside: Vec<u8>,
    /// The server has ended its sending direction.
    pub ended: bool,
    /// Whole replies on this connection so far.
    pub replies: u64,
    /// How long to wait before the next attempt to open.
    pub pause: Nanos,
    /// Send times of the outstanding requests.
    pub sent: Ring,
}

impl<T> Connection<T> {
    /// A slot without a connection, which will begin at `cursor`. Its send times are kept in
    /// `times` of the thread, from `first` on.
    pub fn closed(cursor: Cursor, talk: T, first: usize) -> Self {
        Connection {
            socket: None,
            tls: None,
            state: State::Closed,
            waits_to_write: false,
            cursor,
            talk,
            beside: true,
            held: None,
            opening: false,
            aside: Vec::new(),
            ended: false,
            replies: 0,
            pause: SHORTEST_PAUSE,
            sent: Ring { first: first as u32, head: 0, tail: 0 },
        }
    }

    /// Whether what comes is to be read: while connecting, only a handshake is.
    #[inline]
    pub fn is_read(&self) -> bool {
        self.state != State::Connecting || self.tls.is_some()
    }
}

/// A connection's ring within the thread's [`Times`].
#[derive(Clone, Copy)]
pub(crate) struct Ring {
    first: u32,
    head: u32,
    tail: u32,
}

/// The send times of all outstanding requests of a thread: a ring of `pipeline` for each
/// connection, and one place for each idle one, in one allocation.
pub(crate) struct Times {
    at: Vec<Nanos>,
    pipeline: u32,
}

impl Times {
    /// So many places in all.
    pub fn new(places: usize, pipeline: usize) -> Self {
        Times { at: vec![0; places], pipeline: pipeline as u32 }
    }

    /// `k` requests are sent at this moment. The caller keeps no more than `pipeline` outstanding.
    #[inline]
    pub fn push(&mut self, ring: &mut Ring, k: u32, at: Nanos) {
        for _ in 0..k {
            self.at[(ring.first + ring.tail) as usize] = at;
            ring.tail = self.after(ring.tail);
        }
    }

    /// Takes the send time of the oldest of `k` requests, and of how many of them it is.
    #[inline]
    pub fn pop_run(&self, ring: &mut Ring, k: u32) -> (Nanos, u32) {
        let at = self.oldest(ring);
        let mut run = 0;
        while run < k && self.oldest(ring) == at {
            ring.head = self.after(ring.head);
            run += 1;
        }
        (at, run)
    }

    /// Where the next request will be, among all.
    #[inline]
    pub fn next_place(&self, ring: &Ring) -> usize {
        (ring.first + ring.tail) as usize
    }

    /// Where the oldest outstanding request is, among all.
    #[inline]
    pub fn oldest_place(&self, ring: &Ring) -> usize {
        (ring.first + ring.head) as usize
    }

    /// Where the `k` oldest outstanding requests are.
    pub fn places(&self, ring: &Ring, k: u32) -> impl Iterator<Item = usize> {
        let (first, pipeline) = (ring.first, self.pipeline);
        (ring.head..ring.head + k).map(move |i| (first + i % pipeline) as usize)
    }

    /// When the oldest outstanding request was sent.
    #[inline]
    pub fn oldest(&self, ring: &Ring) -> Nanos {
        self.at[(ring.first + ring.head) as usize]
    }

    /// The oldest request is written only now.
    pub fn set_oldest(&mut self, ring: &Ring, at: Nanos) {
        self.at[(ring.first + ring.head) as usize] = at;
    }

    #[inline]
    fn after(&self, i: u32) -> u32 {
        if i + 1 == self.pipeline { 0 } else { i + 1 }
    }
}

impl Ring {
    /// Forgets all.
    pub fn clear(&mut self) {
        (self.head, self.tail) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_in_order_and_in_runs_across_the_end_of_the_ring() {
        let mut times = Times::new(8, 4);
        let mut ring = Ring { first: 4, head: 0, tail: 0 };
        times.push(&mut ring, 3, 10);
        assert_eq!(times.pop_run(&mut ring, 2), (10, 2));
        times.push(&mut ring, 2, 20);
        assert_eq!(times.oldest(&ring), 10);
        assert_eq!(times.places(&ring, 3).collect::<Vec<_>>(), [6, 7, 4]);
        assert_eq!((times.oldest_place(&ring), times.next_place(&ring)), (6, 5));
        assert_eq!(times.pop_run(&mut ring, 3), (10, 1));
        assert_eq!(times.pop_run(&mut ring, 2), (20, 2));
        assert!(times.at[..4].iter().all(|&at| at == 0), "another connection's ring was written");
    }
}
