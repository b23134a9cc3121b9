//! Transactions, watched keys and blocking commands, which use a leased connection.
//!
//! A transaction runs on the node of its watched keys or its first key; if it has none, on any node.
//! Commands before that key are answered with `QUEUED` by the proxy, and are sent once the node is
//! known.

use crate::{
    clients::{
        client::{Client, Mode},
        leased::{Multi, Transaction},
        next::Next,
        routed::Routed,
    },
    node::{
        loss_reason::Loss,
        upstream::{Waiter, What},
    },
    proxy::{
        forward::as_array,
        lease::Unleased,
        state::{Fx, Proxy},
    },
};
use regatta_engine::Conn;
use regatta_keyspace::route::{Decision, Lease, Local, Place, Route, cross_slot};
use regatta_proto::resp::{Command, write_command};

/// Bytes of commands that may be queued before the node is known.
const EARLY: usize = 1 << 20;

impl Client {
    /// The state of its leased connection.
    pub(crate) fn transaction(&mut self) -> &mut Transaction {
        if !matches!(self.mode, Mode::Leased(_)) {
            self.mode = Mode::Leased(Box::default());
        }
        let Mode::Leased(transaction) = &mut self.mode else { unreachable!("it was just set") };
        transaction
    }

    /// Marks the transaction as aborted: EXEC will fail, too.
    fn abort_multi(&mut self, error: &[&[u8]], effects: &mut Fx) -> Next {
        if let Some(multi) = &mut self.transaction().multi {
            multi.is_aborted = true;
        }
        self.fail(error, effects);
        Next::Go
    }

    /// Marks the command in flight as the last of the transaction.
    fn end(&mut self) -> Next {
        self.transaction().ends = true;
        Next::Stop
    }
}

