//! The decision for a request.

use super::{cursor::Cursor, merge::Merge, refusal};
use crate::command::{Command, flag};

/// The decision for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The command or subcommand, if Redis knows it.
    pub command: Option<&'static Command>,
    /// Where the request goes.
    pub route: Route,
}

impl Decision {
    /// The name of the command or subcommand; empty if Redis does not know it.
    pub fn name(&self) -> &'static str {
        self.command.map_or("", |command| command.name)
    }

    /// Refuses a write that would be split over several nodes, because it would not be atomic.
    #[must_use]
    pub fn without_split_writes(self) -> Self {
        match (&self.route, self.command) {
            (Route::Split(_), Some(command)) if command.has(flag::WRITE) => {
                Decision { route: Route::Refused(refusal::cross_slot()), ..self }
            }
            _ => self,
        }
    }
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Unchanged to this node.
    OneNode(usize),
    /// Unchanged to any node: it makes no difference which one replies.
    AnyNode,
    /// In parts to several nodes. The [`Plan`](super::Plan) contains the parts.
    Split(Merge),
    /// Unchanged to every node.
    AllNodes(Merge),
    /// SCAN: to one node, with the node's own cursor. The cursor in the reply must be replaced with
    /// [`Cursor::after`].
    Scan(Cursor),
    /// To no node: the proxy answers.
    Local(Local),
    /// Over a connection leased to the client.
    Lease(Lease, Place),
    /// To no node: the client gets this error. The text excludes the leading `-` and the line end.
    Refused(Vec<u8>),
}

/// A command that the proxy answers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// AUTH.
    Auth,
    /// A subcommand of CLIENT about the client's own connection, or ACL WHOAMI.
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
    /// SLOWLOG GET, LEN and RESET.
    SlowLog,
}

/// Why a client needs a dedicated connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// MULTI starts a transaction, EXEC and DISCARD end it, and UNWATCH forgets the watched keys.
    /// Without a transaction, EXEC and DISCARD are errors.
    Transaction,
    /// WATCH: the keys are watched for the client's next transaction.
    Watch,
    /// The command may block.
    Blocking,
    /// The command subscribes to channels or unsubscribes.
    Subscription,
}

/// The node of a client's dedicated connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// This node.
    Node(usize),
    /// The node of the client's present lease, otherwise that of the next request with a key.
    Open,
    /// Several nodes, with one connection each. The [`Plan`](super::Plan) contains the parts.
    Parts,
    /// Every node, with one connection each.
    AllNodes,
}
