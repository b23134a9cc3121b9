//! A client of the proxy.

use crate::clients::{
    handoff::Leaving, identity::Identity, leased::Transaction, ring::Ring,
    subscribed::Subscriptions,
};
use regatta_engine::{Conn, ConnInterest};
use regatta_proto::resp::Commands;
use std::time::Instant;

/// A client of the proxy.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) conn: Conn,
    pub(crate) identity: Identity,
    /// The epoch of the map that routed its last request. 0: none, or its next request must wait for the replies to those
    /// before it.
    pub(crate) epoch: u64,
    /// The pool of shared connections to nodes that it uses.
    pub(crate) pool: usize,
    /// Its pending replies.
    pub(crate) ring: Ring,
    /// Expected size of its next reply in bytes: a moving average over the previous replies, or more
    /// after a large request.
    pub(crate) reply_bytes: usize,
    /// Input that is not yet parsed into commands.
    pub(crate) rest: Option<Box<Rest>>,
    pub(crate) input: Input,
    /// When the oldest bytes of its input arrived that are complete requests: a number of
    /// [`Clock`](crate::observe::clock::Clock).
    pub(crate) arrived_us: u32,
    pub(crate) mode: Mode,
    /// The pool that it switches to once the node accepts its SELECT.
    pub(crate) selects: Option<usize>,
    /// What a node has replied to a question about the command that is read next; see `proxy::users`.
    pub(crate) outcome: Option<Box<Outcome>>,
    /// The bytes of its replies that are counted in the budget.
    pub(crate) counted: usize,
    /// The bytes of its requests that are counted in the budget.
    pub(crate) requests: usize,
    /// Bytes of incomplete replies that nodes are sending to it.
    pub(crate) arriving: usize,
    /// Bytes that are still to come of the value whose start was sent to it.
    pub(crate) promised: usize,
    /// When the request started of which only a part has arrived.
    pub(crate) partial_since: Option<Instant>,
    /// It was disconnected at once.
    pub(crate) is_cut: bool,
    pub(crate) leaving: Leaving,
    /// The client has closed its sending side.
    pub(crate) has_ended: bool,
    /// A node does not read its requests fast enough.
    pub(crate) node_is_full: bool,
    /// The last reply was not an error. Meaningful after a command that was sent alone.
    pub(crate) last_succeeded: bool,
    /// The status last set at the driver.
    pub(crate) status: Option<ConnInterest>,
    /// It is in the queue of clients whose input is to resume.
    pub(crate) is_due: bool,
}

/// Whether a command may be carried out: if not, the node's error, without the leading `-`.
pub(crate) type Outcome = Result<Accepted, Vec<u8>>;

/// What a node has accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Whether it accepts any password of this user. `None`: it was not asked.
    pub(crate) any_password: Option<bool>,
}

/// Maximum number of replies that may be pending for a client.
pub(crate) const OWED: usize = 4096;

/// Expected size of a client's first replies, in bytes: if it pipelines requests for large values,
/// only a few are sent before the first reply shows that.
const FIRST_REPLY: usize = 64 * 1024;

/// The state of a client's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// Input is read.
    Read,
    /// Paused until all pending replies have arrived.
    Waits,
    /// Paused until there is room: in the client's output, in its pending replies, or at a node.
    Full,
    /// Closed, or no longer valid. The connection closes after the last reply.
    Ended,
}

/// What a client is in the middle of.
#[derive(Debug, Default)]
pub(crate) enum Mode {
    #[default]
    Plain,
    /// A transaction, watched keys, or a blocking command.
    Leased(Box<Transaction>),
    Subscribed(Box<Subscriptions>),
}

/// Input that is not yet parsed into commands.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) commands: Commands,
    bytes: Vec<u8>,
    /// How many of the bytes are consumed.
    taken: usize,
}

/// Memory of an input buffer that is kept for the next client, in bytes.
const KEPT: usize = 64 * 1024;

impl Rest {
    pub(crate) fn new(commands: Commands) -> Self {
        Rest { commands, bytes: Vec::new(), taken: 0 }
    }

    /// Returns the unconsumed bytes followed by `more`, and their decoder.
    pub(crate) fn with<'a>(&'a mut self, more: &'a [u8]) -> (&'a mut Commands, &'a [u8]) {
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

    /// The number of unconsumed bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// The number of bytes in memory.
    pub(crate) fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Marks `count` of these bytes as consumed and keeps the others. Returns whether none remain.
    pub(crate) fn took(&mut self, count: usize, more: &[u8]) -> bool {
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
    /// Updates the expected reply size after a reply of this many bytes.
    #[inline]
    pub(crate) fn note_reply_size(&mut self, bytes: usize) {
        self.reply_bytes = self.reply_bytes - self.reply_bytes / 8 + bytes / 8;
    }

    pub(crate) fn new(conn: Conn, identity: Identity) -> Self {
        Client {
            conn,
            identity,
            epoch: 0,
            pool: 0,
            ring: Ring::default(),
            reply_bytes: FIRST_REPLY,
            rest: None,
            input: Input::Read,
            arrived_us: 0,
            mode: Mode::Plain,
            selects: None,
            outcome: None,
            counted: 0,
            requests: 0,
            arriving: 0,
            promised: 0,
            partial_since: None,
            is_cut: false,
            leaving: Leaving::No,
            has_ended: false,
            node_is_full: false,
            last_succeeded: false,
            status: None,
            is_due: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_proto::resp::CommandLimits;

    #[test]
    fn no_input_remains_once_all_of_it_is_consumed() {
        let limits = CommandLimits { args: 9, bulk: 100, inline: 100, command: 100 };
        let mut rest = Rest::new(Commands::new(limits));
        assert!(!rest.took(1, b"abc"));
        assert_eq!(rest.with(b"d").1, b"bcd");
        assert!(!rest.took(2, b"d"));
        assert_eq!(rest.with(b"e").1, b"de");
        assert!(rest.took(2, b"e"));
    }
}
