//! What a proxy is asked to do.

use super::nodes::Nodes;
use regatta_keyspace::map::Map;
use regatta_proto::resp::CommandLimits;
use std::{sync::Arc, time::Duration};

/// What a proxy is asked to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which node has which key at first; see [`Shared::change_map`](super::Shared::change_map).
    pub map: Arc<Map>,
    /// The nodes, as many as the map has.
    pub nodes: Arc<Nodes>,
    /// Who may use the proxy, and as whom it uses the nodes.
    pub auth: Auth,
    /// What a request may be like.
    pub request: CommandLimits,
    /// Longest time that a node may take for a reply, except to a command that blocks.
    pub node_timeout: Duration,
    /// Bytes of replies, pending or stashed, that a client may leave unread. Beyond it, it is
    /// disconnected.
    pub client_bytes: usize,
    /// The same for all clients of one core together: beyond it, those that hold most are disconnected.
    pub all_bytes: usize,
    /// Clients that send nothing are not disconnected.
    pub patient: bool,
}

impl Settings {
    /// Settings with the default limits.
    pub fn new(map: Map, nodes: Nodes) -> Self {
        assert_eq!(map.nodes(), nodes.count(), "a map over other nodes");
        Settings {
            map: Arc::new(map),
            nodes: Arc::new(nodes),
            auth: Auth::default(),
            request: CommandLimits {
                bulk: 64 << 20,
                command: 64 << 20,
                ..CommandLimits::default()
            },
            node_timeout: Duration::from_secs(10),
            client_bytes: 32 << 20,
            all_bytes: 256 << 20,
            patient: true,
        }
    }
}

/// Who may use the proxy, and as whom it uses the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Auth {
    /// Clients must say this with AUTH. `None`: they need not.
    pub clients: Option<Credentials>,
    /// The proxy says this to the nodes. `None`: nothing.
    pub nodes: Option<Credentials>,
}

/// A user and the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user; `default` where none is named.
    pub user: Vec<u8>,
    /// The password.
    pub password: Vec<u8>,
}

impl Credentials {
    /// The user's name of connections that name none.
    pub const DEFAULT_USER: &'static [u8] = b"default";

    /// Whether these are the same. Takes as long for a password that is wrong early as for one that
    /// is wrong late.
    pub(super) fn are(&self, user: &[u8], password: &[u8]) -> bool {
        self.user == user && self.password.len() == password.len() && {
            let differs = |all: u8, (one, other): (&u8, &u8)| all | (one ^ other);
            std::hint::black_box(self.password.iter().zip(password).fold(0, differs)) == 0
        }
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:***", self.user.escape_ascii())
    }
}
