//! Configuration of a proxy.

use crate::{
    cluster::topology::no_nodes,
    node::nodes::{NOWHERE, Nodes},
    users::are_equal,
};
use regatta_keyspace::map::{Cluster, Map};
use regatta_proto::resp::CommandLimits;
use std::{net::SocketAddr, sync::Arc, time::Duration};

/// Configuration of a proxy.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which node owns which key; [`Shared::reload`](super::Shared::reload) replaces it.
    pub map: Arc<Map>,
    /// The nodes, exactly as many as the map has.
    pub nodes: Arc<Nodes>,
    /// Some nodes of a Redis Cluster, which report its slots; the map and the nodes follow from these. Empty with any other
    /// map.
    pub seeds: Arc<[SocketAddr]>,
    /// Their names, HOST:PORT, which are resolved again when no node that is known reports the slots.
    pub seed_names: Arc<[String]>,
    /// The Sentinels that manage the masters of the nodes, whose addresses follow from these. `None`: there are none.
    pub sentinels: Option<Arc<Sentinels>>,
    /// Passwords: of the clients, and for the nodes.
    pub auth: Auth,
    /// Limits on a request.
    pub request: CommandLimits,
    /// Maximum time that a node may take to reply, except to a blocking command.
    pub node_timeout: Duration,
    /// Maximum number of reply bytes, pending or stashed, that a client may leave unread. A reply that
    /// does not fit becomes an error. A client that exceeds it, by short replies or by a reply that has
    /// begun, is disconnected.
    pub client_bytes: usize,
    /// Maximum number of bytes that are held for all clients of one core together: unread replies,
    /// requests that are incomplete or must wait, queued commands, names of subscriptions. When it is
    /// exceeded, the client with the most is disconnected.
    pub all_bytes: usize,
    /// Idle clients are not disconnected.
    pub patient: bool,
    /// MSET, DEL and UNLINK with keys on several nodes are split, which is not atomic. Otherwise they
    /// are refused.
    pub splits_writes: bool,
    /// In a cluster, SUBSCRIBE, UNSUBSCRIBE and PUBLISH are sent as SSUBSCRIBE, SUNSUBSCRIBE and SPUBLISH.
    pub shards_pubsub: bool,
    /// A request to which a node replies only after this time is added to the slow log; zero: all are. `None`: there is
    /// no slow log.
    pub slow: Option<Duration>,
    /// Maximum number of entries of the slow log.
    pub slow_entries: usize,
    /// Clients may ask to be requested to reconnect before a stop disconnects them (CLIENT
    /// MAINT_NOTIFICATIONS). Only if a stop drains over a time.
    pub hands_over: bool,
    /// Requests are sampled for the page `/hot`, which shows the keys that are requested most.
    pub hot_keys: bool,
}

/// The epoch of the map of a cluster of which nothing is known. No client has used a map of epoch 0.
const UNKNOWN: u64 = 1;

/// Limits on a request of a client that has not authenticated: those of Redis. AUTH and HELLO need no
/// more.
const BEFORE_TRUST: CommandLimits =
    CommandLimits { args: 10, bulk: 16 << 10, inline: 16 << 10, command: 10 * ((16 << 10) + 16) };

impl Settings {
    /// The limits on a request.
    pub(super) fn limits(&self, is_trusted: bool) -> CommandLimits {
        let CommandLimits { args, bulk, inline, command } = self.request;
        if is_trusted {
            return self.request;
        }
        CommandLimits {
            args: args.min(BEFORE_TRUST.args),
            bulk: bulk.min(BEFORE_TRUST.bulk),
            inline: inline.min(BEFORE_TRUST.inline),
            command: command.min(BEFORE_TRUST.command),
        }
    }

    /// Settings with the default limits for a Redis Cluster. `seeds`: some of its nodes.
    pub fn of_cluster(seeds: Vec<SocketAddr>) -> Self {
        let map = Map::new(UNKNOWN, Cluster::unknown());
        Settings { seeds: seeds.into(), ..Self::new(map, Nodes::new(no_nodes())) }
    }

    /// Whether the decisions about requests differ from those of the table.
    pub(super) fn alters_requests(&self) -> bool {
        !self.splits_writes || self.shards_pubsub
    }

    /// The name of each node, and that of its master at the Sentinels.
    pub(super) fn managed(&self) -> Vec<(String, String)> {
        let masters = self.sentinels.iter().flat_map(|sentinels| &sentinels.masters);
        let named = masters.enumerate();
        named.map(|(node, master)| (self.nodes.name(node).to_owned(), master.clone())).collect()
    }

    /// Settings with the default limits for nodes whose masters Sentinels manage. `names`: those of the nodes, for messages.
    pub fn of_sentinels(map: Map, names: Vec<String>, sentinels: Sentinels) -> Self {
        assert_eq!(names.len(), sentinels.masters.len(), "each node has a master");
        let nodes = Nodes::new(names.into_iter().map(|name| (name, NOWHERE)));
        Settings { sentinels: Some(Arc::new(sentinels)), ..Self::new(map, nodes) }
    }

    /// Settings with the default limits.
    pub fn new(map: Map, nodes: Nodes) -> Self {
        assert_eq!(map.nodes(), nodes.count(), "the map and the list of nodes differ in length");
        Settings {
            map: Arc::new(map),
            nodes: Arc::new(nodes),
            seeds: [].into(),
            seed_names: [].into(),
            sentinels: None,
            auth: Auth::default(),
            request: CommandLimits {
                bulk: 64 << 20,
                command: 64 << 20,
                ..CommandLimits::default()
            },
            node_timeout: Duration::from_secs(10),
            client_bytes: 64 << 20,
            all_bytes: 256 << 20,
            patient: true,
            splits_writes: true,
            shards_pubsub: false,
            slow: Some(Duration::from_millis(10)),
            slow_entries: 128,
            hands_over: false,
            hot_keys: false,
        }
    }
}

/// Sentinels that manage the masters of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentinels {
    /// The Sentinels as they are configured: HOST:PORT.
    pub names: Vec<String>,
    /// The address of each. `None`: its name has none.
    pub addresses: Vec<Option<SocketAddr>>,
    /// For each node, the name of its master at the Sentinels.
    pub masters: Vec<String>,
    /// Credentials for the Sentinels. `None`: they need none.
    pub auth: Option<Credentials>,
}

/// Passwords: of the clients, and for the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Auth {
    /// Credentials that clients must send with AUTH. `None`: no password is needed.
    pub clients: Option<Credentials>,
    /// Credentials that the proxy sends to the nodes. `None`: it sends none.
    pub nodes: Option<Credentials>,
    /// The users are those of the nodes: AUTH of a client is tried at a node, and its requests are sent over
    /// connections of its user. The others of these settings are not used then.
    pub of_nodes: bool,
}

/// A user name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user name; `default` if none was given.
    pub user: Vec<u8>,
    /// The password.
    pub password: Vec<u8>,
}

impl Credentials {
    /// The user name of a connection that does not give one.
    pub const DEFAULT_USER: &'static [u8] = b"default";

    /// Returns whether these credentials are correct. The time does not depend on where a wrong
    /// password first differs.
    pub(super) fn matches(&self, user: &[u8], password: &[u8]) -> bool {
        self.user == user && are_equal(&self.password, password)
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:***", self.user.escape_ascii())
    }
}
