//! The lifecycle of one connection as a pure state machine: its states, when it is read and
//! written, and when it times out.
//!
//! ```text
//!             engine closes it          our direction ended
//! Connecting → Open ──────────→ Closing ──────────────→ Lingering ──────→ Closed
//!                                  │ input has ended,       client ended,
//!                                  │ or `Flow::ClosedByClient`        2 s or 1 MiB
//!                                  ├──────────────→ Closed
//!                                  └─ while draining → Delivering ──────→ Closed
//!                                                     all acknowledged
//! ```
//! Closing first waits until all output is written. A reset, an abort and the end of a drain's grace
//! period lead to Closed from every state, and timeouts from every state except Delivering.

mod deadline;
mod socket;

pub use socket::SocketProbe;

use crate::{Conn, Flow, Limits, OutputState, Progress, Side};
use std::time::Instant;

/// Bytes of pending output at which a connection is no longer read: backpressure on a client that
/// does not read its replies.
pub(crate) const OUTPUT_FULL: usize = 64 * 1024;

/// What an engine wants for a connection: input, events and timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnInterest {
    /// Input is read. Some may still arrive after this has become false.
    pub reads: bool,
    /// The peer waits for the engine, so its silence does not count as idle.
    pub waits: bool,
    /// [`Engine::room`](crate::Engine::room) is called once all output is written.
    pub wants_drained: bool,
    /// When the request that is still incomplete started, for the request timeout.
    pub inside: Option<Instant>,
    /// When [`Engine::alarm`](crate::Engine::alarm) is called.
    pub alarm: Option<Instant>,
    /// From when on a peer that is not read counts as gone once it has closed its sending side,
    /// even if earlier input is unread. The check takes up to [`Limits::LIVENESS_INTERVAL`].
    pub gone_at_end: Option<Instant>,
    /// When the connection ends if it is closing, or its alarm is deferred, because the peer does not read.
    pub cut_at: Option<Instant>,
}

impl Default for ConnInterest {
    /// Input is read; no other event is wanted.
    fn default() -> Self {
        ConnInterest {
            reads: true,
            waits: false,
            wants_drained: false,
            inside: None,
            alarm: None,
            gone_at_end: None,
            cut_at: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A connection to another server is being opened.
    Connecting {
        until: Instant,
    },
    Open,
    /// No more input is interpreted. The connection closes once its output is written.
    Closing {
        part: bool,
    },
    /// Our sending side is shut down. Input is discarded until the client closes its side, so that
    /// a reset does not overtake the last reply.
    Lingering {
        until: Instant,
        bytes: usize,
    },
    /// The server drains, and closes this connection once the peer has acknowledged everything.
    /// Closing earlier could provoke a reset that overtakes the last reply.
    Delivering,
    /// The driver closes it next.
    Closed(End),
}

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The engine closed it, and then the peer closed its side.
    Close,
    /// The engine closed it with [`Flow::ClosedByClient`].
    ClosedByClient,
    /// The peer had closed its side, and all output was written.
    HalfClosed,
    /// The engine closed it during a drain, and the peer had acknowledged all output.
    Drained,
    /// Like [`End::Drained`], but the server had to wait for the acknowledgement.
    Delivered,
    /// Reading, writing or connecting failed, e.g. after a reset or a refused connection.
    Failed,
    /// The engine aborted it ([`crate::Effects::abort`], [`ConnInterest::cut_at`]), or closed it before
    /// it was open.
    Aborted,
    /// The grace period of a drain was over.
    Cut,
    /// Timeout: the peer neither sent nor acknowledged anything.
    Idle,
    /// Timeout: a request took too long to arrive.
    Request,
    /// Timeout: the peer acknowledged none of the output.
    Stalled,
    /// The peer is gone; a check found this while it was not read, or waited for the engine.
    Gone,
    /// Timeout: the peer did not close its side after the server had.
    Linger,
    /// The peer sent [`Limits::LINGER_BYTES`] or more after the server had closed its side.
    Flooded,
    /// Timeout: the other server did not accept the connection.
    Connect,
}

/// What the next timer of a connection is for. The simulator counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    Connect,
    Linger,
    /// Checks whether everything is acknowledged.
    Delivery,
    /// Checks whether the peer has acknowledged some of the output, while it is stuck.
    Progress,
    /// Checks whether a peer that is not read, or waits for the engine, is still connected.
    HeldUp,
    /// Checks how much a silent peer has acknowledged.
    Owed,
    Idle,
    Request,
    /// An alarm of the engine, or [`ConnInterest::cut_at`].
    Alarm,
}

