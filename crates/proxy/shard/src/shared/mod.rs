//! State shared by the proxies of all cores.

use crate::{
    cluster::{
        topology::{Change, Topology},
        view::View,
    },
    node::nodes::Nodes,
    observe::{hot_keys::HotKeys, slow_log::SlowLog, version::Versions},
    sentinel::masters::Masters,
    settings::Settings,
    tally::Tally,
    users::Users,
};
use regatta_engine::Counter;
use regatta_keyspace::{
    command::{Command, Description, VERSION},
    map::Map,
};
use std::{
    net::SocketAddr,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release},
    },
    time::{Duration, Instant},
};

mod masters;

/// Maximum number of commands that nodes describe; one that is described in two ways counts twice.
const MOST_COMMANDS: usize = 4096;

/// State shared by the proxies of all cores.
#[derive(Debug)]
pub struct Shared {
    /// The configuration at the start. [`Sequential`](crate::Sequential) keeps it, except the map.
    pub settings: Settings,
    /// Counters of all proxies together.
    pub counts: Counts,
    /// Requests to which a node took long to reply.
    pub slow_log: SlowLog,
    /// The versions of the nodes.
    pub(super) versions: Versions,
    /// The users of the nodes that have clients.
    pub(super) users: Users,
    /// The keys that are requested most.
    pub(super) hot_keys: HotKeys,
    /// Finds out the slots of a cluster, if the nodes are of one.
    topology: Option<Mutex<Topology>>,
    /// Finds out the masters, if Sentinels manage them.
    masters: Option<Mutex<Masters>>,
    /// No node of the cluster has reported slots that can be used, or too few Sentinels answer: the names of these may
    /// have other addresses.
    seeds_in_doubt: (Mutex<bool>, Condvar),
    reports: OnceLock<Reports>,
    started: Instant,
    /// When the drain of clients began: Unix time in seconds; 0: there is none.
    drain_began_unix_s: AtomicU64,
    /// What the cores count.
    tallies: Mutex<Vec<Arc<Tally>>>,
    /// The commands that nodes have described.
    commands: Mutex<Vec<&'static Command>>,
    /// The configuration of the proxies now, and how often it was changed.
    current: Mutex<(Arc<Settings>, u64)>,
    /// How often the configuration was changed, readable without the lock.
    changes: AtomicU64,
    /// The epoch of the current map, readable without the lock.
    epoch: AtomicU64,
}

/// What happened to a node, for people: its name, its address, and why it is down. `None`: it answers again.
type ReportNode = dyn Fn(&str, SocketAddr, Option<&str>) + Send + Sync;

/// What people should know besides the metrics. Any core calls these.
pub struct Reports {
    /// A node is down, or it answers again: its name, its address, and why it is down. `None`: it answers.
    pub node: Box<ReportNode>,
    /// A line: the slots of the cluster become known, are not known for some seconds, or a node is of another cluster; or the
    /// master of a node that Sentinels manage becomes known or is another one, or no majority gives one for some seconds.
    pub line: Box<dyn Fn(&str) + Send + Sync>,
    /// A client has sent a wrong user name or password.
    pub denied: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Reports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reports")
    }
}

impl Shared {
    /// Reports to these from now on. Only the first call has an effect.
    pub fn report_to(&self, reports: Reports) {
        let _ = self.reports.set(reports);
    }

    /// A client has sent AUTH, or HELLO with AUTH, and gets this error.
    pub(super) fn denied(&self, error: &[u8]) {
        if let Some(reports) = self.reports.get()
            && error.starts_with(b"WRONGPASS")
        {
            (reports.denied)();
        }
    }

    /// A core finds that a node is down, or that it answers again.
    pub(super) fn report(&self, nodes: &Nodes, node: usize, why: Option<&str>) {
        if let Some(reports) = self.reports.get() {
            (reports.node)(nodes.name(node), nodes.address(node), why);
        }
    }

    fn report_lines(&self, lines: impl IntoIterator<Item = String>) {
        if let Some(reports) = self.reports.get() {
            lines.into_iter().for_each(|line| (reports.line)(&line));
        }
    }

