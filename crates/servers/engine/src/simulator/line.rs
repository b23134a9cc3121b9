//! A connection of the simulated server: its wire, its peer, and the state of its driver and
//! checks.

use super::{peer::Peer, wire::Wire};
use crate::{Conn, Side, connection::link::End};
use std::time::Instant;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// A client that will connect at this time.
    Coming(u64),
    /// A connection to another server, which answers at this time. Whether it accepts.
    Connecting(u64, bool),
    Up,
    /// The server has closed it.
    Down(End),
    #[default]
    Unused,
}

/// The state of a readiness driver.
#[derive(Debug, Default)]
pub(super) struct Ready {
    pub readable: bool,
    pub writable: bool,
    pub watched_read: bool,
    pub watched_write: bool,
    pub again: bool,
    /// Something has arrived since the last edge.
    pub news: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Receiving {
    #[default]
    No,
    Yes,
    /// Cancelled, and not ended yet.
    Ending,
}

/// The state of a completion driver.
#[derive(Debug, Default)]
pub(super) struct Ring {
    pub receiving: Receiving,
    /// When the receive completes with bytes that have arrived.
    pub receive_at: Option<u64>,
    /// When the cancelled receive ends.
    pub cancelled_at: Option<u64>,
    pub sending: Option<Vec<u8>>,
    /// How much of it earlier operations sent, and how much the one in flight sends.
    pub sent: usize,
    pub taken: usize,
    pub sent_at: Option<u64>,
    pub fresh: bool,
    pub closing: bool,
    pub changed: bool,
}

/// What was known about a connection when the core closed it. Its socket may be closed later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    pub at: Instant,
    pub heard: Option<Instant>,
    pub took: Option<Instant>,
    pub owed: Option<Instant>,
}

/// The state of the checks.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub verdict: Option<Verdict>,
    /// When bytes were last handed to the core, or the connection was opened.
    pub heard: Option<Instant>,
    /// When the peer last acknowledged something.
    pub took: Option<Instant>,
    /// When output was last appended.
    pub produced_at: Option<Instant>,
    /// Since when output is pending.
    pub stuck: Option<Instant>,
    /// Since when the peer has acknowledged none of its pending output.
    pub owed: Option<Instant>,
    /// When output was last pending, or a job in progress.
    pub busy: Option<Instant>,
    pub handed: usize,
    pub written: usize,
    pub produced: usize,
    pub mark: usize,
    pub jobs: usize,
    /// When the model last reported that the peer waits for the engine.
    pub waited: Option<Instant>,
    /// When the last job finished.
    pub done_at: Option<Instant>,
    /// The end of input was reported to the engine.
    pub ended: bool,
    /// The link has left the state Open, and the scenario was notified.
    pub left: bool,
    /// Output that was pending then.
    pub backlog: usize,
    pub finished_at: Option<Instant>,
    /// Bytes that had arrived when the server stopped.
    pub due_at_stop: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Line {
    pub conn: Option<Conn>,
    pub side: Option<Side>,
    pub station: usize,
    pub phase: Phase,
    pub wire: Wire,
    pub peer: Peer,
    /// When the network delivers what the server has written.
    pub net_at: Option<u64>,
    pub ready: Ready,
    pub ring: Ring,
    pub watch: Watch,
}

impl Line {
    pub fn clear(&mut self) {
        self.wire.clear();
        self.peer.clear();
        let (wire, peer) = (std::mem::take(&mut self.wire), std::mem::take(&mut self.peer));
        *self = Line { wire, peer, ..Line::default() };
    }

    pub fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Up | Phase::Connecting(..))
    }
}

/// Sets `at` to `other` if that is earlier, or if `at` is not set.
pub(super) fn sooner(at: &mut Option<u64>, other: u64) {
    *at = Some(at.map_or(other, |at| at.min(other)));
}
