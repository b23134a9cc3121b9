//! The state of a proxy, as its pages for operators show it.

use super::{
    hot::HotKeys,
    page::{self, Sample},
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

/// The state of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct State {
    /// Whether it should get new clients, and what it says about that.
    pub is_ready: bool,
    pub readiness: String,
    /// When the drain of its clients began: Unix time in seconds. `None`: there is none.
    draining_since_unix_s: Option<u64>,
    /// Clients that are connected, and that have connected since the start.
    clients: u64,
    clients_total: u64,
    /// Clients that were disconnected, by the reason.
    clients_evicted: BTreeMap<String, u64>,
    /// Requests by their kind.
    requests: BTreeMap<String, u64>,
    /// Errors that clients got.
    error_replies: u64,
    /// Connections to nodes that were lost, and those of them because of a late reply.
    node_connections_lost: u64,
    node_timeouts: u64,
    /// What Sentinels say of the masters, if they manage them.
    #[serde(skip_serializing_if = "Option::is_none")]
    sentinels: Option<SentinelState>,
    nodes: Vec<NodeState>,
    /// The keys that are requested most, if the proxy serves them.
    pub hot_keys: Option<HotKeys>,
}

/// What Sentinels say of the masters of the nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct SentinelState {
    /// How many answered when all were asked last, and how many are configured.
    answering: u64,
    configured: u64,
    /// The longest time since a majority gave the master of a node, in seconds.
    masters_age_s: u64,
    /// How often the master of a node has changed.
    switches: u64,
}

/// The state of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct NodeState {
    node: String,
    is_up: bool,
    replies: u64,
    error_replies: u64,
    /// The median and the 99th percentile of the time that the node takes, in seconds, rounded up to the next bucket of
    /// the histogram. `None`: nothing was measured, or it is above all buckets.
    p50_at_most_s: Option<f64>,
    p99_at_most_s: Option<f64>,
}

impl State {
    /// Reads it from the page with the metrics, except what other pages say. `None`: the page is not that of a shard
    /// proxy.
    pub fn read(page: &str) -> Option<State> {
        let samples = page::samples(page);
        let of = |name: &str| {
            let name = format!("regatta_shard_{name}");
            samples.iter().filter(move |sample| sample.name == name)
        };
        let value = |name: &str| of(name).map(|sample| sample.value as u64).next();
        let by = |name: &str, label: &str| -> BTreeMap<String, u64> {
            of(name).map(|one| (one.label(label).to_owned(), one.value as u64)).collect()
        };
        let (replies, errors) =
            (by("node_replies_total", "node"), by("node_error_replies_total", "node"));
        let count =
            |counts: &BTreeMap<String, u64>, node: &str| counts.get(node).copied().unwrap_or(0);
        let node = |up: &Sample| {
            let node = up.label("node");
            let buckets = of("request_duration_seconds_bucket")
                .filter(|one| one.label("node") == node && one.label("class") != "blocking");
            let buckets = added(buckets);
            NodeState {
                node: node.to_owned(),
                is_up: up.value == 1.0,
                replies: count(&replies, node),
                error_replies: count(&errors, node),
                p50_at_most_s: percentile(&buckets, 0.5),
                p99_at_most_s: percentile(&buckets, 0.99),
            }
        };
        let draining = value("drain_started_timestamp_seconds").filter(|began| *began > 0);
        Some(State {
            is_ready: false,
            readiness: String::new(),
            draining_since_unix_s: draining,
            clients: value("clients")?,
            clients_total: value("clients_total")?,
            clients_evicted: by("clients_evicted_total", "because"),
            requests: by("requests_total", "kind"),
            error_replies: value("error_replies_total")?,
            node_connections_lost: value("node_connections_lost_total")?,
            node_timeouts: value("node_timeouts_total")?,
            sentinels: sentinels(value),
            nodes: of("node_up").map(node).collect(),
            hot_keys: None,
        })
    }

    /// Whether all nodes are up. A proxy of a cluster knows none before the first view.
    pub fn is_up(&self) -> bool {
        !self.nodes.is_empty() && self.nodes.iter().all(|node| node.is_up)
    }

