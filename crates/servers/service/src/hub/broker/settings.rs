//! Which broker a hub has.

use super::health::Health;
use std::{fmt, net::SocketAddr, sync::Arc};

/// The broker of a hub.
#[derive(Clone)]
pub struct Broker {
    /// Its host and port, for messages.
    pub name: String,
    /// Its address now. Asked before each attempt to connect; must not block. `None`: the name cannot be resolved.
    pub address: Arc<dyn Fn() -> Option<SocketAddr> + Send + Sync>,
    /// The user to authenticate as; used with a password only. `None`: `default`.
    pub user: Option<String>,
    /// The password. `None`: the hub does not authenticate.
    pub password: Option<String>,
    /// The start of all channels. Hubs with the same prefix have the same rooms.
    pub prefix: String,
    /// A random number that no other hub at this broker has. It is in the name of a channel.
    pub node: u64,
    /// Another one, which is in no name: the hub knows its own messages and heartbeats by it.
    pub secret: u64,
    /// What is known of the connection.
    pub health: Arc<Health>,
}

impl fmt::Debug for Broker {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broker { name, user, prefix, node, .. } = self;
        let mut shown = f.debug_struct("Broker");
        shown.field("name", name).field("user", user).field("prefix", prefix);
        shown.field("node", node).finish_non_exhaustive()
    }
}
