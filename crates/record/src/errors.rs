//! What went wrong under a load: counts by kind, and the first wrong exchange.

use serde::{Deserialize, Serialize};

/// Errors by kind, each counted once per request or connection attempt that met it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// A connection could not be opened (refused, unreachable, out of ports or descriptors).
    pub connect: u64,
    /// A reply was owed, and reading it failed (reset by the server, for one).
    pub read: u64,
    /// Writing failed.
    pub write: u64,
    /// A reply did not come within the limit.
    pub timeout: u64,
    /// A reply was wrong, out of order, or came unasked.
    pub wrong_reply: u64,
    /// The server closed with replies still owed.
    pub closed_early: u64,
    /// The server closed or reset a connection on which it owed nothing, without announcing it. The
    /// load opened another; no reply is missing, so it is no fault.
    #[serde(default)]
    pub closed_idle: u64,
}

impl Errors {
    /// Every kind with its name as in the JSON, in the order of the fields.
    pub fn by_kind(&self) -> [(&'static str, u64); 7] {
        [
            ("connect", self.connect),
            ("read", self.read),
            ("write", self.write),
            ("timeout", self.timeout),
            ("wrong_reply", self.wrong_reply),
            ("closed_early", self.closed_early),
            ("closed_idle", self.closed_idle),
        ]
    }

    /// Requests that failed: all kinds that cost a reply. A connection that could not be opened is
    /// tried again, and one that was closed idle owed nothing.
    pub fn failed(&self) -> u64 {
        self.total() - self.connect - self.closed_idle
    }

    /// Sum over all kinds.
    pub fn total(&self) -> u64 {
        self.by_kind().iter().map(|(_, n)| n).sum()
    }

    /// Adds another thread's counts.
    pub fn add(&mut self, other: &Errors) {
        self.connect += other.connect;
        self.read += other.read;
        self.write += other.write;
        self.timeout += other.timeout;
        self.wrong_reply += other.wrong_reply;
        self.closed_early += other.closed_early;
        self.closed_idle += other.closed_idle;
    }
}

/// A wrong exchange as seen on the wire: bytes escaped to printable ASCII, long ones cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// What was sent.
    pub sent: String,
    /// What the contract wanted back.
    pub expected: String,
    /// What came.
    pub received: String,
    /// Which reply on its connection this was, counted from 0.
    pub reply_index: u64,
}
