//! What the proxies of all cores share.

use super::settings::Settings;
use regatta_engine::Counter;
use regatta_keyspace::map::Map;
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Acquire, Ordering::Release},
};

/// What the proxies of all cores share.
#[derive(Debug)]
pub struct Shared {
    /// What they are asked to do.
    pub settings: Settings,
    /// What they have counted.
    pub counts: Counts,
    map: Mutex<Arc<Map>>,
    /// Of the map, to be looked at without the lock.
    epoch: AtomicU64,
}

impl Shared {
    /// For the proxies of all cores.
    pub fn new(settings: Settings) -> Self {
        Self::counting(settings, Counts::default())
    }

    /// For proxies that count here.
    pub fn counting(settings: Settings, counts: Counts) -> Self {
        let map = Arc::clone(&settings.map);
        let epoch = AtomicU64::new(map.epoch());
        Shared { settings, counts, map: Mutex::new(map), epoch }
    }

    /// Changes which node has which key for the proxies of this process, while clients are served. One takes the new map before the
    /// next request that it reads, within 100 ms if it has subscribers.
    ///
    /// Requests that were sent to nodes before are answered first: no client has requests under way by two
    /// maps, so none of its requests is overtaken by a later one. Transactions, watched keys and commands
    /// that block end with an error, and clients that are subscribed are disconnected, because what they
    /// depend on may be on another node now.
    ///
    /// # Panics
    /// If the map has another number of nodes, or no higher epoch.
    pub fn change_map(&self, map: Map) {
        assert_eq!(map.nodes(), self.settings.nodes.count(), "a map over other nodes");
        let mut current = self.map.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(map.epoch() > current.epoch(), "a map that is not newer");
        let epoch = map.epoch();
        *current = Arc::new(map);
        self.epoch.store(epoch, Release);
    }

    /// The map of now, if it is another than that of this epoch.
    #[inline]
    pub(super) fn newer_map(&self, epoch: u64) -> Option<Arc<Map>> {
        (self.epoch.load(Acquire) != epoch)
            .then(|| Arc::clone(&self.map.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// What the proxies of all cores have counted since their start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Clients that have connected.
    pub connections: Counter,
    /// Clients that have gone.
    pub disconnections: Counter,
    /// Clients that were disconnected because they left too many bytes of replies unread.
    pub unread: Counter,
    /// Connections to nodes that were lost, or could not be opened.
    pub lost: Counter,
    /// Replies of nodes that did not come in time.
    pub timeouts: Counter,
}

impl Counts {
    /// In memory of this kind, such as one that processes share.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new<E>(make: impl Fn() -> Result<Counter, E>) -> Result<Self, E> {
        Ok(Counts {
            connections: make()?,
            disconnections: make()?,
            unread: make()?,
            lost: make()?,
            timeouts: make()?,
        })
    }
}
