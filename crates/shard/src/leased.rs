//! What a client does over a leased connection: a transaction, watched keys, a command that blocks.

use super::loss::Loss;
use regatta_engine::Conn;

/// What a client does over a leased connection.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub(super) lease: Option<(usize, Conn)>,
    /// The connection was lost, for this reason. Nothing can be carried out any more.
    pub(super) lost: Option<Loss>,
    /// Something is queued on the node that must not be carried out.
    pub(super) is_dirty: bool,
    /// Keys are watched.
    pub(super) watches: bool,
    /// The command that is under way may block.
    pub(super) blocks: bool,
    /// The command that is under way ends the transaction, or forgets the watched keys.
    pub(super) ends: bool,
    /// Between MULTI and EXEC or DISCARD.
    pub(super) multi: Option<Multi>,
}

#[derive(Debug, Default)]
pub(super) struct Multi {
    /// A command was refused: EXEC will be, too.
    pub(super) is_aborted: bool,
    /// The node has got MULTI.
    pub(super) has_begun: bool,
    /// What was queued before the node was known, and how many commands these are.
    pub(super) early: Vec<u8>,
    pub(super) count: usize,
}

/// What becomes of a client's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// It goes on.
    Kept,
    /// There is none any more.
    Over,
    /// It is over. The connection, and whether others may use it.
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

    /// The command that was under way is done.
    pub(super) fn step(&mut self) -> After {
        if std::mem::take(&mut self.ends) {
            (self.multi, self.watches) = (None, false);
        }
        self.blocks = false;
        match self.lease {
            _ if self.multi.is_some() || self.watches => After::Kept,
            Some((node, conn)) if self.lost.is_none() => {
                After::GivenBack(node, conn, !self.is_dirty)
            }
            _ => After::Over,
        }
    }
}
