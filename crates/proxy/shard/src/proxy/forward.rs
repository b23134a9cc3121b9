//! Requests to nodes over shared connections.

use crate::{
    clients::{
        client::{Client, OWED},
        next::Next,
        routed::Routed,
    },
    node::{
        kept::{ENTRY, Entry, HEAD, MOST},
        pools::Key,
        upstream::{STRANGERS, Upstream, Use, Waiter, What},
    },
    peers::Peer,
    proxy::{
        sentinel::ask_for_role,
        state::{Fx, OFF, Proxy},
    },
    reply::merging::{Merging, Rule},
};
use rand::Rng;
use regatta_engine::{Conn, ConnInterest};
use regatta_keyspace::{
    command::flag,
    route::{Cursor, Decision, Merge, Part, Plan},
};
use regatta_proto::resp::{Command, write_command};
use std::sync::Arc;

/// Unsent bytes to a node beyond which the clients that use it are paused.
pub(crate) const FULL: usize = 1 << 20;

// Connections of one client keep the first bytes of requests, and none is without an entry: in a cluster its slot matters.
const _: () = assert!(OWED * (ENTRY + HEAD) < MOST);

impl Proxy {
    /// Forwards a request to one node. Its reply is sent to the client.
    #[inline]
    pub(crate) fn forward(
        &mut self,
        client: &mut Client,
        node: usize,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Next {
        let Some(conn) = self.shared_to(client.pool, node, effects) else {
            let why = self.unavailable(client.pool, node);
            client.fail(&[&why], effects);
            return Next::Go;
        };
        if self.is_full(client, conn, effects) {
            return Next::Full;
        }
        if let Some(next) = self.exceeds(client, conn, command, effects) {
            return next;
        }
        self.send(client, conn, command, effects);
        Next::Go
    }

    /// Sends a request over a connection that can take output.
    #[inline]
    pub(crate) fn send(
        &mut self,
        client: &mut Client,
        conn: Conn,
        command: &Command<'_>,
        effects: &mut Fx,
    ) {
        let waiter = Waiter::new(client.conn, client.ring.wait(), What::Whole);
        self.send_part(waiter, conn, effects, |out| as_array(command, out));
    }

    /// Sends the parts of a split request.
    pub(crate) fn split(
        &mut self,
        client: &mut Client,
        routed: Routed<'_>,
        merge: Merge,
        effects: &mut Fx,
    ) -> Next {
        let plan = std::mem::take(&mut self.plan);
        let next = self.send_parts(client, routed, (merge, &plan), effects);
        self.plan = plan;
        next
    }

    fn send_parts(
        &mut self,
        client: &mut Client,
        Routed { command, decision }: Routed<'_>,
        (merge, plan): (Merge, &Plan),
        effects: &mut Fx,
    ) -> Next {
        let asked = || plan.parts().map(|part| part.node);
        let conns = match self.all_of(client, asked(), command, effects) {
            Ok(conns) => conns,
            Err(next) => return next,
        };
        let mut merging = self.merging(Rule::split(merge, plan), asked(), decision);
        if self.cluster.is_some() {
            merging.is_by_slots();
        }
        let slot = client.ring.merge(Box::new(merging));
        for (number, (part, conn)) in plan.parts().zip(conns).enumerate() {
            let waiter = Waiter::part(client.conn, slot, number);
            self.group = Some(part.group);
            self.send_part(waiter, conn, effects, |out| write_part(command, part, out));
        }
        Next::Go
    }

    /// Sends a request to every node.
    pub(crate) fn send_to_all(
        &mut self,
        client: &mut Client,
        Routed { command, decision }: Routed<'_>,
        merge: Merge,
        effects: &mut Fx,
    ) -> Next {
        let nodes = self.all_nodes(decision);
        self.group = None;
        let conns = match self.all_of(client, nodes.iter().copied(), command, effects) {
            Ok(conns) => conns,
            Err(next) => return next,
        };
        // The first value found is returned: start at a random node, so that none is preferred.
        let count = nodes.len();
        let first = if merge == Merge::AnyValue { self.random.random_range(0..count) } else { 0 };
        let order = (first..count).chain(0..first);
        let asked = order.clone().map(|at| nodes[at]);
        let mut merging = self.merging(Rule::All(merge), asked, decision);
        if self.needs_confirmation(decision) {
            merging.needs_confirmation();
        }
        let slot = client.ring.merge(Box::new(merging));
        self.asks_all(client.conn, slot, effects.now().instant);
        for (number, at) in order.enumerate() {
            let waiter = Waiter::part(client.conn, slot, number);
            self.send_part(waiter, conns[at], effects, |out| as_array(command, out));
        }
        Next::Go
    }

    /// Sends SCAN to the current node, with that node's own cursor.
    pub(crate) fn scan(
        &mut self,
        client: &mut Client,
        Routed { command, decision }: Routed<'_>,
        cursor: Cursor,
        effects: &mut Fx,
    ) -> Next {
        // Later calls are checked when the scan leaves a node.
        if command.arg(1) == Some(&b"0"[..])
            && let Some(next) = self.waits_for_view(client, decision, effects)
        {
            return next;
        }
        let next = self.send_scan(client, command, cursor, effects);
        self.has_used_view(client.conn, &next);
        next
    }

    fn send_scan(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        cursor: Cursor,
        effects: &mut Fx,
    ) -> Next {
        let conns = match self.all_of(client, std::iter::once(cursor.node), command, effects) {
            Ok(conns) => conns,
            Err(next) => return next,
        };
        let nodes = self.order.len();
        let mut merging = Merging::new(
            Rule::Scan { cursor, nodes },
            [cursor.node],
            false,
            Arc::clone(&self.settings.nodes),
        );
        if self.cluster.is_some() {
            merging.needs_confirmation();
        }
        let slot = client.ring.merge(Box::new(merging));
        self.asks_all(client.conn, slot, effects.now().instant);
        let waiter = Waiter::part(client.conn, slot, 0);
        self.send_part(waiter, conns[0], effects, |out| write_scan(command, cursor, out));
        Next::Go
    }

    /// Returns the shared connections to these nodes. If one of the nodes is down, or does not accept
    /// so long an argument, nothing is sent to any of them, and the client gets an error. If one reads
    /// too slowly, the client waits.
    fn all_of(
        &mut self,
        client: &mut Client,
        nodes: impl Iterator<Item = usize>,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Result<Vec<Conn>, Next> {
        let mut conns = Vec::new();
        for node in nodes {
            let Some(conn) = self.shared_to(client.pool, node, effects) else {
                let why = self.unavailable(client.pool, node);
                client.fail(&[&why, b"; nothing was sent"], effects);
                return Err(Next::Go);
            };
            if self.is_full(client, conn, effects) {
                return Err(Next::Full);
            }
            if let Some(next) = self.exceeds(client, conn, command, effects) {
                return Err(next);
            }
            conns.push(conn);
        }
        Ok(conns)
    }

    fn merging(
        &self,
        rule: Rule,
        asked: impl IntoIterator<Item = usize>,
        decision: &Decision,
    ) -> Merging {
        let writes = decision.command.is_some_and(|command| command.has(flag::WRITE));
        Merging::new(rule, asked, writes, Arc::clone(&self.settings.nodes))
    }

    /// Sends a request of a client, or a part of one, over a connection that can take output. `waiter`: for its reply;
    /// `write` appends it. [`Proxy::input`] schedules the check for all requests together.
    #[inline]
    pub(crate) fn send_part(
        &mut self,
        waiter: Waiter,
        conn: Conn,
        effects: &mut Fx,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let now = effects.now().instant;
        let (sent_us, class) = (self.clock.at_us(now), self.class);
        let request = written(effects, conn, write);
        if let Some(upstream) = self.peers.upstream(conn) {
            let entry = Entry { arrived_us: self.arrived_us, slot: self.group, hops: 0 };
            let is_kept = self.slow_us != OFF || self.cluster.is_some();
            let kept = is_kept.then_some((request, entry));
            upstream.wait_for(Waiter { sent_us, class, ..waiter }, kept, now);
        }
    }

    /// Chooses a node for a request that any node can answer: the same one for a client while it is
    /// up.
    pub(crate) fn any_node(&self, client: &Client) -> usize {
        let nodes = self.order.len();
        if nodes == 0 {
            return 0;
        }
        let first = (client.identity.id % nodes as u64) as usize;
        let order = (first..nodes).chain(0..first);
        let mut order = order.map(|at| self.order[at]);
        let found = order.find(|node| self.health[*node].why_down().is_none());
        found.unwrap_or(self.order[first])
    }

    /// Returns whether a node reads too slowly, or has not accepted the user of the connection yet. The client then
    /// waits.
    #[inline]
    pub(crate) fn is_full(&mut self, client: &mut Client, conn: Conn, effects: &mut Fx) -> bool {
        let Some(upstream) = self.peers.upstream(conn) else { return false };
        let has_room = effects.pending(conn) < FULL;
        let takes_more =
            upstream.waiting.len() < upstream.most && upstream.kept.whole_bytes() < MOST;
        if upstream.is_admitted && has_room && takes_more {
            return false;
        }
        upstream.hold(client);
        if upstream.is_admitted && !has_room {
            upstream.wants_drained(true, effects);
        }
        true
    }

    /// Lets clients continue that waited for room, in this order: the last one that is due resumes first.
    pub(crate) fn release(&mut self, held: Vec<Conn>) {
        for conn in held.into_iter().rev() {
            if let Some(client) = self.peers.client(conn) {
                client.node_is_full = false;
            }
            self.resume_later(conn);
        }
    }

    /// Returns the pool's connection to a node, and opens it if necessary. `None` if the node is
    /// down, or does not accept the pool's user; see [`Proxy::unavailable`].
    #[inline]
    pub(crate) fn shared_to(&mut self, pool: usize, node: usize, effects: &mut Fx) -> Option<Conn> {
        match self.pools.get(pool).shared[node] {
            Some(conn) if effects.out(conn).is_some() => Some(conn),
            _ => self.open_shared(pool, node, effects),
        }
    }

    #[cold]
    fn open_shared(&mut self, pool: usize, node: usize, effects: &mut Fx) -> Option<Conn> {
        let conn = self.connect(pool, node, Use::Shared, effects)?;
        self.pools.get(pool).shared[node] = Some(conn);
        Some(conn)
    }

    /// Opens a connection to a node and prepares it for the clients of a pool. `None` if the node
    /// is down, or does not accept the pool's user; see [`Proxy::unavailable`].
    pub(crate) fn connect(
        &mut self,
        pool: usize,
        node: usize,
        use_: Use,
        effects: &mut Fx,
    ) -> Option<Conn> {
        if use_ != Use::Probe && self.health[node].why_down().is_some() {
            return None;
        }
        let now = effects.now().instant;
        if use_ != Use::Probe && self.pools.get(pool).is_refused(node, now) {
            return None;
        }
        if self.sentinel.is_some() && !self.has_master(node, effects) {
            return None;
        }
        let settings = &self.settings;
        let conn = effects.connect(settings.nodes.address(node));
        let mut upstream = Box::new(Upstream::new(conn, node, pool, use_, now));
        let Key { database, resp3, user } = self.pools.get(pool).key.clone();
        let out = effects.out(conn)?;
        if let Some(user) = user {
            write_command(user.auth(), out);
            upstream.wait_for_itself(What::Authenticated, now);
            upstream.is_admitted = false;
        } else if let Some(own) = &settings.auth.nodes {
            write_command([&b"AUTH"[..], &own.user, &own.password], out);
            upstream.wait_for_itself(What::Authenticated, now);
        }
        if self.sentinel.is_some() {
            ask_for_role(&mut upstream, out, now);
        }
        if resp3 {
            write_command([&b"HELLO"[..], b"3"], out);
            upstream.wait_for_itself(What::Prepared, now);
        }
        if database > 0 {
            write_command([&b"SELECT"[..], database.to_string().as_bytes()], out);
            upstream.wait_for_itself(What::Selected, now);
        }
        // A connection is opened again after each loss, and the node may then have another version.
        if use_ == Use::Shared {
            if self.cluster.is_some() {
                upstream.kept.keep_whole();
            }
            if settings.auth.of_nodes && upstream.is_admitted {
                upstream.most = STRANGERS;
            }
            write_command([&b"INFO"[..], b"server"], out);
            upstream.wait_for_itself(What::Version, now);
        }
        if use_ == Use::Probe {
            write_command([&b"PING"[..]], out);
            upstream.wait_for_itself(What::Probed, now);
        }
        // `check_nodes` enforces the reply timeout.
        effects.set(conn, ConnInterest { waits: true, ..ConnInterest::default() });
        self.peers.put(conn, Peer::Upstream(upstream));
        self.check_soon(now);
        Some(conn)
    }
}

impl Upstream {
    /// Lets a client wait until the connection can be used: see [`Upstream::held`].
    #[cold]
    pub(crate) fn hold(&mut self, client: &mut Client) {
        self.held.push(client.conn);
        client.node_is_full = true;
    }

    /// Sets whether [`Engine::room`](regatta_engine::Engine::room) is called once all output to the
    /// node has been written.
    pub(crate) fn wants_drained(&self, wants_drained: bool, effects: &mut Fx) {
        effects
            .set(self.conn, ConnInterest { waits: true, wants_drained, ..ConnInterest::default() });
    }
}

/// Appends to the output of a connection. Returns what was appended.
#[inline]
fn written(effects: &mut Fx, conn: Conn, write: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
    let Some(out) = effects.out(conn) else { return b"" };
    let start = out.len();
    write(out);
    &out[start..]
}

/// Appends a request as a RESP array, even if it was sent inline.
#[inline]
pub(crate) fn as_array(command: &Command<'_>, out: &mut Vec<u8>) {
    if command.inline {
        write_command(command.args(), out);
    } else {
        out.extend_from_slice(command.bytes);
    }
}

/// Appends SCAN with the node's cursor.
pub(crate) fn write_scan(command: &Command<'_>, cursor: Cursor, out: &mut Vec<u8>) {
    let own = cursor.cursor.to_string();
    let args = command.args().enumerate();
    let args: Vec<&[u8]> = args.map(|(i, arg)| if i == 1 { own.as_bytes() } else { arg }).collect();
    write_command(args, out);
}

/// Appends one node's part of a request.
pub(crate) fn write_part(command: &Command<'_>, part: Part<'_>, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let mut head = |kind: u8, count: usize, out: &mut Vec<u8>| {
        out.push(kind);
        out.extend_from_slice(digits.format(count).as_bytes());
        out.extend_from_slice(b"\r\n");
    };
    let arguments = part.arguments();
    head(b'*', part.prefix() + arguments.len(), out);
    for argument in (0..part.prefix()).chain(arguments).filter_map(|at| command.arg(at)) {
        head(b'$', argument.len(), out);
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
}
