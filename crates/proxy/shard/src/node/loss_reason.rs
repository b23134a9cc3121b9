//! Reasons for the loss of a connection to a node, and their error messages.

use std::time::Duration;

/// Why a connection to a node was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The node closed the connection, or it could not be opened.
    Closed,
    /// The node did not reply in time.
    TimedOut,
    /// The node sent invalid RESP, or a reply without a request.
    Malformed(&'static str),
    /// The node rejected the preparation of the connection with this error.
    Refused(Vec<u8>),
    /// The node rejected the password with this error, and carried out no command without it.
    Denied(Vec<u8>),
    /// The shard map changed while the connection was in use by one client.
    Moved,
    /// The proxy itself could not open the connection, for this reason.
    NotOpened(String),
    /// The server is no master, for this reason. No request was sent to it.
    NoMaster(String),
    /// TLS with the node failed, for this reason, before it took anything that was sent.
    NoTls(String),
}

impl Loss {
    /// Returns the error code for waiting clients, and the reason. `was_open`: the connection was
    /// open; `timeout`: the reply timeout.
    pub(crate) fn words(&self, was_open: bool, timeout: Duration) -> (&'static str, String) {
        match self {
            Loss::Closed if !was_open => ("SHARDDOWN", "cannot connect".to_string()),
            Loss::Closed => {
                ("SHARDDOWN", "the node closed the connection before it replied".to_string())
            }
            Loss::TimedOut => ("SHARDTIMEOUT", format!("no reply within {timeout:?}")),
            Loss::NotOpened(why) => ("SHARDDOWN", format!("the proxy cannot connect: {why}")),
            Loss::NoMaster(why) => ("SHARDDOWN", why.clone()),
            Loss::NoTls(why) => ("SHARDDOWN", format!("no TLS connection: {why}")),
            Loss::Moved => ("SHARDMOVED", "the shard map has changed".to_string()),
            Loss::Malformed(what) => ("SHARDDOWN", format!("unusable reply: {what}")),
            Loss::Refused(text) | Loss::Denied(text) => {
                ("SHARDDOWN", format!("the node refused the connection: {}", text.escape_ascii()))
            }
        }
    }

    /// The error text for a client whose request was, or would have been, sent to this node.
    pub(crate) fn text(&self, node: &str, was_open: bool, timeout: Duration) -> String {
        let (code, why) = self.words(was_open, timeout);
        let is_unclear = was_open && !matches!(self, Loss::Denied(_) | Loss::NoMaster(_));
        let note = if is_unclear { "; the command may have been applied" } else { "" };
        format!("{code} node {node}: {why}{note}")
    }
}
