//! The WebSocket hub: a broadcast from one member is delivered to all members of its room. A
//! connection uses HTTP until its upgrade, then WebSocket messages. What happens to a slow member is decided in
//! `regatta_engine`'s `pushes::backlog`; `member` closes it.

mod access;
mod api;
mod begun;
mod broadcast;
mod bucket;
mod census;
mod compress;
mod dismissal;
mod door;
mod holding;
mod member;
mod message;
mod metrics;
mod results;
mod settings;
mod state;

pub use access::{Access, InvalidKeySet, InvalidOrigin, Jwt, Origin};
pub use api::keys::Api;
pub use broadcast::Broadcast;
pub use census::Limits;
pub use member::Member;
pub use message::{MalformedMessage, Message};
pub use metrics::Metrics;
pub use settings::Settings;

use census::Census;
use regatta_engine::{Bounds, Counter, Now, PolicyCounts, RoomName, SessionFactory};
use std::sync::Arc;

/// Creates the members of a hub.
#[derive(Clone, Debug, Default)]
pub struct Hub {
    settings: Arc<Settings>,
    census: Arc<Census>,
}

impl Hub {
    /// Creates an empty hub with these settings.
    pub fn new(settings: Settings) -> Hub {
        let census = Census::new(settings.api.is_some());
        Hub { settings: Arc::new(settings), census: Arc::new(census) }
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
        Ok(Hub { settings: Arc::new(settings), census: Arc::new(Census::shared(counter)?) })
    }

    /// Returns the page for Prometheus.
    pub fn metrics(&self) -> Metrics {
        Metrics { census: Arc::clone(&self.census), settings: Arc::clone(&self.settings) }
    }
}

impl SessionFactory for Hub {
    type Session = Member;

    fn session(&self, now: Now) -> Member {
        Member::new(&self.settings, &self.census, now)
    }

    fn bounds(&self) -> Bounds {
        self.settings.backlog.clone()
    }

    fn arrived(&self, room: &RoomName, push: Broadcast) -> Broadcast {
        let memory = &self.settings.backlog.memory;
        let push = push.charged(memory);
        let Some(note) = push.note() else { return push };
        let Some(members) = self.census.record_remote(room, note) else { return push };
        Broadcast::presence(note.clone(), members, memory)
    }
}
