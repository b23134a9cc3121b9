//! What is known of the connection to the broker: for metrics, readiness and people.

use crate::prometheus::{Exposition, label};
use regatta_engine::{Counter, RemoteOutcome};
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// How long the broker may be away until the hub should get no new clients.
pub(super) const STALE: Duration = Duration::from_secs(15);

/// How long a member may take that has sent a Close frame and does not read what follows: what became of its messages is known
/// after 20 s at most.
pub(in super::super) const LEAVES: Duration = Duration::from_secs(30);
/// How long a member that leaves waits for messages of others that are on their way.
const SETTLES: Duration = Duration::from_secs(1);
/// How often it looks whether there are some.
const SETTLE: Duration = Duration::from_millis(100);

/// A member leaves: it waits for its own results, which the connection to the broker promises, and for a while for messages of
/// others.
#[derive(Debug)]
pub(in super::super) struct Settling {
    /// When it looks again whether something is on its way.
    pub at: Instant,
    until: Instant,
}

impl Settling {
    /// It begins to wait.
    pub fn new(now: Instant) -> Box<Settling> {
        Box::new(Settling { at: now + SETTLE, until: now + SETTLES })
    }

    /// Whether it still waits. `has_results`: some of its own are pending.
    pub fn waits(&self, has_results: bool, now: Instant) -> bool {
        has_results || now < self.until
    }

    /// Whether something is on its way, for which it waits.
    pub fn looks_again(&mut self, health: &Health, has_results: bool, now: Instant) -> bool {
        self.at = now + SETTLE;
        has_results || health.has_awaited() && now < self.until
    }
}

/// The connection of a hub to its broker, as other threads see it.
#[derive(Debug, Default)]
pub struct Health {
    is_up: AtomicBool,
    /// It was connected, and has refused to publish.
    refuses: AtomicBool,
    /// Messages wait until those at the broker have come back.
    is_busy: AtomicBool,
    /// Messages whose senders wait for the outcome.
    awaited: Counter,
    away: Mutex<Away>,
    /// Since when it refuses to keep messages.
    refuses_to_keep: Mutex<Option<Instant>>,
    /// Connections that were up and are lost.
    pub(super) lost: Counter,
    /// Attempts to connect that failed.
    pub(super) failed: Counter,
    /// Messages that came from the broker.
    pub(super) received: Counter,
    /// Those that no hub of this version has published.
    pub(super) ignored: Counter,
    /// Those that came again, or behind newer ones of the same hub.
    pub(super) repeated: Counter,
    /// Members are notified of those of all hubs.
    presence: AtomicBool,
    /// Commands for that that the broker has refused.
    pub(super) presence_refused: Counter,
    sent: Counter,
    not_sent: Counter,
    unknown: Counter,
}

/// Since when the broker is away.
#[derive(Debug, Default)]
enum Away {
    /// It was never there.
    #[default]
    Always,
    Since(Instant),
    No,
}

impl Health {
    fn away(&self) -> MutexGuard<'_, Away> {
        // Nothing panics while holding the lock.
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_up(&self) -> bool {
        self.is_up.load(Relaxed)
    }

    /// Whether messages wait until those at the broker have come back. Then members that wait for results are not read.
    pub(in super::super) fn is_busy(&self) -> bool {
        self.is_busy.load(Relaxed)
    }

    pub(super) fn set_busy(&self, is_busy: bool) {
        self.is_busy.store(is_busy, Relaxed);
    }

    /// Whether messages of this hub are on their way.
    fn has_awaited(&self) -> bool {
        self.awaited.get() > 0
    }

    pub(super) fn has_presence(&self) {
        self.presence.store(true, Relaxed);
    }

    /// The sender of one more message waits.
    pub(super) fn awaits(&self) {
        self.awaited.add(1);
    }

    pub(super) fn refuses(&self) {
        self.refuses.store(true, Relaxed);
    }

    fn keeping(&self) -> MutexGuard<'_, Option<Instant>> {
        self.refuses_to_keep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is connected, and refuses to keep messages. Returns whether this is new.
    pub(super) fn refuses_to_keep(&self, now: Instant) -> bool {
        let mut since = self.keeping();
        let is_new = since.is_none();
        since.get_or_insert(now);
        is_new
    }

    /// Whether it refuses to keep messages.
    pub(super) fn is_refusing_to_keep(&self) -> bool {
        self.keeping().is_some()
    }

    /// It keeps messages. Returns whether it had refused that.
    pub(super) fn keeps(&self) -> bool {
        self.keeping().take().is_some()
    }

    pub(super) fn up(&self) {
        self.refuses.store(false, Relaxed);
        self.is_up.store(true, Relaxed);
        *self.away() = Away::No;
    }

