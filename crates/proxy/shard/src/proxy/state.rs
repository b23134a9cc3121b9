//! The state of one core's proxy.

use crate::{
    clients::client::Rest,
    cluster::state::ClusterState,
    node::{described::Described, nodes::Health, pools::Pools},
    observe::{class::Class, clock::Clock, hot_keys::Sampler},
    peers::Peers,
    sentinel::state::SentinelState,
    settings::Settings,
    shared::Shared,
    tally::{Kind, Tally},
};
use rand::{SeedableRng, rngs::SmallRng};
use regatta_engine::{Conn, Effects};
use regatta_keyspace::{map::Map, route::Plan};
use std::{sync::Arc, time::Instant};

/// The proxy of one core.
pub struct Proxy {
    pub(super) shared: Arc<Shared>,
    /// The configuration, and how often it had been changed.
    pub(super) settings: Arc<Settings>,
    pub(super) changes: u64,
    /// Which node owns which key.
    pub(super) map: Arc<Map>,
    /// The nodes that have keys.
    pub(super) order: Arc<[usize]>,
    /// What it does for a cluster, if the nodes are of one.
    pub(super) cluster: Option<Box<ClusterState>>,
    /// What it does with Sentinels, if they manage the masters of the nodes.
    pub(super) sentinel: Option<Box<SentinelState>>,
    /// The group of the keys of the request that is being sent, if it has any.
    pub(super) group: Option<u16>,
    pub(super) peers: Peers,
    pub(super) pools: Pools,
    /// The health of each node.
    pub(super) health: Vec<Health>,
    /// Commands that the nodes know and the table does not.
    pub(super) described: Described,
    pub(super) tally: Arc<Tally>,
    /// What the last request was that was read.
    pub(super) kind: Kind,
    /// The class of the request that is being sent.
    pub(super) class: Class,
    /// The time of a turn, as requests and replies have it.
    pub(super) clock: Clock,
    /// From which duration on a request is slow, in microseconds; [`OFF`]: none is.
    pub(super) slow_us: u64,
    /// When the bytes of the request that is being sent were complete: a number of the clock.
    pub(super) arrived_us: u32,
    /// Samples the requests, if the page with hot keys is served.
    pub(super) hot_keys: Option<Box<Sampler>>,
    /// Clients whose input is to resume.
    pub(super) due: Vec<Conn>,
    /// Reusable memory: for the parts of a request, and for input that is pending.
    pub(super) plan: Plan,
    #[expect(clippy::vec_box, reason = "they move from here to clients and back")]
    pub(super) spare: Vec<Box<Rest>>,
    /// Until when it is assumed that the nodes demand a password, because one has; see `users`.
    pub(super) demands_auth_until: Option<Instant>,
    /// For each node, the connection over which users are tried.
    pub(super) logins: Vec<Option<Conn>>,
    /// For each node, whether it is known to serve clients that have not authenticated; see `users`.
    pub(super) serves_all: Vec<bool>,
    /// Bytes held for all clients that count; see `budget`.
    pub(super) held: usize,
    /// When the drain ends that has begun.
    pub(super) drains_until: Option<Instant>,
    /// When the nodes are checked next.
    pub(super) tick_at: Option<Instant>,
    pub(super) random: SmallRng,
}

/// From which duration on a request is slow, in microseconds.
pub(super) fn slow_us(settings: &Settings) -> u64 {
    settings.slow.map_or(OFF, |slow| slow.as_micros() as u64)
}

/// A duration that no request reaches: no request is slow.
pub(super) const OFF: u64 = u64::MAX;

/// What the proxy does to its connections.
pub(super) type Fx = Effects<Proxy>;

impl Proxy {
    /// Creates a proxy without clients. `seed`: of the jitter of retry pauses, and of the choice of a
    /// node where it is random.
    pub fn new(shared: Arc<Shared>, seed: u64) -> Self {
        let (settings, changes) = shared.settings_now();
        let nodes = settings.nodes.count();
        let is_cluster = settings.map.cluster().is_some();
        let is_managed = settings.sentinels.is_some();
        Proxy {
            peers: Peers::default(),
            pools: Pools::new(nodes),
            health: (0..nodes).map(|_| Health::default()).collect(),
            described: Described::default(),
            tally: shared.new_tally(),
            kind: Kind::default(),
            class: Class::default(),
            clock: Clock::default(),
            slow_us: slow_us(&settings),
            arrived_us: 0,
            hot_keys: settings.hot_keys.then(|| Box::new(shared.hot_keys.sampler(seed))),
            due: Vec::new(),
            plan: Plan::default(),
            spare: Vec::new(),
            demands_auth_until: None,
            logins: vec![None; nodes],
            serves_all: vec![false; nodes],
            held: 0,
            drains_until: None,
            // The cluster is asked for its slots at once, and so are Sentinels for the masters.
            tick_at: (is_cluster || is_managed).then(Instant::now),
            order: settings.map.order().into(),
            cluster: is_cluster.then(Box::default),
            sentinel: is_managed.then(Box::default),
            group: None,
            random: SmallRng::seed_from_u64(seed),
            map: Arc::clone(&settings.map),
            settings,
            changes,
            shared,
        }
    }
}
