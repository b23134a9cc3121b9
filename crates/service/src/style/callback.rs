//! Callback style: the connection is a state machine, and whoever waits calls it.
//! For select, poll, epoll, cluster, percore and io_uring.

use crate::{Flow, Halt, Limits, Service, answer};
use std::time::Instant;

/// A connection in the callback style. The caller owns the socket and writes all of `out` before
/// it delivers more input: a client that does not read stops being read. After `Close` it writes
/// what is left in `out` and ends the connection.
pub trait Session: 'static {
    /// Bytes came. Replies are appended to `out`.
    fn on_bytes(&mut self, now: Instant, bytes: &[u8], out: &mut Vec<u8>) -> Flow;

    /// All of `out` was written. Appends what else is due from input that is held; nothing
    /// appended means that more input is wanted.
    fn on_writable(&mut self, now: Instant, out: &mut Vec<u8>) -> Flow;

    /// The client ended its sending direction. `Close` as soon as nothing more will be appended.
    fn on_end(&mut self, now: Instant, out: &mut Vec<u8>) -> Flow;

    /// When [`Session::on_tick`] wants to be called. It may move at every call; the caller asks
    /// again when the time last given has come, not after each call.
    fn due(&self) -> Instant;

    /// The time given by [`Session::due`] has come. `Close` ends the connection at once.
    fn on_tick(&mut self, now: Instant) -> Flow;

    /// After `Close`: the client has said that it sends no more, and nothing of what it sent is
    /// left. The connection need not be read on for the last reply to arrive.
    fn has_parted(&self) -> bool {
        false
    }
}

/// When a connection was last heard of, and since when it is inside a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    limits: Limits,
    heard: Instant,
    began: Option<Instant>,
}

impl Clock {
    pub(crate) fn new(limits: Limits, now: Instant) -> Self {
        Clock { limits, heard: now, began: None }
    }

    /// The connection took or sent bytes.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// After input was worked on: was a request `answered`, is part of another one left?
    pub(crate) fn request(&mut self, now: Instant, answered: bool, partial: bool) {
        if answered || !partial {
            self.began = None;
        }
        if partial {
            self.began.get_or_insert(now);
        }
    }

    pub(crate) fn due(&self) -> Instant {
        self.limits.due(self.heard, self.began)
    }

    pub(crate) fn on_tick(&self, now: Instant) -> Flow {
        if now >= self.due() { Flow::Close } else { Flow::Continue }
    }
}

/// Space in bytes from which on it is given back where little of it is used: so a connection that
/// waits for the rest of a request holds little more than the request.
const SPACIOUS: usize = 16 * 1024;

/// A [`Service`] in the callback style.
pub struct Connection<S: Service> {
    service: S,
    codec: S::Codec,
    clock: Clock,
    /// Input not yet answered: part of a request, or what came after the reply was full. Nothing
    /// once the service has ended the connection: what follows is not interpreted.
    held: Vec<u8>,
    /// Whole requests may be among what is held.
    full: bool,
    /// No more input will come.
    ended: bool,
    /// The service ended the connection by the client's wish.
    parted: bool,
}

impl<S: Service> Connection<S> {
    /// A fresh connection.
    pub fn new(service: S, limits: Limits, now: Instant) -> Self {
        let clock = Clock::new(limits, now);
        let codec = S::Codec::default();
        let (held, full, ended, parted) = (Vec::new(), false, false, false);
        Connection { service, codec, clock, held, full, ended, parted }
    }

    fn answer_held(&mut self, now: Instant, out: &mut Vec<u8>) -> Flow {
        let mut held = std::mem::take(&mut self.held);
        let (consumed, halt) = answer(&mut self.service, &mut self.codec, &held, out);
        if consumed < held.len() && halt != Halt::Closing {
            held.drain(..consumed);
            if held.capacity() > SPACIOUS && held.len() < held.capacity() / 4 {
                held.shrink_to_fit();
            }
            self.held = held;
        }
        self.after(now, consumed, halt)
    }

    fn after(&mut self, now: Instant, consumed: usize, halt: Halt) -> Flow {
        self.full = halt == Halt::Full;
        self.clock.request(now, consumed > 0, !self.held.is_empty());
        self.parted = halt == Halt::Parting;
        let done = halt == Halt::Closing || self.parted || (self.ended && !self.full);
        if done { Flow::Close } else { Flow::Continue }
    }
}

impl<S: Service> Session for Connection<S> {
    #[inline]
    fn on_bytes(&mut self, now: Instant, bytes: &[u8], out: &mut Vec<u8>) -> Flow {
        self.clock.heard(now);
        if !self.held.is_empty() {
            self.held.extend_from_slice(bytes);
            return self.answer_held(now, out);
        }
        let (consumed, halt) = answer(&mut self.service, &mut self.codec, bytes, out);
        if halt != Halt::Closing {
            self.held.extend_from_slice(&bytes[consumed..]);
        }
        self.after(now, consumed, halt)
    }

    fn on_writable(&mut self, now: Instant, out: &mut Vec<u8>) -> Flow {
        self.clock.heard(now);
        if self.full { self.answer_held(now, out) } else { Flow::Continue }
    }

    fn on_end(&mut self, now: Instant, out: &mut Vec<u8>) -> Flow {
        self.ended = true;
        if self.full { self.answer_held(now, out) } else { Flow::Close }
    }

    fn due(&self) -> Instant {
        self.clock.due()
    }

    fn on_tick(&mut self, now: Instant) -> Flow {
        self.clock.on_tick(now)
    }

    fn has_parted(&self) -> bool {
        self.parted
    }
}
