//! A client's requests and their routing to the nodes.

use super::node::Node;
use crate::{
    clients::{
        blocking::BlockingTime,
        identity::{self, Identity, NO_AUTH, bulked, is_set_info, set_info},
    },
    node::loss_reason::Loss,
    proxy::forward::{as_array, write_part, write_scan},
    reply::{
        errors::{self, EXEC_REFUSED},
        info::Core,
        merging::{Merging, Rule},
    },
    settings::Settings,
    shared::Shared,
};
use regatta_keyspace::{
    command::flag,
    map::Map,
    route::{Cursor, Decision, Lease, Local, Merge, Place, Plan, Route, decide, unsupported},
};
use regatta_proto::resp::{Command, write_command};
use regatta_service::style::{own_connections::ConnectingStream, sequential::is_timeout};
use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    sync::Arc,
};

const NOT_HERE: &str = "this is a sequential model; use select, poll, epoll, percore or uring";

/// Maximum size of a reply to AUTH, HELLO, SELECT or CLIENT, in bytes.
pub(super) const LONGEST: usize = 64 * 1024;

/// A client, its connections to the nodes, and its pending replies.
pub(super) struct Session<'s, P> {
    pub(super) shared: &'s Shared,
    identity: Identity,
    pub(super) map: Arc<Map>,
    database: u32,
    pub(super) links: Vec<Link<P>>,
    pub(super) owed: VecDeque<Owed>,
    /// Bytes of requests since replies were last waited for.
    pub(super) asked: usize,
    plan: Plan,
}

/// The connection to a node.
pub(super) enum Link<P> {
    /// It will be opened for the first request.
    Closed,
    Open(Box<Node<P>>),
    /// It could not be opened, or its pending replies are lost. A new connection is opened for the
    /// first request after the pending replies.
    Lost(Loss),
}

/// A pending reply.
pub(super) enum Owed {
    /// It is already complete.
    Ready(Vec<u8>),
    /// The next reply of this node. `blocks`: how long its command may block.
    Whole { node: usize, blocks: Option<BlockingTime> },
    /// Merged from the next replies of these nodes.
    Merged { merging: Box<Merging>, nodes: Vec<usize> },
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Its reply is pending.
    Owed,
    /// Its reply is pending; later requests are not read until it has arrived.
    Blocks,
    /// Nothing yet: it must be repeated when no reply is pending.
    Later,
    /// Its reply is pending, and is the last.
    Last,
}

impl<'s, P: Read + Write> Session<'s, P> {
    pub(super) fn new(shared: &'s Shared) -> Self {
        Session {
            shared,
            identity: Identity::new(shared, &shared.settings.auth),
            map: Arc::clone(&shared.settings.map),
            database: 0,
            links: (0..shared.settings.nodes.count()).map(|_| Link::Closed).collect(),
            owed: VecDeque::new(),
            asked: 0,
            plan: Plan::default(),
        }
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.identity.is_trusted
    }

