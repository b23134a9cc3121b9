//! The proxy as an engine: events of its connections.

use crate::{
    clients::{client::Client, identity::Identity},
    node::loss_reason::Loss,
    peers::Peer,
    proxy::state::{Fx, Proxy},
};
use regatta_engine::{Conn, Engine, Never};
use regatta_service::tls_engine::Upstreams;
use std::{
    io, mem,
    time::{Duration, Instant},
};

impl Engine for Proxy {
    type Job = Never;
    type Letter = Never;
    const CONNECTS: bool = true;

    fn opened(&mut self, conn: Conn, effects: &mut Fx) {
        if let Some(upstream) = self.peers.upstream(conn) {
            upstream.is_open = true;
            return;
        }
        self.follow_settings(effects);
        let mut client =
            Box::new(Client::new(conn, Identity::new(&self.shared, &self.settings.auth)));
        self.pools.enter(client.pool);
        self.resume(&mut client, effects);
        self.peers.put(conn, Peer::Client(client));
        self.settle(effects);
    }

    fn received(&mut self, conn: Conn, bytes: &mut [u8], effects: &mut Fx) {
        self.follow_settings(effects);
        match self.peers.take(conn) {
            Some(Peer::Client(mut client)) => {
                self.input(&mut client, bytes, effects);
                self.resume(&mut client, effects);
                self.peers.put(conn, Peer::Client(client));
            }
            Some(Peer::Upstream(upstream)) => self.replies(upstream, bytes, effects),
            None => {}
        }
        self.settle(effects);
    }

    fn room(&mut self, conn: Conn, effects: &mut Fx) {
        self.follow_settings(effects);
        if let Some(upstream) = self.peers.upstream(conn) {
            let held = mem::take(&mut upstream.held);
            upstream.wants_drained(false, effects);
            self.release(held);
        } else {
            self.resume_later(conn);
        }
        self.settle(effects);
    }

    fn ended(&mut self, conn: Conn, effects: &mut Fx) {
        self.follow_settings(effects);
        match self.peers.take(conn) {
            Some(Peer::Client(mut client)) => {
                client.has_ended = true;
                self.resume(&mut client, effects);
                self.peers.put(conn, Peer::Client(client));
            }
            Some(Peer::Upstream(upstream)) => {
                self.lose(*upstream, Loss::Closed, effects);
            }
            None => {}
        }
        self.settle(effects);
    }

    fn closed(&mut self, conn: Conn, effects: &mut Fx) {
        self.follow_settings(effects);
        match self.peers.take(conn) {
            Some(Peer::Client(client)) => self.leave(client, effects),
            Some(Peer::Upstream(upstream)) => {
                self.lose(*upstream, Loss::Closed, effects);
            }
            None => {}
        }
        self.settle(effects);
    }

    fn not_opened(&mut self, conn: Conn, why: &io::Error) {
        let Some(upstream) = self.peers.upstream(conn) else { return };
        if why.kind() == io::ErrorKind::InvalidData {
            // The node took nothing that was sent, even if the connection seemed to be open.
            upstream.is_open = false;
            upstream.not_opened = Some(Loss::NoTls(why.to_string()));
        } else if is_own(why) {
            upstream.not_opened = Some(Loss::NotOpened(why.to_string()));
        }
    }

    fn drain_begins(&mut self, over: Duration, effects: &mut Fx) {
        self.shared.drain_begins(effects.now().unix_s);
        self.hand_over(over, effects);
    }

    fn retire(&mut self, conn: Conn, _random: u32, effects: &mut Fx) {
        self.retire_client(conn, effects);
    }

    /// The node is asked again to end a blocking command.
    fn alarm(&mut self, conn: Conn, effects: &mut Fx) {
        self.follow_settings(effects);
        self.resume_later(conn);
        self.settle(effects);
    }

    fn due(&self) -> Option<Instant> {
        self.tick_at
    }

    fn tick(&mut self, effects: &mut Fx) {
        self.follow_settings(effects);
        self.check_nodes(effects);
        self.settle(effects);
    }
}

impl Proxy {
    /// Sends what was held back, before control returns to the driver.
    #[inline]
    fn settle(&mut self, effects: &mut Fx) {
        if self.cluster.is_some() {
            self.send_again(effects);
        }
        self.resume_due(effects);
    }
}

impl Upstreams for Proxy {
    fn upstream(&self, conn: Conn) -> Option<usize> {
        self.peers.node(conn)
    }
}

/// Returns whether this machine refused a connection, and not the node or the network.
fn is_own(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    !matches!(
        error.kind(),
        ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable | TimedOut
    )
}
