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
        let Routed { command, decision, .. } = routed;
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
        let known = subscriptions.of(kind);
        let mut changed = BTreeSet::new();
        for channel in &names {
            if known.contains(channel) != adds && changed.insert(channel.clone()) {
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
            subscriptions.adding = match adds {
                true => changed.into_iter().map(|name| (kind, name)).collect(),
                false => Vec::new(),
            };
        }
        let slot = client.ring.merge(Box::new(merging));
        for (part, ((_, channel), conn)) in asked.iter().zip(conns).enumerate() {
            let write = |out: &mut Vec<u8>| write_command([&name[..], channel], out);
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
        if !matches!(kind, b"message" | b"pmessage" | b"smessage") {
            return false;
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
        }
        if subscriptions.is_empty() && !subscriptions.is_opening {
            self.end_mode(client, effects);
        }
    }
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
