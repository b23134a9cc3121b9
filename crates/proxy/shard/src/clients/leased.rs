//! State of a leased connection: a transaction, watched keys, or a blocking command.

use crate::{clients::blocking::Blocking, node::loss_reason::Loss};
use regatta_engine::Conn;

/// State of a leased connection.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) lease: Option<(usize, Conn)>,
    /// The group of its keys, if they are known.
    pub(crate) group: Option<u16>,
    /// Why the connection was lost, and the name of its node. No command can be carried out.
    pub(crate) lost: Option<(Loss, String)>,
    /// The node has queued commands that must not be carried out.
    pub(crate) is_dirty: bool,
    /// Keys are watched.
    pub(crate) watches: bool,
    /// The command in flight, if it may block.
    pub(crate) blocking: Option<Blocking>,
    /// The command in flight ends the transaction, or the watch.
    pub(crate) ends: bool,
    /// Between MULTI and EXEC or DISCARD.
    pub(crate) multi: Option<Multi>,
}

#[derive(Debug, Default)]
pub(crate) struct Multi {
    /// A command was refused: EXEC will fail, too.
    pub(crate) is_aborted: bool,
    /// MULTI was sent to the node.
    pub(crate) has_started: bool,
    /// Commands queued before the node was known, and their number.
    pub(crate) early: Vec<u8>,
    pub(crate) count: usize,
}

/// What happens to a client's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The client keeps it.
    Kept,
    /// The lease has ended, and there is no connection to return.
    Over,
    /// The lease has ended. The node, the connection, and whether others may use it.
    GivenBack(usize, Conn, bool),
}

impl Transaction {
    pub(crate) fn leases(&mut self, node: usize, conn: Conn) {
        self.lease = Some((node, conn));
    }

    pub(crate) fn lease(&self) -> Option<(usize, Conn)> {
        self.lease
    }

    pub(crate) fn lose(&mut self, conn: Conn, loss: (Loss, String)) {
        if self.lease.is_some_and(|(_, leased)| leased == conn) {
            self.lost = Some(loss);
        }
    }

    /// Advances after the command in flight has completed.
    pub(crate) fn step(&mut self) -> After {
        if std::mem::take(&mut self.ends) {
            (self.multi, self.watches) = (None, false);
        }
        self.blocking = None;
        match self.lease {
            _ if self.multi.is_some() || self.watches => After::Kept,
            Some((node, conn)) if self.lost.is_none() => {
                After::GivenBack(node, conn, !self.is_dirty)
            }
            _ => After::Over,
        }
    }
}