impl Proxy {
    /// Handles MULTI, EXEC, DISCARD or UNWATCH of a client that is not in a transaction.
    pub(crate) fn begin(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Next {
        let name = command.arg(0).unwrap_or_default();
        if name.eq_ignore_ascii_case(b"multi") {
            client.transaction().multi = Some(Multi::default());
            client.answer(b"+OK\r\n", effects);
        } else if name.eq_ignore_ascii_case(b"unwatch") {
            client.answer(b"+OK\r\n", effects);
        } else {
            client.fail(&[b"ERR ", &name.to_ascii_uppercase(), b" without MULTI"], effects);
        }
        Next::Go
    }

    /// Handles a command of a client that is in a transaction or watches keys.
    pub(crate) fn in_transaction(
        &mut self,
        client: &mut Client,
        routed: Routed<'_>,
        effects: &mut Fx,
    ) -> Next {
        let Routed { command, decision } = routed;
        match &decision.route {
            Route::Local(local @ (Local::Quit | Local::Reset)) => {
                self.answer_locally(client, command, *local, effects)
            }
            _ if self.is_lease_full(client, effects) => Next::Full,
            _ if client.transaction().multi.is_some() => {
                self.in_multi(client, command, decision, effects)
            }
            _ => self.watching(client, routed, effects),
        }
    }

    /// Returns whether the node reads too slowly from the leased connection. The client then waits
    /// for room.
    fn is_lease_full(&mut self, client: &mut Client, effects: &mut Fx) -> bool {
        let transaction = client.transaction();
        let lease = transaction.lease.filter(|_| transaction.lost.is_none());
        lease.is_some_and(|(_, conn)| self.is_full(client, conn, effects))
    }

    /// Handles a command between MULTI and EXEC.
    fn in_multi(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        decision: &Decision,
        effects: &mut Fx,
    ) -> Next {
        let name = decision.name();
        match (name, &decision.route) {
            // Even an EXEC with a wrong number of arguments ends the transaction.
            ("exec", Route::Refused(text)) => {
                client.transaction().is_dirty = true;
                client.fail(&[text], effects);
                client.end()
            }
            (_, Route::Refused(text)) => client.abort_multi(&[text], effects),
            ("multi", _) => {
                client.fail(&[b"ERR MULTI calls can not be nested"], effects);
                Next::Go
            }
            ("watch", _) => {
                client.fail(&[b"ERR WATCH inside MULTI is not allowed"], effects);
                Next::Go
            }
            ("exec", _) => self.exec(client, command, effects),
            ("discard", _) => self.discard(client, command, effects),
            // Each node of a cluster passes messages on to all others.
            ("publish", Route::OneNode(_)) if self.cluster.is_some() => {
                self.queue(client, command, None, effects)
            }
            (_, Route::OneNode(node) | Route::Lease(Lease::Blocking, Place::Node(node))) => {
                self.queue(client, command, Some(*node), effects)
            }
            ("unwatch", _) | (_, Route::AnyNode | Route::Local(Local::Ping | Local::Echo)) => {
                self.queue(client, command, None, effects)
            }
            (_, Route::Split(_)) => client.abort_multi(&[&cross_slot()], effects),
            _ => {
                let text = format!("ERR the proxy does not support '{name}' inside a transaction");
                client.abort_multi(&[text.as_bytes()], effects)
            }
        }
    }

    /// Queues a command. `node`: the node of its keys, if it has any.
    fn queue(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        node: Option<usize>,
        effects: &mut Fx,
    ) -> Next {
        let transaction = client.transaction();
        let lease = transaction.lease;
        // A slot that has moved is still of its group: its node refuses the command. A command without keys has none.
        let is_elsewhere = |leased: usize, node: usize| match (transaction.group, self.group) {
            (Some(group), Some(own)) => own != group,
            _ => leased != node,
        };
        let conn = match (lease, node) {
            (Some(_), _) if transaction.lost.is_some() => {
                let why = self.lost(transaction);
                return client.abort_multi(&[&why], effects);
            }
            (Some((leased, _)), Some(node)) if is_elsewhere(leased, node) => {
                return client.abort_multi(&[&cross_slot()], effects);
            }
            (Some((_, conn)), _) => conn,
            (None, None) => return client.queue_early(command, effects),
            (None, Some(node)) => match self.lease_for_multi(client, node, effects) {
                Ok(conn) => conn,
                Err(next) => return next,
            },
        };
        if let Some(next) = self.begin_on(client, conn, effects) {
            return next;
        }
        self.send(client, conn, command, effects);
        Next::Go
    }

    fn lease_for_multi(
        &mut self,
        client: &mut Client,
        node: usize,
        effects: &mut Fx,
    ) -> Result<Conn, Next> {
        // This request must not overtake those on other connections.
        if !client.ring.is_empty() {
            return Err(Next::Again);
        }
        let conn = match self.leased_to(client, node, effects) {
            Ok(conn) => conn,
            Err(Unleased::Opening) => return Err(Next::Full),
            Err(Unleased::Unavailable) => {
                let why = self.unavailable(client.pool, node);
                return Err(client.abort_multi(&[&why], effects));
            }
        };
        client.transaction().leases(node, conn);
        client.transaction().group = self.group;
        Ok(conn)
    }

    /// Sends MULTI to the node, and the commands queued before the node was known. Returns what the
    /// client's command does if it must be repeated later: over a connection on which MULTI was never
    /// accepted, commands behind a refused MULTI would run outside a transaction.
    fn begin_on(&mut self, client: &mut Client, conn: Conn, effects: &mut Fx) -> Option<Next> {
        let now = effects.now().instant;
        let upstream = self.peers.upstream(conn)?;
        let waits = client.conn;
        let multi = client.transaction().multi.as_mut()?;
        if !std::mem::replace(&mut multi.has_started, true) {
            let is_verified = upstream.is_verified;
            if let Some(out) = effects.out(conn) {
                write_command([&b"MULTI"[..]], out);
            }
            let (waits, slot) = if is_verified { (conn, 0) } else { (waits, client.ring.wait()) };
            upstream.wait(Waiter::new(waits, slot, What::Begun), now);
            self.check_soon(now);
            if !is_verified {
                return Some(Next::Again);
            }
        }
        let multi = client.transaction().multi.as_mut()?;
        let (early, count) = (std::mem::take(&mut multi.early), std::mem::take(&mut multi.count));
        if count > 0
            && let Some(out) = effects.out(conn)
            && let Some(upstream) = self.peers.upstream(conn)
        {
            out.extend_from_slice(&early);
            (0..count).for_each(|_| upstream.wait_for_itself(What::Queued, now));
        }
        None
    }

    fn exec(&mut self, client: &mut Client, command: &Command<'_>, effects: &mut Fx) -> Next {
        let transaction = client.transaction();
        let lease = transaction.lease;
        let Some(multi) = &transaction.multi else { return Next::Go };
        let (is_aborted, count) = (multi.is_aborted, multi.count);
        let conn = match lease {
            Some(_) if transaction.lost.is_some() => {
                let why = self.lost(transaction);
                client.fail(&[&why], effects);
                return client.end();
            }
            _ if is_aborted => {
                client.transaction().is_dirty = true;
                let why = b"EXECABORT Transaction discarded because of previous errors.";
                client.fail(&[why], effects);
                return client.end();
            }
            Some((_, conn)) => conn,
            None if count == 0 => {
                client.answer(b"*0\r\n", effects);
                return client.end();
            }
            None => {
                let node = self.any_node(client);
                match self.lease_for_multi(client, node, effects) {
                    Ok(conn) => conn,
                    Err(next @ (Next::Again | Next::Full)) => return next,
                    Err(_) => return client.end(),
                }
            }
        };
        if let Some(next) = self.begin_on(client, conn, effects) {
            return next;
        }
        // The node checks all keys again.
        self.group = client.transaction().group;
        self.send(client, conn, command, effects);
        client.end()
    }

    fn discard(&mut self, client: &mut Client, command: &Command<'_>, effects: &mut Fx) -> Next {
        let transaction = client.transaction();
        let has_started = transaction.multi.as_ref().is_some_and(|multi| multi.has_started);
        match transaction.lease.filter(|_| transaction.lost.is_none()) {
            Some((_, conn)) if has_started => self.send(client, conn, command, effects),
            _ => {
                // The connection is closed, and its watched keys are forgotten with it.
                transaction.is_dirty = true;
                client.answer(b"+OK\r\n", effects);
            }
        }
        client.end()
    }

    /// Handles a command of a client that watches keys and has not started a transaction.
    fn watching(&mut self, client: &mut Client, routed: Routed<'_>, effects: &mut Fx) -> Next {
        let Routed { command, decision } = routed;
        let name = decision.name();
        let transaction = client.transaction();
        let own = transaction.lease.filter(|_| transaction.lost.is_none());
        match (name, &decision.route, own) {
            (_, Route::Refused(_), _) => self.go(client, routed, effects),
            ("multi", ..) => {
                transaction.multi = Some(Multi::default());
                client.answer(b"+OK\r\n", effects);
                Next::Go
            }
            ("exec" | "discard", ..) => self.begin(client, command, effects),
            ("unwatch", _, Some((_, conn))) => {
                self.send(client, conn, command, effects);
                client.end()
            }
            ("unwatch", _, None) => {
                client.answer(b"+OK\r\n", effects);
                client.end()
            }
            ("watch", Route::Lease(_, Place::Node(node)), Some((leased, conn)))
                if match transaction.group {
                    Some(group) => self.group == Some(group),
                    None => *node == leased,
                } =>
            {
                self.send(client, conn, command, effects);
                Next::Go
            }
            ("watch", _, Some(_)) => {
                client.fail(&[&cross_slot()], effects);
                Next::Go
            }
            ("watch", _, None) => {
                let why = self.lost(transaction);
                client.fail(&[&why], effects);
                Next::Go
            }
            (_, Route::OneNode(node), Some((leased, conn))) if *node == leased => {
                self.send(client, conn, command, effects);
                Next::Go
            }
            (_, Route::Lease(Lease::Blocking, Place::Node(node)), Some((leased, conn)))
                if *node == leased =>
            {
                self.send_blocking(client, conn, command, effects)
            }
            (_, Route::OneNode(_), Some(_)) => self.go(client, routed, effects),
            (_, Route::Lease(..) | Route::Local(Local::Select | Local::Auth | Local::Hello), _) => {
                let text =
                    format!("ERR the proxy does not support '{name}' while keys are watched");
                client.fail(&[text.as_bytes()], effects);
                Next::Go
            }
            // This uses shared connections, possibly to the same node: it runs alone, so that
            // nothing is overtaken.
            _ if !client.ring.is_empty() => Next::Again,
            _ => match self.go(client, routed, effects) {
                Next::Go => Next::Stop,
                next => next,
            },
        }
    }

    /// The error for a transaction whose connection was lost, without the leading `-`.
    fn lost(&self, transaction: &Transaction) -> Vec<u8> {
        let present = || self.settings.nodes.name(transaction.lease.map_or(0, |(node, _)| node));
        let name = transaction.lost.as_ref().map_or_else(present, |(_, name)| name);
        let what = match &transaction.lost {
            Some((Loss::Moved, _)) => format!("SHARDMOVED node {name}: the shard map has changed"),
            // The user may not run it.
            Some((Loss::Refused(text), _))
                if self.settings.auth.of_nodes && text.starts_with(b"NOPERM") =>
            {
                return text.clone();
            }
            Some((Loss::Refused(text), _)) => {
                format!("SHARDDOWN node {name}: the node refused MULTI: {}", text.escape_ascii())
            }
            _ => format!("SHARDDOWN node {name}: the connection was lost"),
        };
        format!("{what}; no command of the transaction was applied").into_bytes()
    }
}

impl Client {
    /// Queues a command before the node is known.
    fn queue_early(&mut self, command: &Command<'_>, effects: &mut Fx) -> Next {
        let Some(multi) = &mut self.transaction().multi else { return Next::Go };
        if multi.early.len() + command.bytes.len() > EARLY {
            let why = b"ERR the proxy queues at most 1 MiB before the first key of a transaction";
            return self.abort_multi(&[why], effects);
        }
        as_array(command, &mut multi.early);
        multi.count += 1;
        self.answer(b"+QUEUED\r\n", effects);
        Next::Go
    }
}
