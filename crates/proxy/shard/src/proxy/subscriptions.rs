//! Subscriptions of a client, over dedicated connections: one to each node concerned.
//!
//! The proxy tracks what a client is subscribed to and sends nodes only the changes. It writes the
//! confirmations itself once all nodes have confirmed, because only it can count the subscriptions.

use crate::{
    clients::{
        client::{Client, Mode},
        next::Next,
        routed::Routed,
        subscribed::Kind,
    },
    node::upstream::{Use, Waiter, What},
    proxy::state::{Fx, Proxy},
    reply::{
        errors::EXEC_REFUSED,
        merging::{Merging, Rule},
    },
};
use regatta_engine::{Conn, Effects};
use regatta_keyspace::route::{Lease, Local, Route, is_notification};
use regatta_proto::resp::{Command, Value, write_bulk, write_command};
use std::{collections::BTreeSet, sync::Arc};

impl Proxy {
    /// Handles a command of a client that has subscriptions.
    pub(crate) fn subscribed(
        &mut self,
        client: &mut Client,
        routed: Routed<'_>,
        effects: &mut Fx,
    ) -> Next {
        let Routed { command, decision } = routed;
        let name = decision.name();
        match &decision.route {
            Route::Lease(Lease::Subscription, _) => self.subscribe(client, command, effects),
            Route::Local(Local::Ping | Local::Quit | Local::Reset) => {
                self.go(client, routed, effects)
            }
            Route::Refused(text) => {
                client.fail(&[text], effects);
                Next::Go
            }
            _ if !client.identity.resp3 => {
                let code = if name == "exec" { EXEC_REFUSED } else { b"ERR " };
                let text = format!(
                    "Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / \
                     QUIT / RESET are allowed in this context"
                );
                client.fail(&[code, text.as_bytes()], effects);
                Next::Go
            }
            Route::Lease(..) | Route::Local(Local::Select | Local::Auth | Local::Hello) => {
                let text = format!("ERR the proxy does not support '{name}' while subscribed");
                client.fail(&[text.as_bytes()], effects);
                Next::Go
            }
            _ => self.go(client, routed, effects),
        }
    }