    /// Creates the shared state.
    pub fn new(settings: Settings) -> Self {
        Self::counting(settings, Counts::default())
    }

    /// Creates the shared state with these counters.
    pub fn counting(settings: Settings, counts: Counts) -> Self {
        let epoch = AtomicU64::new(settings.map.epoch());
        Shared {
            slow_log: SlowLog::new(settings.slow_entries),
            versions: Versions::new(settings.nodes.count()),
            hot_keys: HotKeys::new(Instant::now()),
            drain_began_unix_s: AtomicU64::new(0),
            users: Users::default(),
            topology: (!settings.seeds.is_empty())
                .then(|| Mutex::new(Topology::new(settings.seeds.to_vec()))),
            masters: settings.sentinels.as_deref().map(|sentinels| {
                Mutex::new(Masters::new(sentinels.addresses.clone(), &settings.managed()))
            }),
            seeds_in_doubt: (Mutex::new(false), Condvar::new()),
            reports: OnceLock::new(),
            started: Instant::now(),
            counts,
            tallies: Mutex::default(),
            commands: Mutex::default(),
            current: Mutex::new((Arc::new(settings.clone()), 0)),
            changes: AtomicU64::new(0),
            settings,
            epoch,
        }
    }

    /// Replaces the configuration for the proxies of this process while they serve clients. Each proxy
    /// adopts it before the next request that it reads, and within 100 ms if it has subscribers.
    ///
    /// If the epoch of the map is higher, or a node has another name or address, then requests that are
    /// already in flight are answered first: a client never has requests in flight under two maps, so
    /// none of its requests is overtaken by a later one. Transactions, watched keys and blocking
    /// commands end with an error, and subscribed clients are disconnected, where what they depend on may
    /// have moved: with another map, all of them; otherwise those at a node that is another one now.
    ///
    /// What a client was permitted stays permitted: another password applies to later AUTH. The limit of
    /// entries of the slow log stays, and so does [`Settings::patient`] for connections that are open.
    ///
    /// The map and the nodes of a cluster stay: they follow from what the cluster reports. Its seeds are the new ones. The
    /// addresses of masters that Sentinels manage stay, too.
    ///
    /// # Panics
    /// Panics if the number of nodes differs.
    pub fn reload(&self, mut settings: Settings) {
        if self.masters.is_some() {
            return self.reload_managed(settings);
        }
        self.with_topology(|topology| topology.set_seeds(settings.seeds.to_vec()));
        let mut current = self.lock();
        if current.0.map.cluster().is_some() {
            settings.map = Arc::clone(&current.0.map);
            settings.nodes = Arc::clone(&current.0.nodes);
        }
        self.replace(&mut current, settings);
    }

    fn replace(&self, current: &mut (Arc<Settings>, u64), mut settings: Settings) {
        assert_eq!(settings.map.nodes(), settings.nodes.count(), "as many nodes as the map has");
        let count = self.settings.nodes.count();
        assert_eq!(settings.nodes.count(), count, "the number of nodes cannot change");
        let (before, changes) = current;
        if !Arc::ptr_eq(&before.nodes, &settings.nodes) {
            // From now on its addresses do not change, so all cores find the same differences.
            before.nodes.retire();
        }
        let mut has_moved = false;
        for (node, differs) in settings.nodes.differing(&before.nodes).enumerate() {
            has_moved |= differs;
            if differs {
                self.versions.forget(node);
            }
        }
        if has_moved && settings.map.epoch() <= before.map.epoch() {
            settings.map = Arc::new(settings.map.with_epoch(before.map.epoch() + 1));
        }
        let epoch = settings.map.epoch();
        *before = Arc::new(settings);
        *changes += 1;
        self.epoch.store(epoch, Release);
        self.changes.store(*changes, Release);
    }

    /// The configuration of the proxies now.
    pub fn current(&self) -> Arc<Settings> {
        Arc::clone(&self.lock().0)
    }