    pub(super) fn down(&self, now: Instant) {
        self.is_up.store(false, Relaxed);
        let mut away = self.away();
        if matches!(*away, Away::No) {
            *away = Away::Since(now);
        }
    }

    pub(super) fn count(&self, outcome: RemoteOutcome) {
        let counter = match outcome {
            RemoteOutcome::Sent | RemoteOutcome::Kept { .. } => &self.sent,
            RemoteOutcome::NotSent | RemoteOutcome::Refused(_) => &self.not_sent,
            RemoteOutcome::Unknown => &self.unknown,
        };
        counter.add(1);
        self.awaited.take_back();
    }

    /// Whether the hub should get new clients.
    ///
    /// # Errors
    /// Says why not: the broker was never connected, or has been away, or has refused messages or to keep them, for more than
    /// 15 s.
    pub fn readiness(&self, now: Instant) -> Result<(), &'static str> {
        let refuses = self.refuses.load(Relaxed);
        match *self.away() {
            Away::Always if refuses => {
                Err("waiting: the broker refuses to publish; the log of the hub says why")
            }
            Away::Since(at) if refuses && now.saturating_duration_since(at) > STALE => Err(
                "the broker has refused to publish for more than 15 s; the log of the hub says why",
            ),
            Away::Always => Err("waiting: the broker has not been connected yet"),
            Away::Since(at) if now.saturating_duration_since(at) > STALE => {
                Err("the broker has been away for more than 15 s")
            }
            Away::No
                if self.keeping().is_some_and(|at| now.saturating_duration_since(at) > STALE) =>
            {
                Err(
                    "the broker has refused to keep messages for more than 15 s; the log of the hub says why",
                )
            }
            Away::Since(_) | Away::No => Ok(()),
        }
    }

    /// Its metrics for Prometheus.
    pub(in super::super) fn metrics(&self) -> String {
        let mut all = Exposition::new("regatta_hub");
        let mut one = |name: &str, kind: &str, help: &str, value: u64| {
            all.family(name, kind, help, &[("", value)]);
        };
        let of = |counter: &Counter| counter.get() as u64;
        one("broker_up", "gauge", "Whether the broker is connected.", u64::from(self.is_up()));
        let keeps = u64::from(!self.is_refusing_to_keep());
        let help = "Whether the broker keeps messages, or need not, as of the last heartbeat.";
        one("broker_keeps", "gauge", help, keeps);
        let help = "Connections to the broker that were lost. After each, members get a gap.";
        one("broker_lost_total", "counter", help, of(&self.lost));
        let help = "Attempts to connect to the broker that failed.";
        one("broker_failed_total", "counter", help, of(&self.failed));
        let help = "Messages that came from the broker, including own ones.";
        one("broker_received_total", "counter", help, of(&self.received));
        let help = "Messages of the broker that no hub of this version has published.";
        one("broker_ignored_total", "counter", help, of(&self.ignored));
        let help = "Messages that came again or behind newer ones of the same hub, and were not delivered.";
        one("broker_repeated_total", "counter", help, of(&self.repeated));
        if self.presence.load(Relaxed) {
            let help = "Commands for presence that the broker has refused.";
            one("broker_presence_refused_total", "counter", help, of(&self.presence_refused));
        }
        let sent = [
            (label("outcome", "published"), of(&self.sent)),
            (label("outcome", "not_published"), of(&self.not_sent)),
            (label("outcome", "unknown"), of(&self.unknown)),
        ];
        let help = "Messages for the broker, by what their senders learned.";
        all.family("broker_messages_total", "counter", help, &sent);
        all.into_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_is_ready_once_it_was_connected_until_the_broker_has_been_away_for_15_seconds() {
        let (health, start) = (Health::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        health.down(at(0));
        assert!(health.readiness(at(1)).is_err(), "never connected");
        health.up();
        assert_eq!(health.readiness(at(99_000)), Ok(()));
        health.down(at(100_000));
        health.down(at(110_000));
        assert_eq!(health.readiness(at(115_000)), Ok(()));
        assert!(health.readiness(at(115_001)).is_err(), "since the first loss");
        health.up();
        assert_eq!(health.readiness(at(200_000)), Ok(()));
        health.refuses();
        health.down(at(200_000));
        assert!(health.readiness(at(215_001)).unwrap_err().contains("refused to publish"));
        health.up();
        assert!(health.refuses_to_keep(at(300_000)) && !health.refuses_to_keep(at(310_000)));
        assert_eq!(health.readiness(at(315_000)), Ok(()));
        assert!(health.readiness(at(315_001)).unwrap_err().contains("refused to keep"));
        assert!(health.keeps() && !health.keeps() && health.readiness(at(315_001)).is_ok());
    }
}
