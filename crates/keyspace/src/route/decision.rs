//! What is decided for a request.

use super::{cursor::Cursor, merge::Merge};
use crate::command::Command;

/// What is decided for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The command, where Redis knows it.
    pub command: Option<&'static Command>,
    /// Where the request goes.
    pub route: Route,
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// To this node, as it came.
    OneNode(usize),
    /// To any node, as it came: all give the same answer.
    AnyNode,
    /// Parts of it to some of the nodes: the [`Plan`](super::Plan) has the parts.
    Split(Merge),
    /// To every node, as it came.
    AllNodes(Merge),
    /// SCAN: to one node, with the node's own cursor. The cursor in the reply is replaced by
    /// [`Cursor::after`].
    Scan(Cursor),
    /// Nowhere: the proxy answers.
    Here(Local),
    /// Over a connection of the client's own.
    Lease(Lease, Place),
    /// Nowhere: the client gets this error. The text has neither the `-` in front nor the end of the
    /// line.
    Refused(Vec<u8>),
}

/// What the proxy answers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// AUTH.
    Auth,
    /// A subcommand of CLIENT about the client's own connection.
    Client,
    /// ECHO.
    Echo,
    /// HELLO.
    Hello,
    /// INFO.
    Info,
    /// PING.
    Ping,
    /// QUIT.
    Quit,
    /// RESET.
    Reset,
    /// SELECT.
    Select,
}

/// Why a client needs a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// MULTI begins a transaction; EXEC and DISCARD end it, and UNWATCH forgets watched keys. Without a
    /// transaction, EXEC and DISCARD are errors.
    Transaction,
    /// WATCH: the keys are watched for the client's next transaction.
    Watch,
    /// The command may block.
    Blocking,
    /// Channels are subscribed, or no longer.
    Subscription,
}

/// Where a client's own connection leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To this node.
    Node(usize),
    /// Where the client already has one; otherwise to the node of the next request that names a key.
    Open,
    /// To several nodes, one connection each: the [`Plan`](super::Plan) has the parts.
    Parts,
    /// To every node, one connection each.
    AllNodes,
}
