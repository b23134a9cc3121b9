//! The limit of a node on the size of an argument (`proto-max-bulk-len`).
//!
//! A node closes the connection over which it receives a longer argument, and clients share these
//! connections. So the first request over a connection that may exceed the limit waits until the node
//! has reported it. The limit is not requested again while the connection lasts.

use crate::{
    clients::{client::Client, next::Next},
    node::upstream::{Longest, What},
    proxy::state::{Fx, Proxy},
};
use regatta_engine::Conn;
use regatta_proto::resp::{Command, write_command};

/// The smallest limit that a node may have, in bytes: Redis refuses to set a smaller one.
const LEAST: usize = 1 << 20;

impl Proxy {
    /// Returns what happens to a request that cannot be sent over a shared connection: it waits until
    /// the node's limit is known, or was answered with an error.
    #[inline]
    pub(super) fn exceeds(
        &mut self,
        client: &mut Client,
        conn: Conn,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Option<Next> {
        if command.bytes.len() <= LEAST {
            return None;
        }
        self.may_exceed(client, conn, command, effects)
    }

    #[cold]
    fn may_exceed(
        &mut self,
        client: &mut Client,
        conn: Conn,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Option<Next> {
        let length = command.args().map(<[u8]>::len).max().filter(|length| *length > LEAST)?;
        let now = effects.now().instant;
        let upstream = self.peers.upstream(conn)?;
        if let Longest::Is(most) = upstream.longest {
            if length <= most {
                return None;
            }
            let node = self.settings.nodes.name(upstream.node);
            let text = format!(
                "SHARDTOOLARGE node {node} accepts at most {most} bytes in an argument \
                 (proto-max-bulk-len), and this one has {length}; nothing was sent"
            );
            client.fail(&[text.as_bytes()], effects);
            return Some(Next::Go);
        }
        if upstream.longest == Longest::Unknown
            && let Some(out) = effects.out(conn)
        {
            write_command([&b"CONFIG"[..], b"GET", b"proto-max-bulk-len"], out);
            upstream.longest = Longest::Asked;
            upstream.wait_for_itself(What::Longest, now);
        }
        upstream.hold(client);
        self.check_soon(now);
        Some(Next::Full)
    }
}
