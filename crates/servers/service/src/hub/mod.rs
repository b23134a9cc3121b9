//! The WebSocket hub: a broadcast from one member is delivered to all members of its room. A
//! connection uses HTTP until its upgrade, then WebSocket messages. What happens to a slow member is decided in
//! `regatta_engine`'s `pushes::backlog`; `member` closes it.

mod access;
mod api;
mod begun;
mod broadcast;
mod broker;
mod bucket;
mod census;
mod centrifuge;
mod compress;
mod dismissal;
mod door;
mod history;
mod holding;
mod last_delivery;
mod live;
mod member;
mod message;
mod metrics;
mod refusal;
mod results;
mod rooms;
mod settings;
mod state;

pub use access::{Access, InvalidKeySet, InvalidOrigin, Jwt, Origin};
pub use api::keys::Api;
pub use broadcast::Broadcast;
pub use broker::{Broker, BrokerLink, BrokerTls, Health, Password, Place};
pub use census::Limits;
pub use centrifuge::Connection;
pub use history::HistoryLimits;
pub use message::{MalformedMessage, Message};
pub use metrics::Metrics;
pub use rooms::{InvalidPattern, Publish, RoomPattern, RoomRule};
pub use settings::Settings;

use census::Census;
use history::Histories;
use live::Live;
use member::Member;
use regatta_engine::{
    Bounds, Counter, Memory, Now, Policy, PolicyCounts, RoomName, SessionFactory,
};
use rooms::Plan;
use std::sync::Arc;

/// Creates the members of a hub.
#[derive(Clone, Debug)]
pub struct Hub {
    live: Arc<Live>,
    census: Arc<Census>,
    /// That of the settings, which stays the same.
    memory: Arc<Memory>,
}

impl Default for Hub {
    fn default() -> Self {
        Hub::new(Settings::default())
    }
}

impl Hub {
    /// Creates an empty hub with these settings.
    pub fn new(settings: Settings) -> Hub {
        let mut census = match settings.broker {
            None => Census::new(settings.api.is_some() || settings.centrifuge),
            Some(_) => Census::joined(Plan::new(settings.clone()).has_presence()),
        };
        census.describes = settings.centrifuge;
        census.node = settings.broker.as_ref().map(|broker| broker.node);
        Hub::with(settings, census)
    }

    fn with(settings: Settings, mut census: Census) -> Hub {
        let memory = Arc::clone(&settings.backlog.memory);
        let histories =
            if settings.broker.is_some() { Histories::mirroring } else { Histories::new };
        census.histories = histories(Arc::clone(&memory));
        let live = Arc::new(Live::new(Plan::new(settings)));
        Hub { live, census: Arc::new(census), memory }
    }

    /// Like [`Hub::new`], for a hub that is forked into processes, with counters that they share.
    /// The processes share the number of members and all counters, but not their rooms.
    ///
    /// # Errors
    /// Returns the error of `counter`.
    pub fn shared<E>(
        mut settings: Settings,
        mut counter: impl FnMut() -> Result<Counter, E>,
    ) -> Result<Hub, E> {
        settings.backlog.counts = Arc::new(PolicyCounts::counting(&mut counter)?);
        Ok(Hub::with(settings, Census::shared(counter)?))
    }

    /// Returns the page for Prometheus.
    pub fn metrics(&self) -> Metrics {
        Metrics { census: Arc::clone(&self.census), live: Arc::clone(&self.live) }
    }

    /// The number of members, on all cores and in all processes.
    pub fn members(&self) -> usize {
        self.census.members()
    }

    /// The maximum memory that members may make a process hold, in bytes.
    pub fn memory_limit(&self) -> usize {
        self.memory.limit()
    }

    /// The connection to its broker, if it has one. Only one of its cores may use it.
    pub fn broker_link(&self) -> Option<BrokerLink> {
        let broker = self.live.current().broker.clone()?;
        Some(BrokerLink::new(broker, Arc::clone(&self.live), Arc::clone(&self.census)))
    }

    /// What is known of the connection to its broker, if it has one.
    pub fn broker_health(&self) -> Option<Arc<Health>> {
        self.live.current().broker.as_ref().map(|broker| Arc::clone(&broker.health))
    }

    /// Whether it has an API for backends.
    pub fn has_api(&self) -> bool {
        self.live.current().api.is_some()
    }

    /// Whether a reload with these settings may notify members of others. A hub that has a broker tells the others of its
    /// members only if members of some room were notified at the start.
    pub fn may_notify(&self, settings: &Settings) -> bool {
        let has_broker = self.live.current().broker.is_some();
        !has_broker || self.census.notifies() || !Plan::new(settings.clone()).has_presence()
    }

    /// Whether clients need no token.
    pub fn admits_everybody(&self) -> bool {
        self.live.current().access.admits_everybody()
    }

    /// Whether these settings have another token or another key of the API than the present ones. Keys of JSON
    /// Web Tokens are not compared.
    pub fn has_other_secrets(&self, settings: &Settings) -> bool {
        let before = self.live.current();
        let is_same_token = match (&before.access, &settings.access) {
            (Access::Token(one), Access::Token(other)) => one == other,
            _ => true,
        };
        let apis = before.api.as_ref().zip(settings.api.as_ref());
        !is_same_token || apis.is_some_and(|(one, other)| !one.is_like(other))
    }

    /// Replaces the settings of this process, for requests from now on and members that join from now on. Others
    /// keep those of their join. The memory, the broker, whether there is an API, and its known publications stay as they
    /// are.
    pub fn reload(&self, mut settings: Settings) {
        let before = self.live.current();
        settings.backlog.memory = Arc::clone(&self.memory);
        settings.backlog.counts = Arc::clone(&before.backlog.counts);
        settings.broker = before.broker.clone();
        settings.api = match (&before.api, settings.api) {
            (Some(before), Some(new)) => Some(Arc::new(new.after(before))),
            (before, _) => before.clone(),
        };
        self.live.replace(Plan::new(settings));
    }
}

impl SessionFactory for Hub {
    type Session = Connection;

    fn session(&self, now: Now) -> Connection {
        Connection::new(Member::new(&self.live, &self.census, now))
    }

    fn bounds(&self, room: &RoomName) -> Bounds {
        let mut bounds = self.live.current().terms(room.as_str()).bounds.clone();
        if self.census.keeps(room) {
            // The room has had its history since before a reload. A member that missed a push would not look there.
            bounds.policy = Policy::Close;
        }
        bounds
    }

    fn arrived(&self, room: &RoomName, push: Broadcast) -> Broadcast {
        let push = push.charged(&self.memory);
        let Some(note) = push.note() else { return push };
        let Some(members) = self.census.record_remote(room, note) else { return push };
        Broadcast::presence(note.clone(), members, &self.memory)
    }
}
