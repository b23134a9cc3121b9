//! One client connection: its socket, its place in the script, and the send times of its outstanding
//! requests. The worker makes all decisions.

use crate::{
    clock::{MS, Nanos},
    sockets::tls::Session,
};
use regatta_script::Cursor;
use rustix::fd::OwnedFd;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No socket.
    Closed,
    /// Nothing was written yet; with TLS, the handshake is in progress.
    Connecting,
    /// Something was written: a part of its first request, or of the dialect's opening exchange. The
    /// first request is not answered.
    Unanswered,
    /// The server has answered its first request.
    Open,
}

/// The held-back byte of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// When the byte is due to be written.
    pub until: Nanos,
    /// Requests that were added since then. None of their bytes are written yet.
    pub behind: u32,
}

impl Held {
    /// Adds `k` requests behind the byte.
    pub fn asks(&mut self, k: u32) {
        self.behind += k;
    }
}

/// Pause before a lost connection is reopened; doubles with each further loss before a first reply.
pub(crate) const SHORTEST_PAUSE: Nanos = 10 * MS;
/// Maximum pause between attempts.
pub(crate) const LONGEST_PAUSE: Nanos = 1_000 * MS;

/// A connection slot; reused when its connection is closed.
pub(crate) struct Connection<T> {
    pub socket: Option<OwnedFd>,
    /// Present while a connection with TLS has a socket.
    pub tls: Option<Box<Session>>,
    pub state: State,
    /// A write was partial (or is not possible yet): the poller reports when there is room.
    pub waits_to_write: bool,
    pub cursor: Cursor,
    /// The dialect's state of this connection.
    pub talk: T,
    /// Its first request is an extra one: outside the schedule of an open loop, or the bound on requests
    /// in flight.
    pub extra: bool,
    /// Set while the last byte of a request is held back.
    pub held: Option<Held>,
    /// The dialect's opening exchange is in progress; the first request waits for it.
    pub opening: bool,
    /// Bytes to send before the first request or between two requests.
    pub aside: Vec<u8>,
    /// The server has closed its sending direction.
    pub ended: bool,
    /// Complete replies on this connection so far.
    pub replies: u64,
    /// Requests on this connection that the server did not process. They are the last ones.
    pub refused: u32,
    /// Pause before the next attempt to open.
    pub pause: Nanos,
    /// Send times of the outstanding requests.
    pub sent: Ring,
}

impl<T> Connection<T> {
    /// A slot without a connection, which will start at `cursor`. Its send times are stored in the
    /// thread's [`Times`], from `first` on.
    pub fn closed(cursor: Cursor, talk: T, first: usize) -> Self {
        Connection {
            socket: None,
            tls: None,
            state: State::Closed,
            waits_to_write: false,
            cursor,
            talk,
            extra: true,
            held: None,
            opening: false,
            aside: Vec::new(),
            ended: false,
            replies: 0,
            refused: 0,
            pause: SHORTEST_PAUSE,
            sent: Ring { first: first as u32, head: 0, tail: 0 },
        }
    }

    /// Whether its extra first request is written and not answered.
    #[inline]
    pub fn awaits_extra(&self) -> bool {
        self.state == State::Unanswered && self.extra
    }

    /// Whether the socket may be read. While connecting, only a TLS handshake is.
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

/// The send times of all outstanding requests of a thread: a ring of `pipeline` for each active
/// connection, and one place for each other one, in one allocation.
pub(crate) struct Times {
    at: Vec<Nanos>,
    pipeline: u32,
}

impl Times {
    /// With `places` places in total.
    pub fn new(places: usize, pipeline: usize) -> Self {
        Times { at: vec![0; places], pipeline: pipeline as u32 }
    }

    /// Records `k` requests sent at this moment. The caller keeps at most `pipeline` outstanding.
    #[inline]
    pub fn push(&mut self, ring: &mut Ring, k: u32, at: Nanos) {
        for _ in 0..k {
            self.at[(ring.first + ring.tail) as usize] = at;
            ring.tail = self.after(ring.tail);
        }
    }

    /// Takes those of the `k` oldest requests that have the send time of the oldest. Returns that time
    /// and their number.
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

    /// Exchanges the requests at two positions of a ring. Returns their places among all places of the
    /// thread.
    #[inline]
    pub fn exchange(&mut self, ring: &Ring, one: u32, other: u32) -> (usize, usize) {
        let (one, other) = ((ring.first + one) as usize, (ring.first + other) as usize);
        self.at.swap(one, other);
        (one, other)
    }

    /// The positions in a ring of the `k` oldest outstanding requests that were sent before a moment.
    pub fn sent_before(&self, ring: &Ring, k: u32, moment: Nanos) -> Vec<u32> {
        let places = self.places(ring, k);
        let old = places.filter(|place| self.at[*place] < moment);
        old.map(|place| place as u32 - ring.first).collect()
    }

    /// Whether any of the `k` oldest outstanding requests was sent before a moment.
    #[inline]
    pub fn any_before(&self, ring: &Ring, k: u32, moment: Nanos) -> bool {
        self.places(ring, k).any(|place| self.at[place] < moment)
    }

    /// The place of the next request, among all places of the thread.
    #[inline]
    pub fn next_place(&self, ring: &Ring) -> usize {
        (ring.first + ring.tail) as usize
    }

    /// The place of the oldest outstanding request, among all places of the thread.
    #[inline]
    pub fn oldest_place(&self, ring: &Ring) -> usize {
        (ring.first + ring.head) as usize
    }

    /// The places of the `k` oldest outstanding requests.
    pub fn places(&self, ring: &Ring, k: u32) -> impl Iterator<Item = usize> {
        let (first, pipeline) = (ring.first, self.pipeline);
        (ring.head..ring.head + k).map(move |i| (first + i % pipeline) as usize)
    }

    /// When the oldest outstanding request was sent.
    #[inline]
    pub fn oldest(&self, ring: &Ring) -> Nanos {
        self.at[(ring.first + ring.head) as usize]
    }

    /// Changes the send time of the oldest request, when it is written only now.
    pub fn set_oldest(&mut self, ring: &Ring, at: Nanos) {
        self.at[(ring.first + ring.head) as usize] = at;
    }

    #[inline]
    fn after(&self, i: u32) -> u32 {
        if i + 1 == self.pipeline { 0 } else { i + 1 }
    }
}

impl Ring {
    /// Removes all send times.
    pub fn clear(&mut self) {
        (self.head, self.tail) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_popped_in_order_and_in_runs_across_the_end_of_the_ring() {
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
