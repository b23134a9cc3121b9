//! A client of the proxy.

use super::{identity::Identity, leased::Transaction, ring::Ring, subscribed::Subscriptions};
use regatta_engine::{Conn, Status};
use regatta_proto::resp::Commands;

/// A client of the proxy.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) conn: Conn,
    pub(super) identity: Identity,
    /// Of the map by which its last request was sent.
    pub(super) epoch: u64,
    /// The connections to nodes that it shares with others.
    pub(super) pool: usize,
    /// The replies that it is owed.
    pub(super) ring: Ring,
    /// Bytes that its next reply is expected to have: a mean of those that came, the latest most.
    pub(super) reply_bytes: usize,
    /// Input that no command has taken yet.
    pub(super) rest: Option<Box<Rest>>,
    pub(super) input: Input,
    pub(super) mode: Mode,
    /// The pool that it changes to, once the node has answered to SELECT.
    pub(super) selects: Option<usize>,
    /// The bytes of its replies that count for the limit of all clients.
    pub(super) counted: usize,
    /// It sends nothing more.
    pub(super) has_ended: bool,
    /// A node does not take its requests fast enough.
    pub(super) node_is_full: bool,
    /// The last reply was no error. Meant for a command that was sent alone.
    pub(super) was_fine: bool,
    /// What the driver was last asked for.
    pub(super) status: Option<Status>,
    /// It is among those whose input is looked at again.
    pub(super) is_due: bool,
}

/// Bytes that the first replies of a client are expected to have.
const FIRST_REPLY: usize = 16 * 1024;

/// What is done with a client's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// It is read.
    Read,
    /// It waits until all replies are there.
    Waits,
    /// It waits until the client has read its replies, or a node its requests.
    Full,
    /// It has ended, or is not believed any more. The connection ends after the last reply.
    Ended,
}

/// What a client is in the middle of.
#[derive(Debug, Default)]
pub(super) enum Mode {
    #[default]
    Plain,
    /// A transaction, watched keys, or a command that blocks.
    Leased(Box<Transaction>),
    Subscribed(Box<Subscriptions>),
}

/// Input that no command has taken yet.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) commands: Commands,
    bytes: Vec<u8>,
    /// How many of the bytes are taken.
    taken: usize,
}

/// Memory for input that is kept for the next client, in bytes.
const KEPT: usize = 64 * 1024;

impl Rest {
    pub(super) fn new(commands: Commands) -> Self {
        Rest { commands, bytes: Vec::new(), taken: 0 }
    }

    /// The bytes that are not taken, with these behind them, and the decoder for them.
    pub(super) fn with<'a>(&'a mut self, more: &'a [u8]) -> (&'a mut Commands, &'a [u8]) {
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
            return (&mut self.commands, more);
        }
        // Each byte is moved once on average.
        if self.taken > self.bytes.len() / 2 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(more);
        (&mut self.commands, &self.bytes[self.taken..])
    }

    /// So many of these bytes were taken; the others are kept. Returns whether nothing is left.
    pub(super) fn took(&mut self, count: usize, more: &[u8]) -> bool {
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&more[count..]);
        } else {
            self.taken += count;
        }
        if self.taken < self.bytes.len() {
            return false;
        }
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.taken = 0;
        true
    }
}

impl Client {
    /// A reply of so many bytes has come for it.
    #[inline]
    pub(super) fn learns(&mut self, bytes: usize) {
        self.reply_bytes = self.reply_bytes - self.reply_bytes / 8 + bytes / 8;
    }

    pub(super) fn new(conn: Conn, identity: Identity) -> Self {
        Client {
            conn,
            identity,
            epoch: 0,
            pool: 0,
            ring: Ring::default(),
            reply_bytes: FIRST_REPLY,
            rest: None,
            input: Input::Read,
            mode: Mode::Plain,
            selects: None,
            counted: 0,
            has_ended: false,
            node_is_full: false,
            was_fine: false,
            status: None,
            is_due: false,
        }
    }
}
