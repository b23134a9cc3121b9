//! The life of one connection, as a pure state machine: open, closing, lingering, delivering, closed;
//! what is read and written meanwhile, and when it times out.
//!
//! ```text
//!             engine closes it,                   our direction ended
//!             or its input has ended
//! Connecting → Open ──────────→ Closing ──────────────→ Lingering ──────→ Closed
//!                                  │ output written         client ended,
//!                                  ├──────────────→ Closed  2 s or 1 MiB
//!                                  └─ while draining → Delivering ──────→ Closed
//!                                                     all acknowledged
//! ```
//! A reset, a timeout and the end of a drain's grace lead to Closed from every state.

mod deadline;

use crate::{Conn, Flow, Limits, Progress, Side};
use std::time::Instant;

/// What only the kernel knows of a connection. Asked rarely, never for each request.
pub trait Socket {
    /// Bytes that were written and that the peer has not acknowledged; 0 once it is gone.
    fn unacknowledged(&self, conn: Conn) -> usize;

    /// Whether a read would return something now.
    fn is_readable(&self, conn: Conn) -> bool;

    /// Whether the connection was reset, or both of its directions have ended.
    fn is_gone(&self, conn: Conn) -> bool;
}

/// Bytes of pending output from which on a connection is not read: a client that does not read stops
/// being read.
pub(crate) const OUTPUT_FULL: usize = 64 * 1024;

/// What an engine says of a connection, for its input and its timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Input is read. Some may still come after this has become false.
    pub reads: bool,
    /// The peer waits for the engine: its silence is no timeout.
    pub waits: bool,
    /// [`Engine::room`](crate::Engine::room) is called when all output is written.
    pub wants_room: bool,
    /// Since when the peer is inside a request, for the request timeout.
    pub inside: Option<Instant>,
    /// When [`Engine::alarm`](crate::Engine::alarm) is called.
    pub alarm: Option<Instant>,
}

impl Default for Status {
    /// Input is read; nothing is waited for.
    fn default() -> Self {
        Status { reads: true, waits: false, wants_room: false, inside: None, alarm: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Another server is being connected to.
    Connecting {
        until: Instant,
    },
    Open,
    /// No more input is interpreted. The connection ends once its output is written.
    Closing {
        part: bool,
    },
    /// Our direction has ended. What still comes is discarded until the client ends its own, so that
    /// a reset does not overtake the last reply.
    Lingering {
        until: Instant,
        bytes: usize,
    },
    /// It ends while the server drains, and is closed once the peer has acknowledged everything:
    /// ending a direction, or closing, could be answered with a reset that overtakes the last reply.
    Delivering,
    /// The driver closes it next.
    Closed(End),
}

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The engine closed it, and then the peer closed its side.
    Close,
    /// The engine closed it as [`Flow::Part`] says.
    Part,
    /// The peer had closed its side, and all output was written.
    HalfClosed,
    /// The engine closed it during a drain, and the peer had acknowledged all output.
    Drained,
    /// As [`End::Drained`], but the acknowledgement had to be waited for.
    Delivered,
    /// Reading, writing or connecting failed: a reset, or the server is not there.
    Failed,
    /// The engine aborted it ([`crate::Effects::abort`]).
    Aborted,
    /// The grace of a drain was over.
    Cut,
    /// Timeout: the peer sent nothing.
    Idle,
    /// Timeout: a request took too long to arrive.
    Request,
    /// Timeout: the peer took nothing of what it was sent.
    Stalled,
    /// The peer is gone, which was noticed while it was not read.
    Gone,
    /// Timeout: the peer did not close its side after the server had.
    Linger,
    /// The peer sent too much after the server had closed its side.
    Flooded,
    /// Timeout: the other server did not answer.
    Connect,
}

/// What a connection waits for when nothing happens. Counted by the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    Connect,
    Linger,
    /// A look at whether everything is acknowledged.
    Delivery,
    /// A look at whether a peer takes its output.
    Progress,
    /// A look at whether a peer that is not read is still there.
    HeldUp,
    /// A look at how much a silent peer has acknowledged.
    Owed,
    Idle,
    Request,
    Alarm,
}

