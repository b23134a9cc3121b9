//! A broker that is the master of a slot of a Redis Cluster. A thread asks its nodes every two seconds, one after the other,
//! and more often while there is a reason; the proxy and a hub agree on whose view counts ([`SlotMaster`]).

use super::{
    asker::{ANSWER, Asker, look_up},
    follower::{Follower, Following, lock},
    login::Login,
    url::Server,
};
use crate::output;
use regatta_serve::{HubBrokerTls, HubPlace};
use regatta_service::prometheus::Exposition;
use regatta_shard::cluster::SlotMaster;
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// How often a node is asked without a reason.
const EVERY: Duration = Duration::from_secs(2);
/// The longest answer, in bytes: a node has a line of some 200 bytes, and some 100 bytes for each range of slots.
const LONGEST: usize = 4 << 20;

/// A broker in a cluster.
pub struct InCluster {
    asks: Arc<Asks>,
    follower: Follower,
}

/// What the thread needs.
struct Asks {
    /// The name of the broker, for messages.
    name: String,
    /// The nodes of the URL.
    seeds: Vec<Server>,
    asker: Asker,
    master: Mutex<SlotMaster>,
    started: Instant,
}

impl InCluster {
    /// The master of the slot of the channels with this prefix. `seeds`: some nodes of the cluster. `name`: that of the
    /// broker, for messages.
    pub fn new(
        name: String,
        seeds: Vec<Server>,
        prefix: &str,
        login: Login,
        tls: Option<HubBrokerTls>,
    ) -> InCluster {
        let asks = Asks {
            name,
            seeds,
            asker: Asker { login, tls, longest: LONGEST, options: "--broker" },
            master: Mutex::new(SlotMaster::new(format!("{{{prefix}}}").as_bytes())),
            started: Instant::now(),
        };
        InCluster { asks: Arc::new(asks), follower: Follower::default() }
    }
}

impl HubPlace for InCluster {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let asks = Arc::clone(&self.asks);
        let started = self.follower.start("cluster", move |following| follow(&asks, &following));
        started.map_err(|error| format!("its nodes are not asked: no thread: {error}"))?;
        let master = lock(&self.asks.master);
        Ok(vec![master.address().ok_or_else(|| master.why())?])
    }

    fn has_left(&self, address: SocketAddr) -> Option<String> {
        let master = lock(&self.asks.master).address().filter(|master| *master != address)?;
        Some(format!("the cluster gives {master} as the master of its slot now"))
    }

    fn is_lost(&self, _was_up: bool) {
        lock(&self.asks.master).want();
        self.follower.wake();
    }

    /// They have the names of those of Sentinels, so that the same alerts are for both.
    fn metrics(&self) -> String {
        let (master, now) = (lock(&self.asks.master), Instant::now());
        let mut all = Exposition::new("regatta_hub");
        let confirmed = master.confirmed_at().unwrap_or(self.asks.started);
        let age = now.saturating_duration_since(confirmed).as_secs();
        let help =
            "Time since a node of the cluster confirmed the master; without one, since the start.";
        all.family("broker_master_age_seconds", "gauge", help, &[("", age)]);
        let help = "How often the slot of the channels got another master, which the hub follows.";
        all.family("broker_master_switches_total", "counter", help, &[("", master.switches())]);
        all.into_text()
    }
}

/// Asks the nodes for as long as the broker is used.
fn follow(asks: &Asks, following: &Following) {
    let mut next = Instant::now();
    loop {
        let now = Instant::now();
        if next <= now {
            next = now + EVERY;
            lock(&asks.master).want();
            if lock(&asks.master).is_in_doubt() {
                asks.resolve();
            }
        }
        let node = lock(&asks.master).ask(now);
        if let Some(node) = node {
            asks.ask(node, now + ANSWER);
            if lock(&asks.master).address().is_some() {
                following.found();
            }
        } else {
            // Without the address of any node there is nobody to ask.
            let due = lock(&asks.master).due().filter(|due| *due > now);
            if !following.wait(due.map_or(next, |due| due.min(next))) {
                return;
            }
        }
    }
}

impl Asks {
    fn resolve(&self) {
        let seeds = self.seeds.iter().flat_map(look_up).collect();
        lock(&self.master).set_seeds(seeds);
    }

    /// Asks this node.
    fn ask(&self, node: SocketAddr, until: Instant) {
        let replies = Asker::connect(&node, until)
            .and_then(|stream| self.asker.ask(&stream, until, &SlotMaster::QUESTIONS))
            .and_then(|replies| replies.try_into().map_err(|_| "it does not answer".to_owned()));
        let mut master = lock(&self.master);
        master.answered(node, replies, Instant::now(), rand::random());
        for line in master.take_news() {
            output::log(&format!("regatta: broker {}: {line}", self.name));
        }
    }
}