    pub(super) fn settings(&self) -> &'s Settings {
        &self.shared.settings
    }

    /// Replies with an error. The parts are concatenated.
    pub(super) fn fail(&mut self, parts: &[&[u8]]) {
        self.owed.push_back(Owed::Ready(errors::line(parts)));
    }

    /// Routes a request, and adds it to the output of its nodes.
    pub(super) fn ask<T: ConnectingStream<Peer = P>>(
        &mut self,
        command: &Command<'_>,
        stream: &T,
    ) -> Asked {
        self.asked += command.bytes.len();
        // With another map, a request could overtake earlier ones.
        if self.owed.is_empty()
            && let Some(map) = self.shared.newer_map(self.map.epoch())
        {
            self.map = map;
        }
        let mut plan = std::mem::take(&mut self.plan);
        let mut decision = decide(command, &self.map, &mut plan);
        if !self.shared.settings.splits_writes {
            decision = decision.without_split_writes();
        }
        let asked = self.go(command, &decision, &plan, stream);
        self.plan = plan;
        asked
    }

    fn go<T: ConnectingStream<Peer = P>>(
        &mut self,
        command: &Command<'_>,
        decision: &Decision,
        plan: &Plan,
        stream: &T,
    ) -> Asked {
        let is_trusted = self.identity.is_trusted;
        match &decision.route {
            Route::Local(local) => return self.answer_locally(*local, command, stream),
            Route::Refused(_) if is_trusted && is_set_info(command) => {
                self.owed.push_back(Owed::Ready(set_info(command)));
            }
            Route::Refused(text) => self.fail(&[text]),
            _ if !is_trusted && decision.name() == "exec" => self.fail(&[EXEC_REFUSED, NO_AUTH]),
            _ if !is_trusted => self.fail(&[NO_AUTH]),
            Route::OneNode(node) => self.forward(*node, None, command, stream),
            Route::Lease(Lease::Blocking, Place::Node(node)) => {
                self.forward(*node, Some(BlockingTime::of(command)), command, stream);
                return Asked::Blocks;
            }
            Route::AnyNode => match self.any_node(stream) {
                Ok(node) => self.forward(node, None, command, stream),
                Err((node, loss)) => {
                    let text = self.not_sent(node, &loss);
                    self.fail(&[text.as_bytes()]);
                }
            },
            Route::Split(merge) => {
                let nodes = plan.parts().map(|part| part.node).collect();
                let mut parts = plan.parts();
                self.spread(Rule::split(*merge, plan), nodes, decision, stream, |out| {
                    if let Some(part) = parts.next() {
                        write_part(command, part, out);
                    }
                });
            }
            Route::AllNodes(merge) => {
                let count = self.links.len();
                // The first value found is returned: start at a random node, so that none is
                // preferred.
                let is_search = *merge == Merge::AnyValue;
                let first = if is_search { rand::random_range(0..count) } else { 0 };
                let nodes = (first..count).chain(0..first).collect();
                self.spread(Rule::All(*merge), nodes, decision, stream, |out| {
                    as_array(command, out)
                });
            }
            Route::Scan(cursor) => {
                let rule = Rule::Scan { cursor: *cursor, nodes: self.links.len() };
                let Cursor { node, .. } = *cursor;
                self.spread(rule, vec![node], decision, stream, |out| {
                    write_scan(command, *cursor, out);
                });
            }
            Route::Lease(..) => {
                let text = decision.command.map(|command| unsupported(command, NOT_HERE));
                self.fail(&[&text.unwrap_or_default()]);
            }
        }
        Asked::Owed
    }

    /// Sends a request to one node. Its reply is the client's.
    fn forward<T: ConnectingStream<Peer = P>>(
        &mut self,
        node: usize,
        blocks: Option<BlockingTime>,
        command: &Command<'_>,
        stream: &T,
    ) {
        match self.link(node, stream) {
            Ok(link) => {
                link.is_quiet = false;
                if blocks.is_some() && link.number.is_none() {
                    write_command([&b"CLIENT"[..], b"ID"], &mut link.out);
                }
                as_array(command, &mut link.out);
                self.owed.push_back(Owed::Whole { node, blocks });
            }
            Err(loss) => {
                let text = self.not_sent(node, &loss);
                self.fail(&[text.as_bytes()]);
            }
        }
    }

    /// Sends a request, or parts of it, to several nodes. If one of them cannot be reached, nothing
    /// is sent. `write`: appends the part for the next node.
    #[expect(clippy::too_many_arguments, reason = "a request and its nodes")]
    fn spread<T: ConnectingStream<Peer = P>>(
        &mut self,
        rule: Rule,
        nodes: Vec<usize>,
        decision: &Decision,
        stream: &T,
        mut write: impl FnMut(&mut Vec<u8>),
    ) {
        for &node in &nodes {
            if let Err(loss) = self.link(node, stream) {
                let text = self.not_sent(node, &loss);
                return self.fail(&[text.as_bytes(), b"; nothing was sent"]);
            }
        }
        for &node in &nodes {
            if let Link::Open(link) = &mut self.links[node] {
                link.is_quiet = false;
                write(&mut link.out);
            }
        }
        let writes = decision.command.is_some_and(|command| command.has(flag::WRITE));
        let all = Arc::clone(&self.settings().nodes);
        let merging = Box::new(Merging::new(rule, nodes.iter().copied(), writes, all));
        self.owed.push_back(Owed::Merged { merging, nodes });
    }

    /// Chooses a node for a request that any node can answer: the same one while it can be reached.
    /// The error is that of the first node.
    fn any_node<T: ConnectingStream<Peer = P>>(
        &mut self,
        stream: &T,
    ) -> Result<usize, (usize, Loss)> {
        let count = self.links.len();
        let first = (self.identity.id % count as u64) as usize;
        let mut why = None;
        for node in (first..count).chain(0..first) {
            match self.link(node, stream) {
                Ok(_) => return Ok(node),
                Err(loss) => why = why.or(Some((node, loss))),
            }
        }
        Err(why.unwrap_or((first, Loss::Closed)))
    }

    fn not_sent(&self, node: usize, loss: &Loss) -> String {
        loss.text(self.settings().nodes.name(node), false, self.settings().node_timeout)
    }

    /// Returns the connection to a node, and opens it if necessary. After a failure, it is not
    /// retried until the pending replies have arrived.
    fn link<T: ConnectingStream<Peer = P>>(
        &mut self,
        node: usize,
        stream: &T,
    ) -> Result<&mut Node<P>, Loss> {
        // An idle node sends nothing, unless it has closed the connection.
        if let Link::Open(link) = &self.links[node]
            && link.is_quiet
            && stream.is_readable(&link.peer)
        {
            self.links[node] = Link::Closed;
        }
        if matches!(self.links[node], Link::Closed) {
            self.links[node] = match self.open(node, stream) {
                Ok(link) => Link::Open(Box::new(link)),
                Err(loss) => {
                    self.shared.counts.lost.add(1);
                    self.settings().nodes.doubt(node);
                    Link::Lost(loss)
                }
            };
        }
        match &mut self.links[node] {
            Link::Open(link) => Ok(link),
            Link::Lost(loss) => Err(loss.clone()),
            Link::Closed => Err(Loss::Closed),
        }
    }

    /// Opens a connection to a node and prepares it for the client.
    pub(super) fn open<T: ConnectingStream<Peer = P>>(
        &self,
        node: usize,
        stream: &T,
    ) -> Result<Node<P>, Loss> {
        let settings = self.settings();
        let address = settings.nodes.address(node);
        let peer =
            stream.connect(address, settings.node_timeout).map_err(|error| not_opened(&error))?;
        let mut link = Node::new(peer);
        let mut replies = 0;
        let mut prepare = |args: &[&[u8]]| {
            write_command(args.iter().copied(), &mut link.out);
            replies += 1;
        };
        if let Some(own) = &settings.auth.nodes {
            prepare(&[b"AUTH", &own.user, &own.password]);
        }
        if self.identity.resp3 {
            prepare(&[b"HELLO", b"3"]);
        }
        if self.database > 0 {
            prepare(&[b"SELECT", self.database.to_string().as_bytes()]);
        }
        link.send()?;
        for _ in 0..replies {
            if let [b'-', text @ .., b'\r', b'\n'] = &link.reply(LONGEST)?[..] {
                return Err(Loss::Refused(text.to_vec()));
            }
        }
        Ok(link)
    }

    /// Answers a command in the proxy.
    fn answer_locally<T: ConnectingStream<Peer = P>>(
        &mut self,
        local: Local,
        command: &Command<'_>,
        stream: &T,
    ) -> Asked {
        let own = self.settings().auth.clients.as_ref();
        let may = matches!(local, Local::Auth | Local::Hello | Local::Quit | Local::Reset);
        let reply = match local {
            _ if !self.identity.is_trusted && !may => Err(NO_AUTH.to_vec()),
            Local::Ping => self.identity.ping(command, false),
            Local::Echo => Ok(bulked(command.arg(1).unwrap_or_default())),
            Local::Quit => {
                self.owed.push_back(Owed::Ready(b"+OK\r\n".to_vec()));
                return Asked::Last;
            }
            Local::Auth => self.identity.auth(command, own),
            Local::Client => self.identity.client(command),
            Local::SlowLog => {
                Err(format!("ERR the proxy does not support 'slowlog': {NOT_HERE}").into_bytes())
            }
            Local::Info => {
                let state = |node: usize| match &self.links[node] {
                    Link::Open(_) => "connected".to_string(),
                    Link::Closed | Link::Lost(_) => "not connected".to_string(),
                };
                Ok(self.identity.info(command, self.shared, &Core { held: 0, state: &state }))
            }
            // These need other connections: no request may be in flight.
            Local::Hello | Local::Reset | Local::Select if !self.owed.is_empty() => {
                return Asked::Later;
            }
            Local::Hello => {
                let before = self.identity.resp3;
                let reply = self.identity.hello(command, own, &self.shared.version());
                if self.identity.resp3 != before {
                    self.close_links();
                }
                reply
            }
            Local::Reset => {
                self.identity.reset(own);
                self.database = 0;
                self.close_links();
                Ok(b"+RESET\r\n".to_vec())
            }
            Local::Select => self.select(command, stream),
        };
        match reply {
            Ok(reply) => self.owed.push_back(Owed::Ready(reply)),
            Err(text) => self.fail(&[&text]),
        }
        Asked::Owed
    }

    /// Changes the database, if a node accepts it.
    fn select<T: ConnectingStream<Peer = P>>(
        &mut self,
        command: &Command<'_>,
        stream: &T,
    ) -> Result<Vec<u8>, Vec<u8>> {
        let database = identity::database(command)?;
        if database != self.database {
            let before = std::mem::replace(&mut self.database, database);
            self.close_links();
            if let Err((node, loss)) = self.any_node(stream) {
                self.database = before;
                self.close_links();
                return Err(match loss {
                    // The node's own words.
                    Loss::Refused(text) => text,
                    other => self.not_sent(node, &other).into_bytes(),
                });
            }
        }
        Ok(b"+OK\r\n".to_vec())
    }

    fn close_links(&mut self) {
        self.links.iter_mut().for_each(|link| *link = Link::Closed);
    }
}

/// Converts an error of opening a connection.
fn not_opened(error: &io::Error) -> Loss {
    use io::ErrorKind::*;
    match error.kind() {
        _ if is_timeout(error) => Loss::TimedOut,
        ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable => Loss::Closed,
        _ => Loss::NotOpened(error.to_string()),
    }
}

impl<P> Drop for Session<'_, P> {
    fn drop(&mut self) {
        self.shared.counts.disconnections.add(1);
    }
}
