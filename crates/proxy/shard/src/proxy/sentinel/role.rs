//! The role of each server to which the proxy connects. A Sentinel may give an old master for hours (redis#12271), and an
//! old master that comes back is a replica soon: so a connection begins with ROLE, and no request is sent before the reply.

use crate::{
    node::{
        nodes::NOWHERE,
        upstream::{Left, Upstream, Use, What},
    },
    proxy::state::{Fx, Proxy},
};
use regatta_proto::resp::write_command;
use std::time::Instant;

/// Asks a node for its role, before anything else than AUTH is sent to it.
pub(crate) fn ask_for_role(upstream: &mut Upstream, out: &mut Vec<u8>, now: Instant) {
    write_command([&b"ROLE"[..]], out);
    upstream.wait_for_itself(What::Role, now);
    upstream.is_admitted = false;
}

impl Proxy {
    /// Whether a node has a master that is known. Otherwise it is down.
    pub(crate) fn has_master(&mut self, node: usize, effects: &mut Fx) -> bool {
        if self.settings.nodes.address(node) != NOWHERE {
            return true;
        }
        let why = self.shared.why_no_master(node);
        self.fails(node, &format!("its master is not known: {why}"), effects);
        self.want_masters(false, effects);
        false
    }

    /// A node has refused a request because it is a replica. Its connections are not used again.
    #[cold]
    pub(crate) fn is_replica(&mut self, upstream: &mut Upstream, effects: &mut Fx) {
        let node = upstream.node;
        if upstream.left.is_some() || upstream.use_ == Use::Retired {
            return;
        }
        let nodes = std::sync::Arc::clone(&self.settings.nodes);
        self.note_left(node, &nodes);
        let (name, address, since) =
            (nodes.name(node).to_owned(), nodes.address(node), self.since());
        upstream.left = Some(Box::new(Left { name, address, since }));
        if upstream.use_ == Use::Shared {
            upstream.use_ = Use::Retired;
        }
        self.leave_node(node, effects);
        // It may be a master again soon. Then requests over a new connection could overtake earlier ones, as after a
        // change of the map.
        self.peers.clients_mut().for_each(|client| client.epoch = 0);
        self.want_masters(true, effects);
    }
}