/// What a link needs of its driver next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Write { last: bool },
    FinishWriting,
    Close,
    Wait,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) generation: u32,
    pub(crate) side: Side,
    state: State,
    /// The peer has ended its direction, or a drain has.
    ended: bool,
    /// Output, of which `written` bytes are with the kernel.
    out: Vec<u8>,
    written: usize,
    /// Bytes of earlier output that the driver has taken and not reported as sent.
    in_flight: usize,
    status: Status,
    /// It is among the connections that the engine has changed.
    pub(crate) in_dirty: bool,
    /// The deadline may be earlier than before.
    sooner: bool,
    /// Since when the kernel has taken only part of the output: its progress is watched.
    stuck: Option<Instant>,
    /// There is a timer for that. It stays when the output is written, for the next time.
    armed: bool,
    /// Written since the kernel last held nothing.
    owes: bool,
    /// The peer last sent something, or was last waiting for the engine.
    heard: Instant,
    /// Input was last read.
    read: Instant,
    looked: Instant,
    progress: Progress,
    /// Bytes written in all.
    sent: u64,
}

impl Link {
    pub(crate) fn new(generation: u32, side: Side, now: Instant) -> Self {
        let state = match side {
            Side::Client => State::Open,
            Side::Upstream => State::Connecting { until: now + Limits::CONNECT },
        };
        Link {
            generation,
            side,
            state,
            ended: false,
            out: Vec::new(),
            written: 0,
            in_flight: 0,
            status: Status::default(),
            in_dirty: false,
            sooner: true,
            stuck: None,
            armed: false,
            owes: false,
            heard: now,
            read: now,
            looked: now,
            progress: Progress::new(now),
            sent: 0,
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Why it closed, if it has.
    #[cfg(feature = "simulator")]
    pub(crate) fn why(&self) -> Option<End> {
        match self.state {
            State::Closed(end) => Some(end),
            _ => None,
        }
    }

    fn set(&mut self, state: State) {
        self.state = state;
        self.sooner = true;
    }

    // ---- what happened ----

    /// The connection to another server is open. Returns whether it was being opened.
    pub(crate) fn connected(&mut self, now: Instant) -> bool {
        let opens = matches!(self.state, State::Connecting { .. });
        if opens {
            (self.heard, self.looked) = (now, now);
            self.progress.restart(now);
            self.set(State::Open);
        }
        opens
    }

    /// So many bytes came. Returns whether they are the engine's.
    #[inline]
    pub(crate) fn received(&mut self, now: Instant, bytes: usize) -> bool {
        (self.heard, self.read) = (now, now);
        match &mut self.state {
            State::Open => true,
            State::Lingering { bytes: left, .. } => {
                *left = left.saturating_sub(bytes);
                if *left == 0 {
                    self.end(End::Flooded);
                }
                false
            }
            _ => false,
        }
    }

    /// The end of input came. Returns whether the engine is to hear of it.
    pub(crate) fn ended(&mut self) -> bool {
        if std::mem::replace(&mut self.ended, true) {
            return false;
        }
        self.sooner = true;
        match self.state {
            State::Open => true,
            State::Lingering { .. } => {
                self.end(End::Close);
                false
            }
            _ => false,
        }
    }

    /// The connection is gone, or must go: nothing more is read or written. The first reason counts.
    pub(crate) fn end(&mut self, end: End) {
        if !matches!(self.state, State::Closed(_)) {
            self.set(State::Closed(end));
        }
    }

    /// So many bytes of the output are with the kernel now. Returns whether that was all.
    #[inline]
    pub(crate) fn wrote(&mut self, now: Instant, bytes: usize) -> bool {
        debug_assert!(bytes <= self.out.len() - self.written);
        self.sooner |= self.status.alarm.is_some();
        self.written += bytes;
        if !self.owes {
            self.progress.restart(now); // until now there was nothing to take
        }
        self.account(bytes);
        if self.written == self.out.len() {
            self.written = 0;
            self.out.clear();
            self.stuck = None;
            return true;
        }
        // The remaining bytes are moved rarely: each byte once on average.
        if self.written > self.out.len() / 2 {
            self.out.drain(..self.written);
            self.written = 0;
        }
        self.no_longer_at_once();
        if self.stuck.is_none() {
            self.watch(now);
        }
        false
    }

    /// The last output could not be written at once. Whatever the peer announced, it may have sent
    /// something since, and a close with unread input would be a reset: the connection lingers.
    fn no_longer_at_once(&mut self) {
        if let State::Closing { part } = &mut self.state {
            *part = false;
        }
    }

    /// From now on the peer's progress is watched.
    fn watch(&mut self, now: Instant) {
        self.stuck = Some(now);
        self.progress.restart(now);
        self.sooner |= !self.armed;
    }

    #[inline]
    fn account(&mut self, bytes: usize) {
        self.sent += bytes as u64;
        self.sooner |= !self.owes;
        self.owes = true;
    }

    /// Hands the output to a driver whose writes complete later.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<u8> {
        debug_assert_eq!(self.in_flight, 0);
        // The driver may have written the beginning of it before.
        self.out.drain(..std::mem::take(&mut self.written));
        self.in_flight = self.out.len();
        self.no_longer_at_once();
        self.watch(now);
        std::mem::take(&mut self.out)
    }

    /// So many bytes of what was taken are with the kernel now. Returns whether nothing is pending.
    pub(crate) fn completed(&mut self, bytes: usize) -> bool {
        self.in_flight -= bytes;
        self.sooner |= self.status.alarm.is_some();
        self.account(bytes);
        if self.in_flight == 0 {
            self.stuck = None;
        }
        self.pending() == 0
    }

    /// Our direction was ended, or could not be.
    pub(crate) fn finished(&mut self, now: Instant, done: bool) {
        match self.state {
            _ if !done => self.end(End::Failed),
            State::Closing { part: false } => {
                let (until, bytes) = (now + Limits::LINGER, Limits::LINGER_BYTES);
                self.set(State::Lingering { until, bytes });
            }
            _ => self.end(End::Part),
        }
    }

    // ---- what the engine wants ----

    #[inline]
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Takes the memory for output, if nothing is in it.
    pub(crate) fn take_unused(&mut self) -> Option<Vec<u8>> {
        (self.out.is_empty() && self.out.capacity() > 0).then(|| std::mem::take(&mut self.out))
    }

    pub(crate) fn output(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// Bytes that the kernel has not taken.
    #[inline]
    pub(crate) fn pending(&self) -> usize {
        self.out.len() - self.written + self.in_flight
    }

    /// Whether the kernel has taken all that it was offered, and enough is pending to offer it more.
    pub(crate) fn is_crowded(&self) -> bool {
        self.stuck.is_none() && self.pending() >= OUTPUT_FULL
    }

    /// Whether the kernel does not take the output, and more than `limit` is pending.
    pub(crate) fn is_behind(&self, limit: usize) -> bool {
        self.stuck.is_some() && self.pending() > limit
    }

    /// Ends the connection once its output is written.
    ///
    /// [`Flow::Part`] is kept only where all of the input has just been read, and all output can be
    /// written at once: otherwise something unread may have come, and closing would be a reset.
    pub(crate) fn close(&mut self, now: Instant, flow: Flow) {
        match (self.state, flow) {
            (_, Flow::Continue) => {}
            (State::Open, _) => {
                let at_once = self.stuck.is_none() && self.in_flight == 0 && self.read == now;
                self.set(State::Closing { part: flow == Flow::Part && at_once });
            }
            (State::Connecting { .. }, _) => self.end(End::Aborted),
            _ => {}
        }
    }

    #[inline]
    pub(crate) fn set_status(&mut self, now: Instant, status: Status) {
        let before = std::mem::replace(&mut self.status, status);
        self.sooner |= before != status;
        if before.waits && !status.waits {
            self.heard = now; // its silence counts from the reply on
        }
    }

    pub(crate) fn wants_room(&self) -> bool {
        self.status.wants_room && self.is_open()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(crate) fn is_connecting(&self) -> bool {
        matches!(self.state, State::Connecting { .. })
    }

    /// Whether the engine may append output.
    #[inline]
    pub(crate) fn takes_output(&self) -> bool {
        self.is_open() || self.is_connecting()
    }

    // ---- what the driver does ----

    /// Whether input is to be read.
    #[inline]
    pub(crate) fn wants_read(&self) -> bool {
        match self.state {
            State::Open => self.status.reads && !self.ended && self.pending() < OUTPUT_FULL,
            State::Lingering { .. } => true,
            _ => false,
        }
    }

    /// Whether input is all that it waits for.
    #[inline]
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_open() && self.pending() == 0 && self.wants_read()
    }

    /// What is to be done next.
    #[inline]
    pub(crate) fn step(&mut self, draining: bool, conn: Conn, socket: &impl Socket) -> Step {
        let waiting = self.out.len() > self.written;
        match self.state {
            State::Open if waiting && self.in_flight == 0 => Step::Write { last: false },
            State::Open | State::Connecting { .. } => Step::Wait,
            State::Closing { .. } if self.in_flight > 0 => Step::Wait,
            State::Closing { .. } if waiting => Step::Write { last: true },
            // A client that still sends after we have ended both directions is answered with a reset.
            State::Closing { .. } if draining && socket.unacknowledged(conn) > 0 => {
                self.set(State::Delivering);
                Step::Wait
            }
            State::Closing { .. } if draining || self.ended => {
                self.end(if draining { End::Drained } else { End::HalfClosed });
                Step::Close
            }
            State::Closing { .. } => Step::FinishWriting,
            State::Lingering { .. } | State::Delivering => Step::Wait,
            State::Closed(_) => Step::Close,
        }
    }
}

#[cfg(test)]
mod tests;