    /// The state for people. `now_unix_s`: the time.
    pub fn text(&self, now_unix_s: u64) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(now_unix_s, &mut text);
        text
    }

    /// What the proxy does: it is ready, or it stops.
    fn activity(&self, now_unix_s: u64) -> String {
        let Some(began) = self.draining_since_unix_s else { return self.readiness.clone() };
        // The clocks of two machines may differ.
        let since = now_unix_s.saturating_sub(began);
        let clients = if self.clients == 1 { "client is" } else { "clients are" };
        format!("draining for {since} s, {} {clients} left", self.clients)
    }

    fn write(&self, now_unix_s: u64, f: &mut String) -> fmt::Result {
        writeln!(f, "state     {}", self.activity(now_unix_s))?;
        let up = self.nodes.iter().filter(|node| node.is_up).count();
        writeln!(f, "nodes     {up} of {} up", self.nodes.len())?;
        if let Some(own) = &self.sentinels {
            let SentinelState { answering, configured, masters_age_s, switches } = own;
            let masters = format!("masters confirmed {masters_age_s} s ago, failovers: {switches}");
            writeln!(f, "sentinels {answering} of {configured} answer, {masters}")?;
        }
        writeln!(f, "clients   {} now, {} since the start", self.clients, self.clients_total)?;
        writeln!(f, "requests  {}", listed(&self.requests))?;
        writeln!(f, "errors    {} replies to clients", self.error_replies)?;
        writeln!(f, "evicted   {}", listed(&self.clients_evicted))?;
        let (lost, timeouts) = (self.node_connections_lost, self.node_timeouts);
        writeln!(f, "lost      {lost} connections to nodes, {timeouts} because of a late reply\n")?;
        let titles = ["node", "state", "replies", "errors", "p50", "p99"].map(str::to_owned);
        let rows = self.nodes.iter().map(NodeState::row);
        let rows: Vec<[String; 6]> = [titles].into_iter().chain(rows).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths: [usize; 6] = std::array::from_fn(|column| width(column).unwrap_or(0));
        for row in &rows {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        self.hot_keys.as_ref().map_or(Ok(()), |hot| hot.write(f))
    }
}

/// What Sentinels say, by the values of the metrics. `None`: there are none.
fn sentinels(value: impl Fn(&str) -> Option<u64>) -> Option<SentinelState> {
    Some(SentinelState {
        answering: value("sentinels_answering")?,
        configured: value("sentinels")?,
        masters_age_s: value("masters_age_seconds")?,
        switches: value("master_switches_total")?,
    })
}

/// The buckets of several histograms as one: the bound of each, and the number of durations up to it.
fn added<'s>(buckets: impl Iterator<Item = &'s Sample>) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = Vec::new();
    for bucket in buckets {
        let Ok(bound) = bucket.label("le").parse::<f64>() else { continue };
        match all.iter_mut().find(|(other, _)| *other == bound) {
            Some((_, count)) => *count += bucket.value,
            None => all.push((bound, bucket.value)),
        }
    }
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    all
}

/// The bound of the bucket with this part of the durations. `None`: there are none, or the bucket has no bound.
fn percentile(buckets: &[(f64, f64)], part: f64) -> Option<f64> {
    let (_, count) = buckets.last().filter(|(_, count)| *count > 0.0)?;
    let (bound, _) = buckets.iter().find(|(_, up_to)| *up_to >= part * count)?;
    bound.is_finite().then_some(*bound)
}

impl NodeState {
    fn row(&self) -> [String; 6] {
        let time = |at_most_s: Option<f64>| match at_most_s {
            Some(bound) => format!("<= {}", shown(bound)),
            None if self.replies == 0 => "-".to_owned(),
            None => "longer".to_owned(),
        };
        [
            self.node.clone(),
            if self.is_up { "up" } else { "down" }.to_owned(),
            self.replies.to_string(),
            self.error_replies.to_string(),
            time(self.p50_at_most_s),
            time(self.p99_at_most_s),
        ]
    }
}

/// The sum of counts, and those that are not zero.
fn listed(counts: &BTreeMap<String, u64>) -> String {
    let some = counts.iter().filter(|(_, count)| **count > 0);
    let some: Vec<_> =
        some.map(|(name, count)| format!("{count} {}", name.replace('_', " "))).collect();
    let sum: u64 = counts.values().sum();
    if some.is_empty() { sum.to_string() } else { format!("{sum}: {}", some.join(", ")) }
}