    /// Subscribes or unsubscribes.
    #[expect(clippy::too_many_lines, reason = "the steps of one command")]
    pub(crate) fn subscribe(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Next {
        if !client.ring.is_empty() {
            return Next::Again;
        }
        let name = command.arg(0).unwrap_or_default().to_ascii_lowercase();
        let kind = match name.first() {
            Some(b'p') => Kind::Patterns,
            _ if name.starts_with(b"ss") || name.starts_with(b"sun") => Kind::ShardChannels,
            _ => Kind::Channels,
        };
        let adds = !name.windows(2).any(|pair| pair == b"un");
        if !matches!(client.mode, Mode::Subscribed(_)) {
            client.mode = Mode::Subscribed(Box::default());
        }
        let (map, nodes) = (Arc::clone(&self.map), Arc::clone(&self.order));
        let Mode::Subscribed(subscriptions) = &mut client.mode else { return Next::Go };
        subscriptions.is_opening = false;
        if let Some(why) = subscriptions.failed.take() {
            client.fail(&[&why], effects);
            self.end_subscriptions(client, effects);
            return Next::Go;
        }
        let mut names: Vec<Vec<u8>> = command.args().skip(1).map(<[u8]>::to_vec).collect();
        if names.is_empty() {
            names.extend(subscriptions.of(kind).iter().cloned());
        }
        // What to send to which node.
        let mut asked: Vec<(usize, Vec<u8>)> = Vec::new();
        let shards = self.settings.shards_pubsub && kind != Kind::Patterns;
        let other = if kind == Kind::Channels { Kind::ShardChannels } else { Kind::Channels };
        // At the node, SUBSCRIBE and SSUBSCRIBE are the same then.
        let is_shared = |channel: &[u8]| {
            shards && !is_notification(channel) && subscriptions.has(other, channel)
        };
        let mut changed = BTreeSet::new();
        for channel in &names {
            if subscriptions.has(kind, channel) != adds
                && changed.insert(channel.clone())
                && !is_shared(channel)
            {
                let concerns_all = kind == Kind::Patterns || is_notification(channel);
                let owner = [map.node(channel)];
                let concerned = if concerns_all { &nodes[..] } else { &owner };
                asked.extend(concerned.iter().map(|node| (*node, channel.clone())));
            }
        }
        let mut conns = Vec::with_capacity(asked.len());
        for (node, _) in &asked {
            let Some(conn) = self.subscriber(client, *node, effects) else {
                let why = self.unavailable(client.pool, *node);
                if let Mode::Subscribed(subscriptions) = &mut client.mode {
                    subscriptions.failed = Some(why);
                }
                break;
            };
            conns.push(conn);
        }
        // Nothing changes before all nodes can be reached: a failure then needs no undoing.
        let Mode::Subscribed(subscriptions) = &mut client.mode else { return Next::Go };
        subscriptions.is_opening = !client.ring.is_empty();
        if subscriptions.is_opening {
            return Next::Again;
        }
        if let Some(why) = subscriptions.failed.take() {
            client.fail(&[&why], effects);
            self.end_subscriptions(client, effects);
            return Next::Go;
        }
        let text = confirm(client, &name, kind, adds, names);
        if asked.is_empty() {
            client.answer(&text, effects);
            return Next::Stop;
        }
        let merging = Merging::new(
            Rule::Confirmation(text),
            asked.iter().map(|(node, _)| *node),
            false,
            Arc::clone(&self.settings.nodes),
        );
        if let Mode::Subscribed(subscriptions) = &mut client.mode {
            subscriptions.is_leaving = !adds;
            if !adds {
                let sent = asked.iter().map(|(_, channel)| channel);
                let sharded = sent.filter(|channel| is_sharded(kind, shards, channel));
                subscriptions.leaving = sharded.map(|channel| (channel.clone(), kind)).collect();
            }
            subscriptions.adding = match adds {
                true => changed.into_iter().map(|name| (kind, name)).collect(),
                false => Vec::new(),
            };
        }
        let slot = client.ring.merge(Box::new(merging));
        for (part, ((_, channel), conn)) in asked.iter().zip(conns).enumerate() {
            let is_sharded = is_sharded(kind, shards, channel);
            let home = || self.map.home(channel).group;
            self.group = (self.cluster.is_some() && is_sharded).then(home);
            let name = match is_sharded && kind == Kind::Channels {
                true if adds => &b"ssubscribe"[..],
                true => &b"sunsubscribe"[..],
                false => &name[..],
            };
            let write = |out: &mut Vec<u8>| write_command([name, channel], out);
            self.send_part(Waiter::part(client.conn, slot, part), conn, effects, write);
        }
        Next::Stop
    }

    /// Returns the connection for a client's subscriptions on a node. `None` if the node is down.
    fn subscriber(&mut self, client: &mut Client, node: usize, effects: &mut Fx) -> Option<Conn> {
        let (own, pool, nodes) = (client.conn, client.pool, self.health.len());
        let Mode::Subscribed(subscriptions) = &mut client.mode else { return None };
        subscriptions.conns.resize(nodes, None);
        if let Some(conn) = subscriptions.conns[node] {
            return effects.out(conn).is_some().then_some(conn);
        }
        let conn = self.connect(pool, node, Use::Subscribed(own), effects)?;
        subscriptions.conns[node] = Some(conn);
        let now = effects.now().instant;
        if let Some(out) = effects.out(conn) {
            write_command([&b"PING"[..]], out);
        }
        let waiter = Waiter::new(own, client.ring.wait(), What::Begun);
        self.peers.upstream(conn)?.wait(waiter, now);
        Some(conn)
    }

    /// Records that a connection for subscriptions could not be opened. The command that needs it
    /// fails.
    pub(crate) fn subscriber_is_lost(&mut self, client: Conn, node: usize, why: Vec<u8>) {
        if let Some(Client { mode: Mode::Subscribed(subscriptions), .. }) =
            self.peers.client(client)
        {
            if let Some(conn) = subscriptions.conns.get_mut(node) {
                *conn = None;
            }
            subscriptions.failed = Some(why);
        }
    }

    /// Forwards a message to its subscriber. Returns `false` if the reply is not a message.
    pub(crate) fn message(
        &mut self,
        client: Conn,
        reply: &[u8],
        effects: &mut Effects<Self>,
    ) -> bool {
        let Some((Value::Elements(_, _, elements), _)) = Value::read(reply) else { return false };
        let Some((Value::Bulk(kind), at)) = Value::read(elements) else { return false };
        if kind == b"sunsubscribe" {
            return self.is_unsubscribed(client, &elements[at..], effects);
        }
        if !matches!(kind, b"message" | b"pmessage" | b"smessage") {
            return false;
        }
        if self.settings.shards_pubsub && kind == b"smessage" {
            let head = &reply[..reply.len() - elements.len()];
            self.shard_message(client, (head, &elements[at..]), effects);
            return true;
        }
        if let Some(client) = self.peers.client(client) {
            if let Mode::Subscribed(own) = &client.mode
                && own.is_partial
                && let Some((Value::Bulk(name), _)) = Value::read(&elements[at..])
                && !own.wants(kind, name)
            {
                return true;
            }
            // A node sends nothing for a channel after it has confirmed the UNSUBSCRIBE, so the
            // client's confirmation must be the last, too. No reply is partly written at this time.
            let leaves = matches!(&client.mode, Mode::Subscribed(own) if own.is_leaving);
            match effects.out(client.conn) {
                Some(out) if leaves => out.extend_from_slice(reply),
                Some(out) => client.ring.answer(reply, out),
                None => {}
            }
            let conn = client.conn;
            self.resume_later(conn);
        }
        true
    }

    /// Handles the report of a node that a shard channel is left. Returns `false` if the client has asked for that: then it
    /// is the reply. Otherwise its slot has moved.
    fn is_unsubscribed(&mut self, conn: Conn, rest: &[u8], effects: &mut Fx) -> bool {
        let channel = match Value::read(rest) {
            Some((Value::Bulk(channel), _)) => channel,
            _ => b"",
        };
        let Some(client) = self.peers.client(conn) else { return true };
        let Mode::Subscribed(own) = &mut client.mode else { return true };
        if own.leaving.remove(channel).is_some() {
            return false;
        }
        let text = format!("SHARDMOVED the slot of channel {} has moved", channel.escape_ascii());
        self.end_subscriber(conn, &text, effects);
        self.want_slots(None, effects);
        true
    }

    /// Forwards a message of a shard channel to a client that may know the channel by SUBSCRIBE. `message`: its first line,
    /// and what follows its kind.
    fn shard_message(&mut self, conn: Conn, message: (&[u8], &[u8]), effects: &mut Fx) {
        let (head, rest) = message;
        let Some((Value::Bulk(channel), _)) = Value::read(rest) else { return };
        let Some(client) = self.peers.client(conn) else { return };
        let Mode::Subscribed(own) = &client.mode else { return };
        let (kinds, leaves) = (own.kinds_of(channel), own.is_leaving);
        for kind in kinds.into_iter().flatten() {
            let name: &[u8] = match kind {
                Kind::Channels => b"$7\r\nmessage\r\n",
                _ => b"$8\r\nsmessage\r\n",
            };
            let text = [head, name, rest].concat();
            match effects.out(conn) {
                Some(out) if leaves => out.extend_from_slice(&text),
                Some(out) => client.ring.answer(&text, out),
                None => {}
            }
        }
        self.resume_later(conn);
    }

    /// Continues after all nodes have confirmed. Returns a client without subscriptions to plain
    /// mode.
    pub(crate) fn end_subscriptions(&mut self, client: &mut Client, effects: &mut Fx) {
        let Mode::Subscribed(subscriptions) = &mut client.mode else { return };
        if client.ring.is_empty() {
            subscriptions.is_leaving = false;
            if !client.last_succeeded {
                subscriptions.undo();
            }
            subscriptions.adding.clear();
            subscriptions.leaving.clear();
        }
        if subscriptions.is_empty() && !subscriptions.is_opening {
            self.end_mode(client, effects);
        }
    }
}

/// Whether a node gets the name of a channel as that of a shard channel. `shards`: those of SUBSCRIBE are some.
fn is_sharded(kind: Kind, shards: bool, channel: &[u8]) -> bool {
    kind == Kind::ShardChannels || shards && !is_notification(channel)
}

/// Updates the subscriptions. Returns the confirmations.
fn confirm(
    client: &mut Client,
    name: &[u8],
    kind: Kind,
    adds: bool,
    names: Vec<Vec<u8>>,
) -> Vec<u8> {
    let mut text = Vec::new();
    let (null, resp3) = (client.identity.null(), client.identity.resp3);
    let Mode::Subscribed(subscriptions) = &mut client.mode else { return text };
    let head = if resp3 { ">3\r\n" } else { "*3\r\n" };
    let mut line = |channel: Option<&[u8]>, count: usize| {
        text.extend_from_slice(head.as_bytes());
        write_bulk(name, &mut text);
        match channel {
            Some(channel) => write_bulk(channel, &mut text),
            None => text.extend_from_slice(null),
        }
        text.extend_from_slice(format!(":{count}\r\n").as_bytes());
    };
    if names.is_empty() {
        line(None, subscriptions.count(kind));
    }
    for channel in names {
        if adds {
            subscriptions.add(kind, channel.clone());
        } else {
            subscriptions.remove(kind, &channel);
        }
        line(Some(&channel), subscriptions.count(kind));
    }
    text
}
