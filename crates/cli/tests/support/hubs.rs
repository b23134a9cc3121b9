//! Three hubs at one broker, and a load on all of them while the broker fails.

use super::{
    Server,
    hub::{hub, metric, page},
    shard::nodes::Node,
    until, until_within,
};
use regatta_testkit::child::run_within;
use serde_json::Value;
use std::{net::SocketAddr, process::Command, thread, time::Duration};

/// Starts a hub at this broker, and waits until it is connected.
pub fn joined(model: &str, broker: &Node, more: &[&str]) -> (Server, SocketAddr) {
    joined_at(model, &format!("redis://{}", broker.addr()), more)
}

/// The same, at the broker of this URL.
pub fn joined_at(model: &str, url: &str, more: &[&str]) -> (Server, SocketAddr) {
    let options = [&["--broker", url, "--cores", "2"], more].concat();
    let (server, operators) = hub(model, &options);
    until("the hub is connected", || page(operators, "/ready").0 == 200);
    (server, operators)
}

/// Three hubs and their broker.
pub struct Hubs {
    pub broker: Node,
    nodes: Vec<(Server, SocketAddr)>,
}

/// A load on them.
#[derive(Clone, Copy)]
pub struct Shape {
    pub members: u64,
    /// As of `--rate` and `--duration`.
    pub rate: &'static str,
    pub length: &'static str,
}

/// What became of the deliveries.
#[derive(Debug)]
pub struct Outcome {
    /// Broadcasts that the hubs say they have published.
    pub published: u64,
    pub deliveries: u64,
    pub gaps: u64,
    pub missed: u64,
    pub not_published: u64,
    pub unknown: u64,
    /// Deliveries that the load found wrong: missing without a gap, doubled, altered, or in another order.
    pub wrong: u64,
}

impl Hubs {
    pub fn start() -> Hubs {
        let broker = Node::start(&[]);
        let nodes = (0..3).map(|_| joined("percore", &broker, &[])).collect();
        Hubs { broker, nodes }
    }

    /// Waits until all hubs see the broker, or until none does.
    pub fn see_the_broker(&self, is_up: bool) {
        let see = |(_, page): &(Server, SocketAddr)| {
            metric(*page, "regatta_hub_broker_up") == u64::from(is_up)
        };
        until_within(Duration::from_secs(30), "all hubs see it", || self.nodes.iter().all(see));
    }

    /// Waits until the hubs have delivered so many messages more.
    pub fn deliver(&self, more: u64) {
        let before = self.sum("regatta_hub_deliveries_total");
        until_within(Duration::from_secs(60), "messages are delivered", || {
            self.sum("regatta_hub_deliveries_total") >= before + more
        });
    }

    fn sum(&self, name: &str) -> u64 {
        self.nodes.iter().map(|(_, page)| metric(*page, name)).sum()
    }

    /// Loads all hubs in one order, while `fault` is done to the broker. Each delivery is checked by the load. Here its
    /// counts are compared with those of the hubs.
    pub fn load(&mut self, shape: Shape, fault: impl FnOnce(&mut Hubs)) -> Outcome {
        let Shape { members, rate, length } = shape;
        let urls = self.nodes.iter().map(|(node, _)| format!("ws://{}/ws/red", node.addr));
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
        command.arg("load").args(urls).args(["-c", &members.to_string(), "--rate", rate]);
        command.args(["-d", length, "--one-order", "--allow-gaps", "--timeout", "30s"]);
        command.args(["--json", "-"]);
        let ended = thread::scope(|scope| {
            let load = scope.spawn(|| run_within(Duration::from_secs(180), command));
            // Once all members have joined and get messages.
            self.deliver(5 * members);
            fault(self);
            load.join().expect("the load ends")
        });
        assert_eq!(ended.code(), 0, "{ended:?}");
        let result: Value = serde_json::from_str(&ended.stdout).expect("a result");
        let deliveries = result["operations"][0]["whole_run"].as_u64().expect("deliveries");
        let announced = |name: &str| result["announced"][name].as_u64().expect("a count");
        let of = |outcome: &str| {
            self.sum(&format!("regatta_hub_broker_messages_total{{outcome=\"{outcome}\"}}"))
        };
        let outcome = Outcome {
            published: of("published"),
            deliveries,
            gaps: announced("gaps"),
            missed: announced("missed"),
            not_published: announced("not_published"),
            unknown: announced("unknown"),
            wrong: result["errors"]["wrong_reply"].as_u64().expect("a count"),
        };
        let of_hubs = (of("not_published"), of("unknown"));
        assert_eq!((outcome.not_published, outcome.unknown), of_hubs, "{outcome:?}");
        assert_eq!(outcome.lost(members), 0, "{outcome:?}");
        let most = (outcome.published + outcome.unknown) * members;
        assert!(outcome.deliveries + outcome.missed <= most, "{outcome:?}");
        outcome
    }
}

impl Outcome {
    /// Deliveries of published broadcasts that were neither made nor announced as missed, by the counts of the hubs.
    pub fn lost(&self, members: u64) -> u64 {
        (self.published * members).saturating_sub(self.deliveries + self.missed)
    }
}
