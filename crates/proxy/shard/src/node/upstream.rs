//! A connection to a node.

use crate::{
    node::{
        kept::{Entry, Kept},
        loss_reason::Loss,
    },
    observe::class::Class,
};
use regatta_engine::Conn;
use regatta_proto::resp::{Replies, Value};
use std::{collections::VecDeque, net::SocketAddr, time::Instant};

/// A connection to a node.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) conn: Conn,
    pub(crate) node: usize,
    /// The pool it belongs to.
    pub(crate) pool: usize,
    pub(crate) use_: Use,
    pub(crate) is_open: bool,
    /// The node has accepted what only this kind of use needs; see [`What::Begun`].
    pub(crate) is_verified: bool,
    /// The server to which it leads, if its node is another one now.
    pub(crate) left: Option<Box<Left>>,
    /// Why it could not be opened, if that is known.
    pub(crate) not_opened: Option<Loss>,
    /// The node has accepted the user of its pool and the rest of its preparation, or need not be waited for. Before
    /// that, no request is sent: it would be carried out as another user.
    pub(crate) is_admitted: bool,
    /// The error with which the node has refused the password.
    pub(crate) denied: Option<Vec<u8>>,
    /// Finds where replies end.
    pub(crate) replies: Replies,
    /// The start of an incomplete reply.
    pub(crate) partial: Vec<u8>,
    /// How many bytes of it are parsed.
    pub(crate) seen: usize,
    /// How many bytes of the incomplete reply were already sent to its client.
    pub(crate) streamed: usize,
    /// Maximum number of pending replies beyond which the clients that use it are paused.
    pub(crate) most: usize,
    /// What the next replies are for. An entry stays when its client disconnects.
    pub(crate) waiting: VecDeque<Waiter>,
    /// What is kept of the requests of these entries.
    pub(crate) kept: Kept,
    /// When the first entry became the first.
    pub(crate) since: Instant,
    /// When the first bytes of the incomplete reply arrived: a number of [`Clock`](crate::observe::clock::Clock).
    pub(crate) begun_us: Option<u32>,
    /// The client to which the incomplete reply is charged, and its bytes.
    pub(crate) charged: Option<(Conn, usize)>,
    /// Clients that are paused until the node has room again, or has reported its limit or a command.
    pub(crate) held: Vec<Conn>,
    /// The names of the commands that the node was asked for, in the order of its replies.
    pub(crate) described: VecDeque<Vec<u8>>,
    pub(crate) longest: Longest,
    /// Its number at the node (CLIENT ID), if it was asked for it.
    pub(crate) number: Option<u64>,
}

/// A server that was a node before a reload, or a master of a cluster before its slots have moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// What has happened, for errors.
    pub(crate) since: &'static str,
}

impl Left {
    /// Its name and address, for errors.
    pub(crate) fn shown(&self) -> String {
        let Left { name, address, since } = self;
        if *name == address.to_string() {
            format!("{name} ({since})")
        } else {
            format!("{name} ({address}, {since})")
        }
    }
}

/// Pending replies from a node beyond which the clients that use the connection are paused.
pub(crate) const OWED: usize = 256 * 1024;

/// The same for a connection over which users are tried, and for one over which a node may demand a password. A node
/// closes a connection that has not authenticated once more replies are pending than fit in its reply buffer, and then
/// answers none of the pending requests (the fix of CVE-2025-21605 in Redis). Where little happens, that buffer has 1 KiB
/// (`PROTO_REPLY_MIN_BYTES`). The longest errors there have 64 bytes (WRONGPASS) and 212 bytes (NOAUTH of HELLO).
pub(crate) const LOGINS: usize = 8;
pub(crate) const STRANGERS: usize = 4;

/// What uses a connection to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// All clients of its pool.
    Shared,
    /// One client, for commands that must not be interleaved with those of others.
    Leased(Conn),
    /// Nothing at present; it was leased before.
    Idle,
    /// One client, for its subscriptions.
    Subscribed(Conn),
    /// The proxy, to check that the node answers.
    Probe,
    /// The proxy, to check the user name and password of a client.
    Login,
    /// The proxy, to ask a cluster for its slots.
    Slots,
    /// The proxy, to ask a Sentinel for the masters. The number of the node is that of the Sentinel, after the nodes.
    Sentinel,
    /// The proxy, to which a Sentinel announces failovers. The number of the node is as above.
    Announcements,
    /// Nothing new: its node is another server now. It is closed once it has brought all replies.
    Retired,
}

/// The limit of a node that does not report it, in bytes: the default of Redis.
const DEFAULT_LONGEST: usize = 512 << 20;

/// What is known about the limit of a node on the size of an argument (`proto-max-bulk-len`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Longest {
    #[default]
    Unknown,
    /// The node was asked for it.
    Asked,
    Is(usize),
}

impl Longest {
    /// Reads the reply to CONFIG GET. A user may not be allowed to send that.
    pub(crate) fn of(reply: &[u8]) -> Self {
        let number = || {
            let (Value::Elements(_, 2, bytes), _) = Value::read(reply)? else { return None };
            let (_, at) = Value::read(bytes)?;
            let (Value::Bulk(number), _) = Value::read(&bytes[at..])? else { return None };
            std::str::from_utf8(number).ok()?.parse().ok()
        };
        Longest::Is(number().unwrap_or(DEFAULT_LONGEST))
    }
}