/// A time with its unit.
fn shown(seconds: f64) -> String {
    let us = (seconds * 1e6).round();
    match us {
        ..1e3 => format!("{us} us"),
        ..1e6 => format!("{} ms", us / 1e3),
        _ => format!("{} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"
regatta_shard_clients 2
regatta_shard_clients_total 7
regatta_shard_clients_evicted_total{because="unread_replies"} 0
regatta_shard_clients_evicted_total{because="memory_of_core"} 3
regatta_shard_requests_total{kind="read"} 90
regatta_shard_requests_total{kind="several_nodes"} 10
regatta_shard_requests_total{kind="refused"} 0
regatta_shard_error_replies_total 4
regatta_shard_node_replies_total{node="a:1"} 100
regatta_shard_node_replies_total{node="b:1"} 0
regatta_shard_node_error_replies_total{node="a:1"} 1
regatta_shard_node_error_replies_total{node="b:1"} 0
regatta_shard_node_up{node="a:1"} 1
regatta_shard_node_up{node="b:1"} 0
regatta_shard_node_connections_lost_total 5
regatta_shard_node_timeouts_total 1
regatta_shard_request_duration_seconds_bucket{class="read",node="a:1",le="0.0001"} 40
regatta_shard_request_duration_seconds_bucket{class="read",node="a:1",le="0.0005"} 89
regatta_shard_request_duration_seconds_bucket{class="read",node="a:1",le="+Inf"} 90
regatta_shard_request_duration_seconds_bucket{class="write",node="a:1",le="0.0001"} 10
regatta_shard_request_duration_seconds_bucket{class="write",node="a:1",le="0.0005"} 10
regatta_shard_request_duration_seconds_bucket{class="write",node="a:1",le="+Inf"} 10
regatta_shard_request_duration_seconds_bucket{class="blocking",node="a:1",le="0.0001"} 0
regatta_shard_request_duration_seconds_bucket{class="blocking",node="a:1",le="0.0005"} 0
regatta_shard_request_duration_seconds_bucket{class="blocking",node="a:1",le="+Inf"} 5000
"#;

    #[test]
    fn the_state_is_shown() {
        let mut state = State::read(PAGE).unwrap();
        assert!(!state.is_up());
        state.readiness = "ready".to_owned();
        assert_eq!(
            state.text(1_700_000_000),
            "state     ready\n\
             nodes     1 of 2 up\n\
             clients   2 now, 7 since the start\n\
             requests  100: 90 read, 10 several nodes\n\
             errors    4 replies to clients\n\
             evicted   3: 3 memory of core\n\
             lost      5 connections to nodes, 1 because of a late reply\n\n\
             node  state  replies  errors  p50        p99\n\
             a:1   up     100      1       <= 100 us  <= 500 us\n\
             b:1   down   0        0       -          -\n"
        );
        let up = State::read(&PAGE.replace(
            "{node=\"b:1\"} 0\nregatta_shard_node_conn",
            "{node=\"b:1\"} 1\nregatta_shard_node_conn",
        ));
        assert!(up.unwrap().is_up());
        assert_eq!(State::read("regatta_hub_members 3\n"), None);
    }

    #[test]
    fn what_sentinels_say_is_shown() {
        let page = format!(
            "{PAGE}regatta_shard_sentinels 3\nregatta_shard_sentinels_answering 2\n\
             regatta_shard_masters_age_seconds 7\nregatta_shard_master_switches_total 1\n"
        );
        let text = State::read(&page).unwrap().text(0);
        let line = "sentinels 2 of 3 answer, masters confirmed 7 s ago, failovers: 1";
        assert_eq!(text.lines().nth(2), Some(line));
    }

    #[test]
    fn a_drain_is_shown_with_the_clients_that_are_left() {
        let drained = |began: u64| {
            let page = format!("{PAGE}regatta_shard_drain_started_timestamp_seconds {began}\n");
            let state = State { readiness: "stopping".into(), ..State::read(&page).unwrap() };
            state.text(1_700_000_012).lines().next().unwrap().to_owned()
        };
        assert_eq!(drained(0), "state     stopping");
        assert_eq!(drained(1_700_000_000), "state     draining for 12 s, 2 clients are left");
        assert_eq!(drained(1_700_000_099), "state     draining for 0 s, 2 clients are left");
    }

    #[test]
    fn a_percentile_is_the_bound_of_its_bucket() {
        let buckets = [(0.001, 50.0), (0.01, 98.0), (f64::INFINITY, 100.0)];
        assert_eq!(percentile(&buckets, 0.5), Some(0.001));
        assert_eq!(percentile(&buckets, 0.51), Some(0.01));
        assert_eq!(percentile(&buckets, 0.99), None);
        assert_eq!(percentile(&[(0.001, 0.0), (f64::INFINITY, 0.0)], 0.5), None);
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn times_have_units() {
        let shown = [0.0001, 0.0005, 0.001, 0.2, 1.0, 10.0].map(shown);
        assert_eq!(shown, ["100 us", "500 us", "1 ms", "200 ms", "1 s", "10 s"]);
    }
}
