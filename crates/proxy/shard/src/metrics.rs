//! The Prometheus metrics of a proxy.

use crate::{
    node::nodes::Nodes,
    observe::{
        class::Class,
        durations::{BOUNDS_US, BUCKETS},
    },
    shared::Shared,
    tally::{Kind, Tally},
};
use regatta_proto::http1::{Date, Terms};
use regatta_service::{
    CallOutcome, Never,
    http::Resource,
    prometheus::{Exposition, Histogram, label, with_label, write_page},
};
use std::{sync::Arc, time::Instant};

/// The path of the page with hot keys.
const HOT: &str = "/hot";

/// The page `/metrics` of a proxy, served on a separate port, and `/hot` with the keys that are requested most, if
/// [`Settings::hot_keys`](crate::Settings::hot_keys) is set.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Shared>);

impl Metrics {
    /// The page of the proxies that share this.
    pub fn new(shared: Arc<Shared>) -> Self {
        Metrics(shared)
    }

    fn text(&self) -> String {
        let shared = &self.0;
        let (counts, nodes, tallies) = (&shared.counts, &shared.current().nodes, shared.tallies());
        let mut all = Exposition::new("regatta_shard");
        let (opened, closed) =
            (counts.connections.get() as u64, counts.disconnections.get() as u64);
        let clients = [("", opened.saturating_sub(closed))];
        all.family("clients", "gauge", "Clients currently connected.", &clients);
        all.family("clients_total", "counter", "Clients that have connected.", &[("", opened)]);
        let refused = [
            (label("reason", "max_clients"), counts.refused_max.get() as u64),
            (label("reason", "per_address"), counts.refused_per_address.get() as u64),
        ];
        let help = "Clients refused because of a limit on their number.";
        all.family("clients_refused_total", "counter", help, &refused);
        let evicted = [
            (label("because", "unread_replies"), counts.unread.get() as u64),
            (label("because", "memory_of_core"), counts.evicted.get() as u64),
        ];
        let help = "Clients disconnected because of what they made the proxy hold.";
        all.family("clients_evicted_total", "counter", help, &evicted);
        let help = "When the drain of clients began: Unix time; 0 while there is none.";
        let began = [("", shared.drain_began_unix_s())];
        all.family("drain_started_timestamp_seconds", "gauge", help, &began);
        let requests = Kind::ALL.map(|(kind, name)| {
            (label("kind", name), tallies.iter().map(|tally| tally.requests_of(kind)).sum())
        });
        all.family("requests_total", "counter", "Requests received from clients.", &requests);
        let errors = tallies.iter().map(|tally| tally.error_replies()).sum();
        let help = "Replies to clients that are errors, of a node or of the proxy.";
        all.family("error_replies_total", "counter", help, &[("", errors)]);
        self.of_cluster(&tallies, &mut all);
        let (mut replies, mut errors, mut up) = (Vec::new(), Vec::new(), Vec::new());
        // A free place in a cluster has no name.
        let named = (0..nodes.count()).filter(|node| !nodes.name(*node).is_empty());
        let durations: Vec<(usize, Vec<Histogram>)> =
            named.map(|node| (node, self.durations(nodes, node, &tallies))).collect();
        for (node, durations) in &durations {
            let node = *node;
            let (mut wrong, mut is_up) = (0, true);
            for (errors, is_down) in tallies.iter().map(|tally| tally.node(node)) {
                wrong += errors;
                is_up &= !is_down;
            }
            let name = label("node", nodes.name(node));
            replies.push((name.clone(), durations.iter().flat_map(|class| &class.counts).sum()));
            errors.push((name.clone(), wrong));
            up.push((name, u64::from(is_up)));
        }
        let help = "Replies of a node to requests of clients, or to its part of one.";
        all.family("node_replies_total", "counter", help, &replies);
        let help = "Those of them that are errors.";
        all.family("node_error_replies_total", "counter", help, &errors);
        let help = "Whether every core can reach the node: 1 or 0.";
        all.family("node_up", "gauge", help, &up);
        let lost = [("", counts.lost.get() as u64)];
        let help = "Connections to nodes that were lost or could not be opened.";
        all.family("node_connections_lost_total", "counter", help, &lost);
        let timeouts = [("", counts.timeouts.get() as u64)];
        let help = "Those of them that were lost because a reply timed out.";
        all.family("node_timeouts_total", "counter", help, &timeouts);
        let help = "Time from the forwarding of a request to a node until its reply has begun to arrive, in the \
                    resolution of a turn of the loop. Each part of a request to several nodes counts.";
        all.histograms(
            "request_duration_seconds",
            help,
            &BOUNDS_US,
            &durations.into_iter().flat_map(|(_, all)| all).collect::<Vec<_>>(),
        );
        all.into_text()
    }

