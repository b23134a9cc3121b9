//! State of a client: of the successive connections in one slot.

use super::{framing::Framing, log::Log};
use crate::dialects::redis::names::Owner;
use std::sync::{Arc, Mutex};

/// Version of a key that is absent.
pub(super) const ABSENT: u64 = u64::MAX;
/// Version of a key whose content is unknown, and will stay unknown.
pub(super) const DOUBTFUL: u64 = u64::MAX - 1;

/// State of a client.
#[derive(Debug)]
pub struct ConnectionState {
    slot: u32,
    /// Number of connections of the slot that were lost with requests in flight or while being opened.
    /// The next connection has new keys, because the last requests may be executed at any later time.
    generation: u32,
    /// The client as the author of values.
    pub(super) author: Owner,
    /// The owner of its keys: the client itself, unless all clients share their keys.
    pub(super) owner: Owner,
    /// The version that each key holds as of the last reply. Empty until the keys are stored.
    pub(super) versions: Vec<u64>,
    /// The value of each counter as of the last reply.
    pub(super) counters: Vec<u64>,
    /// Number of requests written out so far, on all connections of the slot.
    pub(super) asked: u64,
    /// Number of these that have their reply, or will never get one.
    pub(super) answered: u64,
    /// Requests that were written out; the last bytes are unsent.
    pub(super) out: Vec<u8>,
    pub(super) progress: Progress,
    pub(super) framing: Framing,
    /// Whether a tolerated error is partially received.
    pub(super) is_error: bool,
    /// Number of the last received bytes up to the end of a wrong reply after which the connection may
    /// continue.
    pub(super) resumes: Option<usize>,
    /// Whether some keys are [`DOUBTFUL`].
    pub(super) has_doubts: bool,
    pub(super) opening: Opening,
    /// The log of operations on keys that all clients share.
    pub(super) log: Option<Arc<Mutex<Log>>>,
}

/// State of a partially received reply that is compared in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Number of complete elements. The header of an array counts as one.
    pub element: usize,
    /// Number of received bytes of the next element.
    pub right: usize,
}

/// State of the steps before the first request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opening {
    pub started: bool,
    /// Whether all steps are done.
    pub done: bool,
    /// Number of expected replies.
    pub due: u32,
    /// Number of received bytes of the next reply.
    pub right: usize,
    /// Number of keys stored so far; the counters follow the values.
    pub stored: usize,
}

impl ConnectionState {
    /// Creates the state of a slot's first connection. `shared` has the owner and the log, if all
    /// clients share their keys.
    pub(super) fn new(slot: u32, shared: Option<(Owner, Arc<Mutex<Log>>)>) -> ConnectionState {
        let author = Owner::new(slot, 0);
        let (owner, log) = shared.map_or((author, None), |(owner, log)| (owner, Some(log)));
        ConnectionState {
            slot,
            generation: 0,
            author,
            owner,
            versions: Vec::new(),
            counters: Vec::new(),
            asked: 0,
            answered: 0,
            out: Vec::new(),
            progress: Progress::default(),
            framing: Framing::default(),
            is_error: false,
            resumes: None,
            has_doubts: false,
            opening: Opening::default(),
            log,
        }
    }

    /// Moves on to the next connection of the slot. It keeps the keys if the last connection had no
    /// requests in flight and was not being opened, or if all clients share the keys.
    pub(super) fn renew(&mut self) {
        let knows = self.asked == self.answered && (self.opening.done || !self.opening.started);
        if !knows {
            self.generation = self.generation.wrapping_add(1);
            self.author = Owner::new(self.slot, self.generation);
            if self.log.is_none() {
                self.owner = self.author;
            }
            self.versions.clear();
            self.counters.clear();
            self.has_doubts = false;
        }
        if let Some(log) = &self.log {
            log.lock().expect("no thread panicked").abandon_pending();
        }
        self.answered = self.asked;
        self.out.clear();
        self.progress = Progress::default();
        self.framing = Framing::default();
        (self.is_error, self.resumes) = (false, None);
        self.opening = Opening::default();
    }
}