/// What the driver does with a link next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Write { last: bool },
    ShutdownWrite,
    Close,
    Wait,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) generation: u32,
    pub(crate) side: Side,
    state: State,
    /// Input has ended: the peer closed its side, or a drain shut it down.
    ended: bool,
    /// Output. The kernel has accepted the first `written` bytes.
    out: Vec<u8>,
    written: usize,
    /// Bytes of earlier output that the driver has taken but not reported as written.
    in_flight: usize,
    /// The length of the buffer with that output; 0 once all of it is written.
    pub(crate) taken: usize,
    status: ConnInterest,
    /// It is among the connections that the engine has changed.
    pub(crate) in_dirty: bool,
    /// The deadline may have become earlier.
    sooner: bool,
    /// Since when the kernel accepts only part of the output, or the driver has taken it. The
    /// peer's progress is watched meanwhile.
    stuck: Option<Instant>,
    /// A timer for `stuck` is set. It stays set after the output is written, for the next time.
    armed: bool,
    /// Output was written since the peer was last known to have acknowledged everything.
    owes: bool,
    /// When the peer last sent something, or last waited for the engine.
    heard: Instant,
    /// When input was last read.
    read: Instant,
    looked: Instant,
    progress: Progress,
    /// Total bytes written.
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
            taken: 0,
            status: ConnInterest::default(),
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

    // ---- events ----

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

    /// Bytes arrived. Returns whether they go to the engine.
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

    /// Input has ended. Returns whether the engine must be notified.
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

    /// Ends the connection: nothing more is read or written. The first reason is kept.
    pub(crate) fn end(&mut self, end: End) {
        if !matches!(self.state, State::Closed(_)) {
            self.set(State::Closed(end));
        }
    }

    /// The kernel has accepted this many bytes. Returns whether all output is written.
    #[inline]
    pub(crate) fn wrote(&mut self, now: Instant, bytes: usize) -> bool {
        debug_assert!(bytes <= self.out.len() - self.written);
        self.sooner |= self.status.alarm.is_some();
        self.written += bytes;
        if !self.owes {
            self.progress.restart(now); // until now there was nothing to acknowledge
        }
        self.account(bytes);
        if self.written == self.out.len() {
            self.written = 0;
            self.out.clear();
            self.stuck = None;
            return true;
        }
        // The remaining bytes are moved only when over half is written: each byte moves once on
        // average.
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

    /// The last output could not be written at once. The peer may have sent something since,
    /// whatever it announced. Closing with unread input would send a reset, so the connection
    /// lingers.
    fn no_longer_at_once(&mut self) {
        if let State::Closing { part } = &mut self.state {
            *part = false;
        }
    }

    /// Starts to watch the peer's progress.
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
        // The driver may have written the first part of it before.
        self.out.drain(..std::mem::take(&mut self.written));
        // The driver holds no memory for what is written.
        self.out.shrink_to(self.out.len().max(OUTPUT_FULL));
        (self.in_flight, self.taken) = (self.out.len(), self.out.len());
        self.no_longer_at_once();
        self.watch(now);
        std::mem::take(&mut self.out)
    }

    /// The kernel has accepted this many of the taken bytes. Returns whether nothing is pending.
    pub(crate) fn completed(&mut self, bytes: usize) -> bool {
        self.in_flight -= bytes;
        self.sooner |= self.status.alarm.is_some();
        self.account(bytes);
        if self.in_flight == 0 {
            self.taken = 0;
            self.stuck = None;
        }
        self.pending() == 0
    }

    /// Our sending side was shut down (`done`), or could not be.
    pub(crate) fn shutdown_completed(&mut self, now: Instant, done: bool) {
        match self.state {
            _ if !done => self.end(End::Failed),
            State::Closing { part: false } => {
                let (until, bytes) = (now + Limits::LINGER, Limits::LINGER_BYTES);
                self.set(State::Lingering { until, bytes });
            }
            _ => self.end(End::ClosedByClient),
        }
    }

    // ---- calls from the engine ----

    #[inline]
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Takes the output buffer, if it is empty.
    pub(crate) fn take_unused(&mut self) -> Option<Vec<u8>> {
        (self.out.is_empty() && self.out.capacity() > 0).then(|| std::mem::take(&mut self.out))
    }

    pub(crate) fn output(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// Bytes that the kernel has not accepted.
    #[inline]
    pub(crate) fn pending(&self) -> usize {
        self.out.len() - self.written + self.in_flight
    }

    pub(crate) fn output_state(&self) -> OutputState {
        OutputState { accepted: self.sent, pending: self.pending(), taken: self.taken }
    }

    /// Whether the kernel has accepted everything so far, and enough output is pending to write
    /// again.
    pub(crate) fn is_crowded(&self) -> bool {
        self.stuck.is_none() && self.pending() >= OUTPUT_FULL
    }

    /// When input was last read; before that, when the connection was created.
    pub(crate) fn last_read(&self) -> Instant {
        self.read
    }

    /// Closes the connection once its output is written.
    ///
    /// [`Flow::ClosedByClient`] takes effect only if all input has just been read and all output can be
    /// written at once. Otherwise unread input may have arrived, and closing would send a reset.
    pub(crate) fn close(&mut self, now: Instant, flow: Flow) {
        match (self.state, flow) {
            (_, Flow::Continue) => {}
            (State::Open, _) => {
                let at_once = self.stuck.is_none() && self.in_flight == 0 && self.read == now;
                self.set(State::Closing { part: flow == Flow::ClosedByClient && at_once });
            }
            (State::Connecting { .. }, _) => self.end(End::Aborted),
            _ => {}
        }
    }

    #[inline]
    pub(crate) fn set_status(&mut self, now: Instant, status: ConnInterest) {
        let before = std::mem::replace(&mut self.status, status);
        self.sooner |= before != status;
        if before.waits && !status.waits {
            self.heard = now; // its silence counts from the reply
        }
    }

    pub(crate) fn wants_drained(&self) -> bool {
        self.status.wants_drained && self.is_open()
    }

    /// Whether the engine has more to write and nothing is pending.
    #[inline]
    pub(crate) fn wants_more(&self) -> bool {
        self.wants_drained() && self.pending() == 0
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

    // ---- work for the driver ----

    /// Whether input should be read.
    #[inline]
    pub(crate) fn wants_read(&self) -> bool {
        match self.state {
            State::Open => self.status.reads && !self.ended && self.pending() < OUTPUT_FULL,
            State::Lingering { .. } => true,
            _ => false,
        }
    }

    /// Whether it waits only for input.
    #[inline]
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_open() && self.pending() == 0 && self.wants_read()
    }

    /// Returns what to do next.
    #[inline]
    pub(crate) fn step(&mut self, draining: bool, conn: Conn, socket: &impl SocketProbe) -> Step {
        let waiting = self.out.len() > self.written;
        match self.state {
            State::Open if waiting && self.in_flight == 0 => Step::Write { last: false },
            State::Open | State::Connecting { .. } => Step::Wait,
            State::Closing { .. } if self.in_flight > 0 => Step::Wait,
            // During a drain, the FIN waits for the acknowledgement of this output.
            State::Closing { .. } if waiting => Step::Write { last: !draining },
            // During a drain, input is shut down already. A client that still sends after both
            // directions are shut down gets a reset.
            State::Closing { .. } if draining && socket.unacknowledged(conn) > 0 => {
                self.set(State::Delivering);
                Step::Wait
            }
            State::Closing { .. } if draining || self.ended => {
                self.end(if draining { End::Drained } else { End::HalfClosed });
                Step::Close
            }
            State::Closing { .. } => Step::ShutdownWrite,
            State::Lingering { .. } | State::Delivering => Step::Wait,
            State::Closed(_) => Step::Close,
        }
    }
}

#[cfg(test)]
mod tests;