    fn of_cluster(&self, tallies: &[Arc<Tally>], all: &mut Exposition) {
        let repeats = tallies.iter().map(|tally| tally.repeats()).sum();
        let help = "Requests, or parts of them, that were sent again because a node of a cluster did not apply them.";
        all.family("repeats_total", "counter", help, &[("", repeats)]);
        self.of_sentinels(all);
        if let Some((epoch, age)) = self.0.last_view(Instant::now()) {
            let help = "The epoch of the cluster in the last view of its slots that was used; 0 before the first.";
            all.family("cluster_epoch", "gauge", help, &[("", epoch)]);
            let help = "Time since a node has reported slots that can be used; before the first, since the start.";
            all.family("cluster_view_age_seconds", "gauge", help, &[("", age.as_secs())]);
        }
    }

    fn of_sentinels(&self, all: &mut Exposition) {
        let Some(counts) = self.0.sentinel_counts(Instant::now()) else { return };
        let help = "Sentinels that are configured.";
        all.family("sentinels", "gauge", help, &[("", counts.configured as u64)]);
        let help = "Sentinels that answered when all were asked for the masters last.";
        all.family("sentinels_answering", "gauge", help, &[("", counts.answering as u64)]);
        let help = "Longest time since a majority of the Sentinels gave the master of a node; of one without, since the start.";
        all.family("masters_age_seconds", "gauge", help, &[("", counts.age.as_secs())]);
        let help = "How often the master of a node has changed.";
        all.family("master_switches_total", "counter", help, &[("", counts.switches)]);
    }

    /// The durations of each class of requests that a node has replied to.
    fn durations(&self, nodes: &Nodes, node: usize, tallies: &[Arc<Tally>]) -> Vec<Histogram> {
        let mut all = Vec::new();
        for (class, name) in Class::ALL {
            let (mut counts, mut sum_us) = ([0; BUCKETS], 0);
            for tally in tallies {
                let (more, sum) = tally.durations(node, class);
                counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
                sum_us += sum;
            }
            if counts != [0; BUCKETS] {
                let name_of_node = nodes.name(node);
                let labels = with_label(&label("class", name), "node", name_of_node);
                all.push(Histogram { labels, counts: counts.to_vec(), sum_us });
            }
        }
        all
    }
}

impl Resource for Metrics {
    const PATH: &'static str = "/metrics";
    type Job = Never;
    type Local = ();

    fn get(
        &mut self,
        (): &mut (),
        _: Option<&str>,
        terms: Terms,
        date: &Date,
        reply: &mut Vec<u8>,
    ) -> CallOutcome<Never> {
        write_page(&self.text(), terms, date, reply)
    }

    /// The page with hot keys. Keys are data of clients, so it is there only if that was asked for.
    fn operator_page(&self, path: &str, unix_s: u64) -> Option<(&'static str, String)> {
        let is_it = path == HOT && self.0.current().hot_keys;
        is_it.then(|| ("application/json", self.0.hot_keys.json(Instant::now(), unix_s)))
    }
}
