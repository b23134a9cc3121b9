//! What a load process says: how far it is, and in the end what it counted or why it cannot.

use crate::{Counted, Order};
use serde::{Deserialize, Serialize};

/// A message of a load process, one a line, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// How far it is; said some fifty times a second.
    At(Standing),
    /// What it counted: its last word.
    Counted(Box<Counted>),
    /// Why it cannot go on: its last word.
    Failed(Failure),
}

/// How far a load process is; numbers are since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// The last order that all of its threads carry out; `None`: they are up, and wait for the first.
    pub entered: Option<Order>,
    /// Right replies.
    pub replies: u64,
    /// Requests settled: answered or lost.
    pub settled: u64,
    /// Requests that were written and are not settled.
    pub awaited: u64,
    /// Failed attempts to connect.
    pub refused: u64,
    /// Errors of all kinds.
    pub errors: u64,
    /// Connections whose first reply came and that still stand.
    pub open: u64,
    /// Whether connections wait for their first reply.
    pub opening: bool,
    /// It cannot go on, or need not: a wrong reply came, for one. It awaits [`Order::End`].
    pub over: bool,
    /// What last kept a connection from opening.
    pub trouble: Option<String>,
}

/// Why a load process cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// TLS cannot be had with this server: a sentence.
    Tls(String),
    /// Anything else: a sentence.
    Other(String),
}