    /// The configuration of the proxies now, and how often it was changed.
    pub(super) fn settings_now(&self) -> (Arc<Settings>, u64) {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, (Arc<Settings>, u64)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the configuration and how often it was changed, if that is not `changes`.
    #[inline]
    pub(super) fn newer(&self, changes: u64) -> Option<(Arc<Settings>, u64)> {
        (self.changes.load(Acquire) != changes).then(|| self.lock().clone())
    }

    /// Returns the version that clients see: the lowest of the nodes that have reported theirs, otherwise that of the
    /// table of commands.
    pub(super) fn version(&self) -> String {
        self.versions.lowest().map_or_else(|| VERSION.to_owned(), |version| version.to_string())
    }

    /// A core begins to drain its clients at this Unix time, in seconds. The first core counts.
    pub(super) fn drain_begins(&self, unix_s: u64) {
        let _ = self.drain_began_unix_s.compare_exchange(0, unix_s, Relaxed, Relaxed);
    }

    /// When the drain of clients began: Unix time in seconds; 0: there is none.
    pub(super) fn drain_began_unix_s(&self) -> u64 {
        self.drain_began_unix_s.load(Relaxed)
    }

    /// Returns a tally for one more core.
    pub(super) fn new_tally(&self) -> Arc<Tally> {
        let tally = Arc::new(Tally::new(self.settings.nodes.count()));
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&tally));
        tally
    }

    /// The tallies of all cores.
    pub(super) fn tallies(&self) -> Vec<Arc<Tally>> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the command of this description, the same one each time. `None` if nodes have described too many: they
    /// are kept for ever.
    pub(super) fn command(&self, description: Description) -> Option<&'static Command> {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = commands.iter().find(|command| description.is_of(command)) {
            return Some(known);
        }
        (commands.len() < MOST_COMMANDS).then(|| {
            let command = description.leak();
            commands.push(command);
            command
        })
    }

    /// There is a reason to ask the cluster for its slots. `first`: the node that knows best.
    pub(super) fn want_slots(&self, first: Option<SocketAddr>) {
        self.with_topology(|topology| topology.want(first));
    }

    /// When a node of the cluster is to be asked for its slots, if that is known.
    pub(super) fn slots_due(&self) -> Option<Instant> {
        self.with_topology(|topology| topology.due()).flatten()
    }

    /// Returns the node of the cluster that the caller must ask for its slots, if it is time to.
    pub(super) fn ask_for_slots(&self, now: Instant) -> Option<SocketAddr> {
        self.with_topology(|topology| topology.ask(now)).flatten()
    }

    /// A node of the cluster was asked, and this is what it has reported, or why it has not. `jitter`: a random number
    /// from 0 to 1.
    pub(super) fn report_slots(&self, answer: Result<View, String>, now: Instant, jitter: f64) {
        self.change_slots(|topology| topology.answered(answer, now, jitter));
        if self.with_topology(Topology::have_all_failed) == Some(true) {
            self.doubt_seeds();
        }
        let news = self.with_topology(Topology::take_news).unwrap_or_default();
        self.report_lines(news.iter().map(|news| news.line()));
    }

    /// The names of seeds, or of Sentinels, may have other addresses.
    fn doubt_seeds(&self) {
        let (is_in_doubt, changed) = &self.seeds_in_doubt;
        *is_in_doubt.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Waits until all nodes of the cluster that are known have failed to report slots that can be used, or too few
    /// Sentinels have answered: the names of the seeds, or of the Sentinels, may have other addresses now.
    pub fn wait_for_doubted_seeds(&self) {
        let (is_in_doubt, changed) = &self.seeds_in_doubt;
        let is_in_doubt = is_in_doubt.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_while(is_in_doubt, |is_in_doubt| !*is_in_doubt);
        *waited.unwrap_or_else(PoisonError::into_inner) = false;
    }

    /// Replaces the addresses of the nodes that are asked for the slots of the cluster. Without effect if there are none.
    pub fn set_seeds(&self, seeds: Vec<SocketAddr>) {
        self.with_topology(|topology| topology.set_seeds(seeds));
    }

    /// Whether the proxy knows where keys are: not before the first view of a cluster.
    pub fn knows_slots(&self) -> bool {
        self.with_topology(|topology| topology.last_view().is_some()).unwrap_or(true)
    }

    /// The epoch of the last view of the cluster (0: there was none), and how long ago a node confirmed it; without a view,
    /// since the start. `None`: it is no cluster.
    pub(super) fn last_view(&self, now: Instant) -> Option<(u64, Duration)> {
        let (epoch, at) =
            self.with_topology(|topology| topology.last_view())?.unwrap_or((0, self.started));
        Some((epoch, now.saturating_duration_since(at)))
    }

    /// A command needs a view of the cluster that is asked for from now on. Returns the number that
    /// [`Shared::confirmed_view`] must reach.
    pub(super) fn want_fresh_slots(&self) -> u64 {
        self.with_topology(Topology::want_fresh).unwrap_or_default()
    }

    /// The number of the last question for the slots whose answer was adopted.
    pub(super) fn confirmed_view(&self) -> u64 {
        self.with_topology(|topology| topology.confirmed()).unwrap_or_default()
    }

    /// Gives places to all masters of the cluster without slots. Returns whether all have one.
    pub(super) fn admit_all(&self) -> bool {
        let mut has_all = true;
        self.change_slots(|topology| {
            let (change, all) = topology.admit_all();
            has_all = all;
            change
        });
        has_all
    }

    /// Gives a place to a node of the cluster that has no slots yet, if the cluster has reported it.
    pub(super) fn admit_guest(&self, guest: SocketAddr) {
        self.change_slots(|topology| topology.admit(guest));
    }

    /// Why the slots of the cluster are not known.
    pub(super) fn why_no_slots(&self) -> String {
        self.with_topology(|topology| topology.why().to_owned()).unwrap_or_default()
    }

    fn with_topology<T>(&self, with: impl FnOnce(&mut Topology) -> T) -> Option<T> {
        let topology = self.topology.as_ref()?;
        Some(with(&mut topology.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Replaces the slots and nodes of the cluster. The lock of the topology is held meanwhile, so that of two changes
    /// the later one stays.
    fn change_slots(&self, change: impl FnOnce(&mut Topology) -> Option<Change>) {
        self.with_topology(|topology| {
            let Some(Change { cluster, nodes }) = change(topology) else { return };
            let mut current = self.lock();
            let (map, nodes) = (Map::new(current.0.map.epoch() + 1, cluster), Nodes::new(nodes));
            let settings = Settings::clone(&current.0);
            let (map, nodes) = (Arc::new(map), Arc::new(nodes));
            self.replace(&mut current, Settings { map, nodes, ..settings });
        });
    }

    /// Returns the current map, if its epoch differs from this one.
    #[inline]
    pub(super) fn newer_map(&self, epoch: u64) -> Option<Arc<Map>> {
        (self.epoch.load(Acquire) != epoch).then(|| Arc::clone(&self.lock().0.map))
    }
}

/// Counters of the proxies of all cores since their start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Client connections accepted.
    pub connections: Counter,
    /// Client connections closed.
    pub disconnections: Counter,
    /// Clients refused because as many as are permitted were connected.
    pub refused_max: Counter,
    /// Clients refused because as many of their address as are permitted were connected.
    pub refused_per_address: Counter,
    /// Clients disconnected because they left too many reply bytes unread.
    pub unread: Counter,
    /// Clients disconnected because all clients of a core together held too much memory.
    pub evicted: Counter,
    /// Connections to nodes that were lost or could not be opened, except idle ones and those closed
    /// because the shard map changed.
    pub lost: Counter,
    /// Connections to nodes that were lost because a reply timed out.
    pub timeouts: Counter,
}

impl Counts {
    /// The number of clients that are connected.
    pub fn clients(&self) -> usize {
        self.connections.get().saturating_sub(self.disconnections.get())
    }

    /// Creates the counters with `make`, e.g. in memory that processes share.
    ///
    /// # Errors
    /// Returns the error of `make`.
    pub fn new<E>(make: impl Fn() -> Result<Counter, E>) -> Result<Self, E> {
        Ok(Counts {
            connections: make()?,
            disconnections: make()?,
            refused_max: make()?,
            refused_per_address: make()?,
            unread: make()?,
            evicted: make()?,
            lost: make()?,
            timeouts: make()?,
        })
    }
}
