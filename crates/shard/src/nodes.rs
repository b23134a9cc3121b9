//! The nodes behind the proxy, and their health.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// The nodes behind a proxy, in the order of the shard map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    nodes: Vec<(String, SocketAddr)>,
}

impl Nodes {
    /// Creates the list from names, which appear in error messages, and addresses.
    pub fn new(nodes: impl IntoIterator<Item = (String, SocketAddr)>) -> Self {
        Nodes { nodes: nodes.into_iter().collect() }
    }

    /// The number of nodes.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The name of a node, for messages.
    pub fn name(&self, node: usize) -> &str {
        &self.nodes[node].0
    }

    /// The address of a node.
    pub fn address(&self, node: usize) -> SocketAddr {
        self.nodes[node].1
    }
}

/// The first pause before a node is retried, and the longest.
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MOST: Duration = Duration::from_secs(1);

/// Whether a node is reachable: a circuit breaker.
///
/// A node is *down* after a connection to it could not be opened or a reply timed out. Its requests
/// then fail at once. After a pause, the proxy probes it with a PING; when it answers, it is up
/// again. Pauses double up to one second. Each is shortened at random by up to a half, so that
/// several proxies do not all reconnect to a recovering node at the same moment.
#[derive(Debug, Default)]
pub(super) enum Health {
    #[default]
    Up,
    /// Unreachable; the next probe is at `retry_at`. `why`: the reason, for messages.
    Down { retry_at: Instant, pause: Duration, why: String },
    /// A probe is in flight.
    Probing { pause: Duration, why: String },
}

impl Health {
    /// Why its requests fail. `None`: the node is up.
    pub(super) fn why_down(&self) -> Option<&str> {
        match self {
            Health::Up => None,
            Health::Down { why, .. } | Health::Probing { why, .. } => Some(why),
        }
    }

    /// Records a failure. `jitter`: a random number from 0 to 1.
    pub(super) fn failed(&mut self, now: Instant, why: String, jitter: f64) {
        let pause = match self {
            Health::Up => BACKOFF,
            Health::Down { .. } => return,
            Health::Probing { pause, .. } => (*pause * 2).min(BACKOFF_MOST),
        };
        *self = Health::Down { retry_at: now + pause.mul_f64(1.0 - jitter / 2.0), pause, why };
    }

    /// When the next probe is due.
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Health::Down { retry_at, .. } => Some(*retry_at),
            _ => None,
        }
    }

    /// Returns whether a probe is due now. If so, the state becomes `Probing`.
    pub(super) fn probes(&mut self, now: Instant) -> bool {
        match self {
            Health::Down { retry_at, pause, why } if *retry_at <= now => {
                *self = Health::Probing { pause: *pause, why: std::mem::take(why) };
                true
            }
            _ => false,
        }
    }

    /// Records that the node answered.
    pub(super) fn answered(&mut self) {
        *self = Health::Up;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second() {
        let start = Instant::now();
        let (mut health, mut now, mut pauses) = (Health::default(), start, Vec::new());
        for _ in 0..7 {
            health.failed(now, "refused".into(), 0.0);
            let due = health.due().unwrap();
            assert!(!health.probes(due - Duration::from_millis(1)));
            assert_eq!(health.why_down(), Some("refused"));
            assert!(health.probes(due) && !health.probes(due));
            assert_eq!(health.why_down(), Some("refused"));
            pauses.push((due - now).as_millis());
            now = due;
        }
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        health.answered();
        assert_eq!(health.why_down(), None);
        health.failed(now, "refused".into(), 1.0);
        assert_eq!(health.due(), Some(now + Duration::from_millis(25)));
    }

    #[test]
    fn one_failure_counts_once() {
        let now = Instant::now();
        let mut health = Health::default();
        health.failed(now, "one".into(), 0.0);
        let due = health.due();
        // The other connections to the node fail, too.
        health.failed(now + Duration::from_millis(20), "two".into(), 0.0);
        assert_eq!((health.due(), health.why_down()), (due, Some("one")));
    }
}
