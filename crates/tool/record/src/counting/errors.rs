//! Errors of a load: counts by kind, and the first wrong exchange.

use serde::{Deserialize, Serialize};

/// Errors by kind, each counted once per failed request, delivery or connection attempt; `closed_idle` once
/// per connection. Deliveries that a hub owed on a connection that was lost have the kind of that loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// A connection could not be opened (refused, unreachable, out of ports or descriptors, timeout,
    /// TLS handshake failed).
    pub connect: u64,
    /// Reading a due reply failed (e.g. reset by the server, or TLS failed).
    pub read: u64,
    /// Writing failed.
    pub write: u64,
    /// A reply did not arrive before the timeout.
    pub timeout: u64,
    /// A reply was wrong, out of order, or unsolicited.
    pub wrong_reply: u64,
    /// The server closed a connection with replies still due.
    pub closed_early: u64,
    /// The server closed or reset a connection without announcing it, but with no reply due. The
    /// load opened another connection. No reply is missing, so this is not a fault.
    #[serde(default)]
    pub closed_idle: u64,
    /// The server ended a single request without a reply, and its connection continued.
    #[serde(default)]
    pub reset: u64,
}

impl Errors {
    /// Every kind with its name in the JSON, in the order of the fields.
    pub fn by_kind(&self) -> [(&'static str, u64); 8] {
        [
            ("connect", self.connect),
            ("read", self.read),
            ("write", self.write),
            ("timeout", self.timeout),
            ("wrong_reply", self.wrong_reply),
            ("closed_early", self.closed_early),
            ("closed_idle", self.closed_idle),
            ("reset", self.reset),
        ]
    }

    /// Number of failed requests and deliveries: all kinds with a wrong or missing one. A connection that
    /// could not be opened is retried, and a connection that was closed while idle owed no reply.
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
        self.reset += other.reset;
    }
}

/// A wrong exchange as seen on the wire: bytes escaped to printable ASCII, long ones truncated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The request as sent.
    pub sent: String,
    /// The expected reply.
    pub expected: String,
    /// The received reply.
    pub received: String,
    /// Index of this reply on its connection, counted from 0.
    pub reply_index: u64,
}

/// Counts that cannot be merged, or that contradict each other: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mismatch(pub(crate) String);
