//! Why a connection to a node is lost, and how a client is told.

use std::time::Duration;

/// Why a connection to a node is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The node closed it, or it could not be opened.
    Closed,
    /// The node did not answer in time.
    TimedOut,
    /// The node sent what is no reply, or a reply that nobody has asked for.
    Malformed(&'static str),
    /// The node refused to prepare it, with this error.
    Refused(Vec<u8>),
    /// What it was leased for may be on another node now.
    Moved,
    /// The proxy could not open it, for a reason of its own.
    NotOpened(String),
}

impl Loss {
    /// The code of the error for those who wait, and the reason. `was_open`: the connection was open
    /// before; `timeout`: how long a node may take.
    pub(super) fn words(&self, was_open: bool, timeout: Duration) -> (&'static str, String) {
        match self {
            Loss::Closed if !was_open => ("SHARDDOWN", "it cannot be connected to".to_string()),
            Loss::Closed => {
                ("SHARDDOWN", "it closed the connection before it answered".to_string())
            }
            Loss::TimedOut => ("SHARDTIMEOUT", format!("it did not answer within {timeout:?}")),
            Loss::NotOpened(why) => ("SHARDDOWN", format!("the proxy cannot connect to it: {why}")),
            Loss::Moved => ("SHARDMOVED", "the shard map has changed".to_string()),
            Loss::Malformed(what) => ("SHARDDOWN", format!("it sent no RESP: {what}")),
            Loss::Refused(text) => {
                ("SHARDDOWN", format!("it refused the connection: {}", text.escape_ascii()))
            }
        }
    }

    /// The text of the error for a client whose request was sent to the node of this name, or was to be.
    pub(super) fn text(&self, node: &str, was_open: bool, timeout: Duration) -> String {
        let (code, why) = self.words(was_open, timeout);
        let note = if was_open { "; the command may have been applied" } else { "" };
        format!("{code} node {node}: {why}{note}")
    }
}
