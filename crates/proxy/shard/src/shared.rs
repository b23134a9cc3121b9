//! State shared by the proxies of all cores.

use crate::{
    observe::{slow_log::SlowLog, version::Versions},
    settings::Settings,
    tally::Tally,
};
use regatta_engine::Counter;
use regatta_keyspace::{
    command::{Command, Description, VERSION},
    map::Map,
};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Acquire, Ordering::Release},
};

/// Maximum number of commands that nodes describe; one that is described in two ways counts twice.
const MOST_COMMANDS: usize = 4096;

/// State shared by the proxies of all cores.
#[derive(Debug)]
pub struct Shared {
    /// The configuration.
    pub settings: Settings,
    /// Counters of all proxies together.
    pub counts: Counts,
    /// Requests to which a node took long to reply.
    pub slow_log: SlowLog,
    /// The versions of the nodes.
    pub(super) versions: Versions,
    /// What the cores count.
    tallies: Mutex<Vec<Arc<Tally>>>,
    /// The commands that nodes have described.
    commands: Mutex<Vec<&'static Command>>,
    map: Mutex<Arc<Map>>,
    /// The map's epoch, readable without the lock.
    epoch: AtomicU64,
}

impl Shared {
    /// Creates the shared state.
    pub fn new(settings: Settings) -> Self {
        Self::counting(settings, Counts::default())
    }

    /// Creates the shared state with these counters.
    pub fn counting(settings: Settings, counts: Counts) -> Self {
        let map = Arc::clone(&settings.map);
        let epoch = AtomicU64::new(map.epoch());
        Shared {
            slow_log: SlowLog::new(settings.slow_entries),
            versions: Versions::new(settings.nodes.count()),
            settings,
            counts,
            tallies: Mutex::default(),
            commands: Mutex::default(),
            map: Mutex::new(map),
            epoch,
        }
    }

    /// Replaces the shard map for the proxies of this process while they serve clients. Each proxy
    /// adopts the new map before the next request that it reads, and within 100 ms if it has
    /// subscribers.
    ///
    /// Requests that are already in flight are answered first: a client never has requests in
    /// flight under two maps, so none of its requests is overtaken by a later one. Transactions,
    /// watched keys and blocking commands end with an error, and subscribed clients are
    /// disconnected, because what they depend on may have moved to another node.
    ///
    /// # Panics
    /// Panics if the number of nodes differs, or if the epoch is not higher.
    pub fn change_map(&self, map: Map) {
        assert_eq!(map.nodes(), self.settings.nodes.count(), "the map has another number of nodes");
        let mut current = self.map.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(map.epoch() > current.epoch(), "the epoch of a new map must be higher");
        let epoch = map.epoch();
        *current = Arc::new(map);
        self.epoch.store(epoch, Release);
    }

    /// Returns the version that clients see: the lowest of the nodes that have reported theirs, otherwise that of the
    /// table of commands.
    pub(super) fn version(&self) -> String {
        self.versions.lowest().map_or_else(|| VERSION.to_owned(), |version| version.to_string())
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

    /// Returns the current map, if its epoch differs from this one.
    #[inline]
    pub(super) fn newer_map(&self, epoch: u64) -> Option<Arc<Map>> {
        (self.epoch.load(Acquire) != epoch)
            .then(|| Arc::clone(&self.map.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Counters of the proxies of all cores since their start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Client connections accepted.
    pub connections: Counter,
    /// Client connections closed.
    pub disconnections: Counter,
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
    /// Creates the counters with `make`, e.g. in memory that processes share.
    ///
    /// # Errors
    /// Returns the error of `make`.
    pub fn new<E>(make: impl Fn() -> Result<Counter, E>) -> Result<Self, E> {
        Ok(Counts {
            connections: make()?,
            disconnections: make()?,
            unread: make()?,
            evicted: make()?,
            lost: make()?,
            timeouts: make()?,
        })
    }
}
