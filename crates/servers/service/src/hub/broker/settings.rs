//! Which broker a hub has.

use super::health::Health;
use rustls::{ClientConfig, pki_types::ServerName};
use std::{fmt, net::SocketAddr, sync::Arc};

/// The broker of a hub.
#[derive(Clone)]
pub struct Broker {
    /// Its name, for messages: its host and port.
    pub name: String,
    /// Where it is.
    pub place: Arc<dyn Place>,
    /// The user to authenticate as; used with a password only. `None`: `default`.
    pub user: Option<String>,
    /// The password now: asked for each connection, because passwords are changed. `None`: the hub does not authenticate.
    pub password: Option<Password>,
    /// TLS with it, if it is reached over TLS.
    pub tls: Option<BrokerTls>,
    /// The start of all channels. Hubs with the same prefix have the same rooms.
    pub prefix: String,
    /// It is the master of a slot of a Redis Cluster: that of the key `{prefix}`, in which all channels are.
    pub is_in_cluster: bool,
    /// A random number that no other hub at this broker has. It is in the name of a channel.
    pub node: u64,
    /// Another one, which is in no name: the hub knows its own messages and heartbeats by it.
    pub secret: u64,
    /// What is known of the connection.
    pub health: Arc<Health>,
}

/// TLS with a broker.
#[derive(Clone)]
pub struct BrokerTls {
    /// Whom to trust, and the hub's own certificate, if any. Asked for each connection, because certificates are renewed.
    pub config: Arc<dyn Fn() -> Arc<ClientConfig> + Send + Sync>,
    /// The name that the certificate of the broker must have.
    pub name: ServerName<'static>,
}

impl Broker {
    /// The start of all channels and keys. In a cluster it is a hash tag, so all are in one slot.
    pub(super) fn start(&self) -> String {
        if self.is_in_cluster { format!("{{{}}}", self.prefix) } else { self.prefix.clone() }
    }
}

impl fmt::Debug for BrokerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerTls").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A key at a broker, with the [start](Broker::start) of all, for a room. Its end says how long the name of the room before
/// it is, so no two keys are the same, whatever is in a prefix or a name.
pub(super) fn key(start: &str, room: &str, kind: &str) -> String {
    format!("{start}:{room}:{}:{kind}", room.len())
}

/// Returns the newest password.
pub type Password = Arc<dyn Fn() -> Arc<String> + Send + Sync>;

/// Where a broker is. Nothing here may block, except that the first question may wait for half a second.
pub trait Place: Send + Sync {
    /// Its addresses now. Asked before each attempt to connect, in which each is tried, the first one first. All must be
    /// of one server.
    ///
    /// # Errors
    /// Says why it has none, e.g. because its name cannot be resolved.
    fn addresses(&self) -> Result<Vec<SocketAddr>, String>;

    /// Why the server at this address is the broker no longer; `None` if it is, or if nobody knows. Asked with each
    /// heartbeat.
    fn has_left(&self, _address: SocketAddr) -> Option<String> {
        None
    }

    /// A connection is lost that was up, or an attempt to connect has failed.
    fn is_lost(&self, _was_up: bool) {}

    /// Further metrics for Prometheus: what is known of those who say where the broker is.
    fn metrics(&self) -> String {
        String::new()
    }
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
