//! Answers to a client that are unusual: some may be, but not all.

use std::collections::BTreeSet;

/// Answers, and those of them that are unusual: under faults of the world there may be some.
#[derive(Debug, Default)]
pub struct Tally {
    all: usize,
    unusual: usize,
}

impl Tally {
    pub fn adds(&mut self, is_unusual: bool) {
        self.all += 1;
        self.unusual += usize::from(is_unusual);
    }

    /// If there are so many, not all of them may be unusual.
    pub fn check(&self, many: usize, what: &str) -> Result<(), String> {
        let is_fine = self.all < many || self.unusual < self.all;
        if is_fine { Ok(()) } else { Err(format!("all of {} {what}", self.all)) }
    }
}

/// Replies to own messages, and those of them that came before the copy.
#[derive(Debug, Default)]
pub struct Replies {
    tally: Tally,
    /// Messages of this subscription whose reply came without the copy. It may come, or be missing behind a gap: then the
    /// subscription ends.
    awaited: BTreeSet<String>,
}

impl Replies {
    pub fn reply(&mut self, payload: String, has_copy: bool) {
        if has_copy {
            self.tally.adds(false);
        } else {
            self.awaited.insert(payload);
        }
    }

    /// The client gets a message.
    pub fn copy(&mut self, payload: &str) {
        if self.awaited.remove(payload) {
            self.tally.adds(true);
        }
    }

    /// Another subscription begins.
    pub fn begins_anew(&mut self) {
        self.awaited.clear();
    }

    pub fn check(&self, what: &str) -> Result<(), String> {
        self.tally.check(4, what)
    }
}
