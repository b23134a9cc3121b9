//! State of a leased connection: a transaction, watched keys, or a blocking command.

use super::{blocking::Blocking, loss::Loss};
use regatta_engine::Conn;

/// State of a leased connection.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub(super) lease: Option<(usize, Conn)>,
    /// Why the connection was lost. No command can be carried out.
    pub(super) lost: Option<Loss>,
    /// The node has queued commands that must not be carried out.
    pub(super) is_dirty: bool,
    /// Keys are watched.
    pub(super) watches: bool,
    /// The command in flight, if it may block.
    pub(super) blocking: Option<Blocking>,
    /// The command in flight ends the transaction, or the watch.
    pub(super) ends: bool,
    /// Between MULTI and EXEC or DISCARD.
    pub(super) multi: Option<Multi>,
}

#[derive(Debug, Default)]
pub(super) struct Multi {
    /// A command was refused: EXEC will fail, too.
    pub(super) is_aborted: bool,
    /// MULTI was sent to the node.
    pub(super) has_started: bool,
    /// Commands queued before the node was known, and their number.
    pub(super) early: Vec<u8>,
    pub(super) count: usize,
}

/// What happens to a client's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The client keeps it.
    Kept,
    /// The lease has ended, and there is no connection to return.
    Over,
    /// The lease has ended. The node, the connection, and whether others may use it.
    GivenBack(usize, Conn, bool),
}

impl Transaction {
    pub(super) fn leases(&mut self, node: usize, conn: Conn) {
        self.lease = Some((node, conn));
    }

    pub(super) fn lease(&self) -> Option<(usize, Conn)> {
        self.lease
    }

    pub(super) fn lose(&mut self, conn: Conn, loss: Loss) {
        if self.lease.is_some_and(|(_, leased)| leased == conn) {
            self.lost = Some(loss);
        }
    }

    /// Advances after the command in flight has completed.
    pub(super) fn step(&mut self) -> After {
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
