//! What is kept of a client: of the connections in one slot, one after the other.

use super::{framing::Framing, log::Log, names::Owner};
use std::sync::{Arc, Mutex};

/// A key that holds nothing, among versions.
pub(super) const ABSENT: u64 = u64::MAX;
/// What a key holds is not known, and never will be.
pub(super) const DOUBTFUL: u64 = u64::MAX - 1;

/// What is kept of a client.
#[derive(Debug)]
pub struct Talk {
    slot: u32,
    /// Connections of the slot that were lost while something was owed. Each had keys of its own, since
    /// what it asked last may be done at any later time.
    generation: u32,
    /// The client, as it writes values.
    pub(super) author: Owner,
    /// Who has its keys: itself, unless all clients share them.
    pub(super) owner: Owner,
    /// The version that each key holds by the last reply. Empty until the keys are stored.
    pub(super) versions: Vec<u64>,
    /// The value of each counter as of the last reply.
    pub(super) counters: Vec<u64>,
    /// Requests that were written out so far, in all connections of the slot.
    pub(super) asked: u64,
    /// Those that have their reply, or will never get one.
    pub(super) answered: u64,
    /// Requests that were written out, of which the last bytes are unsent.
    pub(super) out: Vec<u8>,
    pub(super) progress: Progress,
    pub(super) framing: Framing,
    /// An error has begun to come that is tolerated.
    pub(super) is_error: bool,
    /// Of the bytes that came last, so many end with a wrong reply behind which the connection may go on.
    pub(super) resumes: Option<usize>,
    /// Some keys are [`DOUBTFUL`].
    pub(super) has_doubts: bool,
    pub(super) opening: Opening,
    /// What was done with keys that all clients share.
    pub(super) log: Option<Arc<Mutex<Log>>>,
}

/// How much has arrived of a reply that is compared in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Elements that came whole. The first line of an array is one.
    pub element: usize,
    /// Bytes of the next one that came.
    pub right: usize,
}

/// How far the steps are that come before the first request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opening {
    pub begun: bool,
    /// All is done.
    pub done: bool,
    /// Replies that are due.
    pub due: u32,
    /// Bytes of the next one that came.
    pub right: usize,
    /// Keys that were stored so far; the counters follow the values.
    pub stored: usize,
}

impl Talk {
    /// Of the first connection of a slot. `shared` has the keys, if all clients share them.
    pub(super) fn new(slot: u32, shared: Option<(Owner, Arc<Mutex<Log>>)>) -> Talk {
        let author = Owner::new(slot, 0);
        let (owner, log) = shared.map_or((author, None), |(owner, log)| (owner, Some(log)));
        Talk {
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

    /// The next connection of the slot. If the last one was owed nothing, its keys hold what they held.
    pub(super) fn renew(&mut self) {
        let knows = self.asked == self.answered && (self.opening.done || !self.opening.begun);
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
            log.lock().expect("no thread panicked").gives_up();
        }
        self.answered = self.asked;
        self.out.clear();
        self.progress = Progress::default();
        self.framing = Framing::default();
        (self.is_error, self.resumes) = (false, None);
        self.opening = Opening::default();
    }
}