/// What a node's reply is for. There is one for each request in flight, so it is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) client: Conn,
    /// The slot number in the client's ring.
    pub(crate) slot: u32,
    /// The number of the part of the client's reply, if it has several.
    pub(crate) part: u32,
    /// When the request was given to the connection: a number of [`Clock`](crate::observe::clock::Clock).
    pub(crate) sent_us: u32,
    pub(crate) what: What,
    pub(crate) class: Class,
    /// Whether the request is among those of which something is kept: see [`Kept`].
    pub(crate) is_kept: bool,
}

impl Waiter {
    /// One for a reply whose duration is not measured.
    pub(crate) fn new(client: Conn, slot: u32, what: What) -> Self {
        Waiter { client, slot, part: 0, sent_us: 0, what, class: Class::Other, is_kept: false }
    }

    /// One for this part of a client's reply.
    pub(crate) fn part(client: Conn, slot: u32, part: usize) -> Self {
        // Fits: a request has at most a million arguments.
        Waiter { part: part as u32, ..Waiter::new(client, slot, What::Part) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The client's whole reply.
    Whole,
    /// A part of the client's reply.
    Part,
    /// The reply to a command that prepares the connection. Any reply except an error is fine.
    Prepared,
    /// The same, of the SELECT that shows whether the database exists.
    Selected,
    /// The reply to a command that the proxy sent for the client in a transaction. The client does
    /// not see it.
    Queued,
    /// The reply to AUTH.
    Authenticated,
    /// The reply that shows whether the connection can be used: to MULTI, or to PING before the first
    /// subscription. The client sees nothing of it, but waits for it.
    Begun,
    /// The reply to a question that decides whether a command of the client is carried out: whether its user name and
    /// password are right, or whether its user may send the command. The client sees nothing of it, but waits for it.
    Asked,
    /// The reply to AUTH with a password that nobody has: whether the user needs none. The client waits for it, too.
    AskedAny,
    /// The reply to a probe.
    Probed,
    /// What a node reports of its cluster.
    Slots,
    /// What a Sentinel reports of a master.
    Master,
    /// The reply to SUBSCRIBE or PING over the connection for announcements.
    Announced,
    /// The reply to ROLE: the node must be a master.
    Role,
    /// The limit on an argument.
    Longest,
    /// The description of a command.
    Described,
    /// The version of the node.
    Version,
    /// The number of the connection.
    Number,
    /// Whether the client's blocking command was ended.
    Unblocked,
}

impl Upstream {
    pub(crate) fn new(conn: Conn, node: usize, pool: usize, use_: Use, now: Instant) -> Self {
        Upstream {
            conn,
            node,
            pool,
            use_,
            is_open: false,
            is_verified: false,
            left: None,
            not_opened: None,
            is_admitted: true,
            denied: None,
            replies: Replies::default(),
            partial: Vec::new(),
            seen: 0,
            streamed: 0,
            most: if use_ == Use::Login { LOGINS } else { OWED },
            waiting: VecDeque::new(),
            kept: Kept::default(),
            since: now,
            begun_us: None,
            charged: None,
            held: Vec::new(),
            described: VecDeque::new(),
            longest: Longest::Unknown,
            number: None,
        }
    }

    /// Registers a pending reply.
    #[inline]
    pub(crate) fn wait(&mut self, waiter: Waiter, now: Instant) {
        if self.waiting.is_empty() {
            self.since = now;
            // What has arrived is not the reply to this.
            self.begun_us = None;
        }
        self.waiting.push_back(waiter);
    }

    /// Registers the pending reply to a request. `kept`: what is kept of it for the slow log and a cluster, if these need
    /// something.
    #[inline]
    pub(crate) fn wait_for(&mut self, waiter: Waiter, kept: Option<(&[u8], Entry)>, now: Instant) {
        let is_kept = kept.is_some_and(|(request, entry)| self.kept.push(request, entry));
        self.wait(Waiter { is_kept, ..waiter }, now);
    }

    /// Registers a pending reply to the proxy itself.
    pub(crate) fn wait_for_itself(&mut self, what: What, now: Instant) {
        self.wait(Waiter::new(self.conn, 0, what), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_the_queue_is_small() {
        assert!(size_of::<Waiter>() <= 24, "{} bytes", size_of::<Waiter>());
    }

    #[test]
    fn a_node_that_does_not_report_its_limit_has_the_default() {
        for (reply, limit) in [
            ("*2\r\n$18\r\nproto-max-bulk-len\r\n$7\r\n1048576\r\n", 1 << 20),
            ("%1\r\n$18\r\nproto-max-bulk-len\r\n$7\r\n2000000\r\n", 2_000_000),
            ("-NOPERM this user has no permissions\r\n", DEFAULT_LONGEST),
            ("*0\r\n", DEFAULT_LONGEST),
            ("*2\r\n$18\r\nproto-max-bulk-len\r\n$2\r\n-1\r\n", DEFAULT_LONGEST),
        ] {
            assert_eq!(Longest::of(reply.as_bytes()), Longest::Is(limit), "{reply}");
        }
    }
}
