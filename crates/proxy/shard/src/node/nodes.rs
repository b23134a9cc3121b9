//! The nodes behind the proxy, and their health.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The address of a node that has none yet.
pub(crate) const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The nodes behind a proxy, in the order of the shard map.
#[derive(Debug)]
pub struct Nodes {
    names: Vec<String>,
    addresses: Mutex<Addresses>,
    /// A connection to a node was lost.
    lost: Condvar,
}

#[derive(Debug)]
struct Addresses {
    addresses: Vec<SocketAddr>,
    /// Nodes whose address is in doubt, because a connection was lost.
    in_doubt: BTreeSet<usize>,
    /// Other nodes are used now.
    are_retired: bool,
}

impl Nodes {
    /// Creates the list from names, which appear in error messages, and addresses.
    pub fn new(nodes: impl IntoIterator<Item = (String, SocketAddr)>) -> Self {
        let (names, addresses) = nodes.into_iter().unzip();
        let addresses =
            Mutex::new(Addresses { addresses, in_doubt: BTreeSet::new(), are_retired: false });
        Nodes { names, addresses, lost: Condvar::new() }
    }

    /// The number of nodes. In a cluster, that of the places for nodes; a free one has an empty name.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// The name of a node, for messages.
    pub fn name(&self, node: usize) -> &str {
        &self.names[node]
    }

    /// The address of a node for new connections.
    pub fn address(&self, node: usize) -> SocketAddr {
        self.lock().addresses[node]
    }

    /// The node at this address, among those that have a name.
    pub(crate) fn find(&self, address: SocketAddr) -> Option<usize> {
        let addresses = self.lock();
        let mut all = addresses.addresses.iter().zip(&self.names);
        all.position(|(at, name)| *at == address && !name.is_empty())
    }

    /// Changes the address of a node for new connections, unless other nodes are used now.
    pub fn set_address(&self, node: usize, address: SocketAddr) {
        let mut addresses = self.lock();
        if !addresses.are_retired {
            addresses.addresses[node] = address;
        }
    }

    /// Notes that a connection to a node was lost, or could not be opened.
    pub(crate) fn doubt(&self, node: usize) {
        self.lock().in_doubt.insert(node);
        self.lost.notify_all();
    }

    /// Waits until connections were lost. Returns their nodes, whose addresses may have changed. `None`:
    /// these nodes are no longer used.
    pub fn wait_for_lost(&self) -> Option<BTreeSet<usize>> {
        let is_waiting = |all: &mut Addresses| all.in_doubt.is_empty() && !all.are_retired;
        let addresses = self.lost.wait_while(self.lock(), is_waiting);
        let mut addresses = addresses.unwrap_or_else(PoisonError::into_inner);
        (!addresses.are_retired).then(|| std::mem::take(&mut addresses.in_doubt))
    }

    /// Notes that other nodes are used now.
    pub(crate) fn retire(&self) {
        self.lock().are_retired = true;
        self.lost.notify_all();
    }

    /// For each node, whether it has another name or address than its counterpart in `others`.
    pub(crate) fn differing(&self, others: &Nodes) -> impl Iterator<Item = bool> {
        let is_same = std::ptr::eq(self, others);
        (0..self.count()).map(move |node| {
            !is_same
                && (self.name(node) != others.name(node)
                    || self.address(node) != others.address(node))
        })
    }

    fn lock(&self) -> MutexGuard<'_, Addresses> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
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
pub(crate) enum Health {
    #[default]
    Up,
    /// Unreachable; the next probe is at `retry_at`. `why`: the reason, for messages.
    Down { retry_at: Instant, pause: Duration, why: String },
    /// A probe is in flight.
    Probing { pause: Duration, why: String },
}

impl Health {
    /// Why its requests fail. `None`: the node is up.
    pub(crate) fn why_down(&self) -> Option<&str> {
        match self {
            Health::Up => None,
            Health::Down { why, .. } | Health::Probing { why, .. } => Some(why),
        }
    }

    /// Records a failure. `jitter`: a random number from 0 to 1.
    pub(crate) fn failed(&mut self, now: Instant, why: String, jitter: f64) {
        let pause = match self {
            Health::Up => BACKOFF,
            Health::Down { .. } => return,
            Health::Probing { pause, .. } => (*pause * 2).min(BACKOFF_MOST),
        };
        *self = Health::Down { retry_at: now + pause.mul_f64(1.0 - jitter / 2.0), pause, why };
    }

    /// When the next probe is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self {
            Health::Down { retry_at, .. } => Some(*retry_at),
            _ => None,
        }
    }

    /// Returns whether a probe is due now. If so, the state becomes `Probing`.
    pub(crate) fn probes(&mut self, now: Instant) -> bool {
        match self {
            Health::Down { retry_at, pause, why } if *retry_at <= now => {
                *self = Health::Probing { pause: *pause, why: std::mem::take(why) };
                true
            }
            _ => false,
        }
    }

    /// Records that the node answered.
    pub(crate) fn answered(&mut self) {
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
    fn the_address_of_a_node_is_in_doubt_after_a_loss() {
        let (before, after) = (([127, 0, 0, 1], 1).into(), ([127, 0, 0, 2], 1).into());
        let nodes = Nodes::new([("a".to_string(), before), ("b".to_string(), before)]);
        nodes.doubt(1);
        nodes.doubt(1);
        assert_eq!(nodes.wait_for_lost(), Some(BTreeSet::from([1])));
        nodes.set_address(1, after);
        assert_eq!((nodes.address(0), nodes.address(1)), (before, after));
        // It waits for the next loss.
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| nodes.wait_for_lost());
            nodes.doubt(0);
            assert_eq!(waits.join().unwrap(), Some(BTreeSet::from([0])));
            let waits = scope.spawn(|| nodes.wait_for_lost());
            nodes.retire();
            assert_eq!(waits.join().unwrap(), None);
        });
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
