//! The messages from a load process to the process that started it: its progress, and at the end
//! its counts or an error.

use crate::{Counted, LeaderCommand, SecondCounted};
use serde::{Deserialize, Serialize};

/// A message from a load process. Each is one line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessMessage {
    /// The current state of the load. Sent up to fifty times a second, and at least twice a second.
    Progress(LoadProgress),
    /// The counts of one second of the window, if the leader wants them. In order of their numbers.
    Second(Box<SecondCounted>),
    /// The counts of the process. The last message.
    Counted(Box<Counted>),
    /// Why the process cannot continue. The last message.
    Failed(Failure),
}

/// The state of one load process. Counts start with the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadProgress {
    /// The last order that all threads of the process follow. `None`: all threads have started and
    /// wait for the first order.
    pub entered: Option<LeaderCommand>,
    /// Complete replies, correct or wrong.
    pub replies: u64,
    /// Of those: on active connections, without the first replies of idle ones and of members that join.
    pub active_replies: u64,
    /// Settled requests: answered or lost.
    pub settled: u64,
    /// Requests in flight. After the window also what else is awaited: queued requests, pushed messages
    /// and answers to Close frames.
    pub awaited: u64,
    /// Attempts to open a connection that failed, other than by a timeout.
    pub refused: u64,
    /// Connections that the server closed after their first reply, before the load began.
    pub dropped: u64,
    /// Connections that only wait for the server to close them.
    pub owed_ends: u64,
    /// In a burst: connections that received their first reply.
    pub opened: u64,
    /// Errors of all kinds.
    pub errors: u64,
    /// Open connections that received their first reply.
    pub open: u64,
    /// Whether connections wait for their first reply.
    pub opening: bool,
    /// The run is over for this process, e.g. because a reply was wrong. It waits for [`LeaderCommand::End`].
    pub over: bool,
    /// How long after the ordered time the process opened its window, in nanoseconds. 0 before that, and
    /// without an ordered time.
    pub late_ns: u64,
    /// What was sent to members on other machines and received from them, if there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<AcrossProgress>,
    /// The last error that kept a connection from opening, or closed it before the load began.
    pub trouble: Option<String>,
}

/// How many broadcasts the members of a load process sent, and how many copies they received from members
/// on other machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcrossProgress {
    /// Broadcasts sent.
    pub sent: u64,
    /// Copies that its members received from other machines, if they stayed.
    pub copies: u64,
    /// Members whose connection was closed, which are owed none.
    pub left: u64,
}

/// Why a load process cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The TLS handshake with the server fails: one sentence.
    Tls(String),
    /// Any other reason: one sentence.
    Other(String),
}
