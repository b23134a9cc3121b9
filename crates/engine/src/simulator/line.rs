//! A connection of the simulated server: its wire, its peer, and what its driver and the checks keep.

use super::{peer::Peer, wire::Wire};
use crate::{Conn, Side, link::End};
use std::time::Instant;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// A client that connects at this time.
    Coming(u64),
    /// Another server that answers at this time, if ever: whether it takes the connection.
    Connecting(u64, bool),
    Up,
    /// The server has closed it.
    Down(End),
    #[default]
    Unused,
}

/// What a driver of readiness keeps.
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

/// What a driver of completions keeps.
#[derive(Debug, Default)]
pub(super) struct Ring {
    pub receiving: Receiving,
    /// When something that has arrived completes the receive.
    pub receive_at: Option<u64>,
    /// When the cancelled receive ends.
    pub cancelled_at: Option<u64>,
    pub sending: Option<Vec<u8>>,
    /// How much of it was sent before, and by the operation that is under way.
    pub sent: usize,
    pub taken: usize,
    pub sent_at: Option<u64>,
    pub fresh: bool,
    pub closing: bool,
    pub changed: bool,
}

/// What was known of a connection when the core closed it: its socket may be closed later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    pub at: Instant,
    pub heard: Option<Instant>,
    pub took: Option<Instant>,
    pub owed: Option<Instant>,
}

/// What the checks keep.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub verdict: Option<Verdict>,
    /// When bytes were last handed to the core.
    pub heard: Option<Instant>,
    /// When the peer last acknowledged something.
    pub took: Option<Instant>,
    /// When output last was appended.
    pub produced_at: Option<Instant>,
    /// Since when output is pending.
    pub stuck: Option<Instant>,
    /// Since when the peer has acknowledged nothing of what it is owed.
    pub owed: Option<Instant>,
    /// When output was last pending, or a job under way.
    pub busy: Option<Instant>,
    pub handed: usize,
    pub written: usize,
    pub produced: usize,
    pub mark: usize,
    pub jobs: usize,
    /// When the model last said that the peer waits for the engine.
    pub waited: Option<Instant>,
    /// When the last job was done.
    pub done_at: Option<Instant>,
    /// The engine was told that the peer sends no more.
    pub ended: bool,
    /// The link has left the state Open, which the scenario knows.
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

/// The earlier of two times.
pub(super) fn sooner(at: &mut Option<u64>, other: u64) {
    *at = Some(at.map_or(other, |at| at.min(other)));
}
