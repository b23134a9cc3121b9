//! Three hubs at one broker, and a load on all of them while the broker fails.

use super::{
    Server,
    hub::{hub, metric, page},
    liar::{Liar, Lie},
    regatta,
    shard::{cluster::Cluster, nodes::Node, sentinel::Park},
    until, until_within,
};
use regatta_testkit::child::run_within;
use serde_json::Value;
use std::{net::SocketAddr, thread, time::Duration};

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

/// How many hubs are at this server.
pub fn hubs_at(node: &Node) -> usize {
    subscribers(node, "PUBSUB NUMSUB regatta:moved")
}

/// How many hubs are at this node of a cluster.
pub fn hubs_at_node(node: &Node) -> usize {
    subscribers(node, "PUBSUB SHARDNUMSUB {regatta}:moved")
}

fn subscribers(node: &Node, question: &str) -> usize {
    let reply = node.client().say(question);
    let count = reply.lines().last().and_then(|count| count.strip_prefix(':')?.parse().ok());
    count.unwrap_or_else(|| panic!("{reply}"))
}

/// Three hubs and their broker: one server, or what Sentinels manage.
pub struct Hubs<B = Node> {
    pub broker: B,
    nodes: Vec<(Server, SocketAddr)>,
    /// Stands between the load and the first hub.
    liar: Option<Liar>,
}

/// A cluster of three masters, and a replica of that which has the channels of the hubs.
pub struct HubCluster {
    cluster: Cluster,
    /// The place of that master.
    place: usize,
}

impl HubCluster {
    pub fn start() -> HubCluster {
        let cluster = Cluster::start(3, 1);
        let place = cluster.place(TAG);
        cluster.replicate(place);
        HubCluster { cluster, place }
    }

    /// The URL of the broker, with a node that is neither the master of the channels nor its replica.
    pub fn url(&self) -> String {
        format!("redis+cluster://{}", self.cluster.masters[(self.place + 1) % 3].addr())
    }

    /// The master of the channels at first.
    pub fn master(&mut self) -> &mut Node {
        &mut self.cluster.masters[self.place]
    }

    pub fn replica(&self) -> &Node {
        &self.cluster.others[0]
    }

    /// Kills the master. Returns when its replica has taken over.
    pub fn kill_master(&mut self) {
        self.master().kill();
        self.cluster.see_failover(self.place);
    }

    /// Stops the master, so that it does not answer. Returns when its replica has taken over.
    pub fn stop_master(&mut self) {
        self.master().signal("STOP");
        self.cluster.see_failover(self.place);
    }

    /// The replica becomes the master without a loss, as an operator may want it.
    pub fn replace(&self) {
        assert_eq!(self.replica().client().say("CLUSTER FAILOVER"), "+OK\r\n");
    }
}

/// The hash tag of the channels.
pub const TAG: &str = "{regatta}";

/// A load on them.
#[derive(Clone, Copy)]
pub struct Shape {
    pub members: u64,
    /// As of `--rate`, `--duration` and `--timeout`.
    pub rate: &'static str,
    pub length: &'static str,
    pub timeout: &'static str,
}

/// What became of the deliveries: from the result of the load, except `published`.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Broadcasts that the hubs say they have published.
    pub published: u64,
    pub deliveries: u64,
    pub gaps: u64,
    pub missed: u64,
    pub not_published: u64,
    pub unknown: u64,
    /// Deliveries of broadcasts that are `unknown`.
    pub of_unknown: u64,
    /// Deliveries of published broadcasts by the counts of the hubs, less those that were made or announced as missed by
    /// the counts of the load.
    pub unaccounted: i64,
    /// Deliveries that the load found wrong.
    pub missing: u64,
    pub twice: u64,
    pub out_of_order: u64,
    pub unsent: u64,
    /// Other errors of the load: lost connections and the like.
    pub errors: u64,
}

impl Hubs {
    pub fn start() -> Hubs {
        let broker = Node::start(&[]);
        let url = format!("redis://{}", broker.addr());
        Hubs::at(&url, broker)
    }
}

impl Hubs<Park> {
    /// At the master `one` of three Sentinels, which has a replica.
    pub fn start_at_sentinels() -> Hubs<Park> {
        let park = Park::start();
        let url = format!("redis+sentinel://{}/one", park.addresses());
        Hubs::at(&url, park)
    }

    /// Waits until all hubs are at the replica, which is the master now.
    pub fn see_the_failover(&self) {
        let (replica, long) = (&self.broker.replica, Duration::from_secs(60));
        until_within(long, "all hubs are there", || hubs_at(replica) == self.nodes.len());
        self.see_the_broker(true);
    }
}

impl Hubs<HubCluster> {
    /// In a cluster.
    pub fn start_in_cluster() -> Hubs<HubCluster> {
        let cluster = HubCluster::start();
        let url = cluster.url();
        Hubs::at(&url, cluster)
    }

    /// Waits until all hubs are at the replica, which is the master now.
    pub fn see_the_failover(&self) {
        let (replica, long) = (self.broker.replica(), Duration::from_secs(60));
        until_within(long, "all hubs are there", || hubs_at_node(replica) == self.nodes.len());
        self.see_the_broker(true);
    }
}

impl<B> Hubs<B> {
    fn at(url: &str, broker: B) -> Hubs<B> {
        let nodes = (0..3).map(|_| joined_at("percore", url, &[])).collect();
        Hubs { broker, nodes, liar: None }
    }

    /// One delivery of the first hub will be this lie.
    pub fn lie(mut self, lie: Lie) -> Hubs<B> {
        self.liar = Some(Liar::start(self.nodes[0].0.addr, lie));
        self
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

    /// The sum of a metric of all hubs.
    pub fn sum(&self, name: &str) -> u64 {
        self.nodes.iter().map(|(_, page)| metric(*page, name)).sum()
    }

    /// The processes of the hubs.
    pub fn pids(&self) -> Vec<u32> {
        self.nodes.iter().map(|(server, _)| server.child.id()).collect()
    }

    /// Loads all hubs in one order, while `fault` is done to the broker. The load checks each delivery, and continues
    /// after a wrong one, so that it counts all of them.
    pub fn load(&mut self, shape: Shape, fault: impl FnOnce(&mut Hubs<B>)) -> Outcome {
        let result = self.result(shape, &[], fault);
        let of = |path: &str| result.pointer(path).and_then(Value::as_u64).expect("a count");
        let published = self.results("published");
        let [deliveries, missed] = ["/operations/0/whole_run", "/announced/missed"].map(of);
        let of_unknown = of("/announced/unknown_deliveries");
        let owed = published * shape.members;
        let errors = result["errors"].as_object().expect("errors by kind").iter();
        let others = errors.filter(|(kind, _)| *kind != "wrong_reply");
        let outcome = Outcome {
            published,
            deliveries,
            gaps: of("/announced/gaps"),
            missed,
            not_published: of("/announced/not_published"),
            unknown: of("/announced/unknown"),
            of_unknown,
            unaccounted: owed as i64 - (deliveries - of_unknown) as i64 - missed as i64,
            missing: of("/wrong_deliveries/missing"),
            twice: of("/wrong_deliveries/twice"),
            out_of_order: of("/wrong_deliveries/out_of_order"),
            unsent: of("/wrong_deliveries/unsent"),
            errors: others.filter_map(|(_, count)| count.as_u64()).sum(),
        };
        let of_hubs = (self.results("not_published"), self.results("unknown"));
        assert_eq!((outcome.not_published, outcome.unknown), of_hubs, "{outcome:?}");
        outcome
    }

    /// The result of such a load with more options, as JSON.
    pub fn result(
        &mut self,
        shape: Shape,
        more: &[&str],
        fault: impl FnOnce(&mut Hubs<B>),
    ) -> Value {
        let Shape { members, rate, length, timeout } = shape;
        let mut addresses: Vec<SocketAddr> = self.nodes.iter().map(|(node, _)| node.addr).collect();
        if let Some(liar) = &self.liar {
            addresses[0] = liar.addr;
        }
        let urls = addresses.iter().map(|addr| format!("ws://{addr}/ws/red"));
        let mut command = regatta!(
            "load -c {members} --rate {rate} -d {length} --one-order --allow-gaps
             --timeout {timeout} --tolerate 100% --json -"
        );
        command.args(urls).args(more);
        let ended = thread::scope(|scope| {
            let load = scope.spawn(|| run_within(Duration::from_secs(180), command));
            // Once all members have joined and get messages.
            self.deliver(5 * members);
            fault(self);
            load.join().expect("the load ends")
        });
        assert_eq!(ended.code(), 0, "{ended:?}");
        serde_json::from_str(&ended.stdout).expect("a result")
    }

    /// The number of results of this kind, by the counts of the hubs.
    fn results(&self, outcome: &str) -> u64 {
        self.sum(&format!("regatta_hub_broker_messages_total{{outcome=\"{outcome}\"}}"))
    }
}

impl Outcome {
    /// What must be 0 whatever the broker does, with the heads of the columns.
    pub fn faults(&self) -> [(&'static str, i64); 6] {
        let count = |n: u64| i64::try_from(n).expect("a count");
        [
            ("missing without a gap", count(self.missing)),
            ("came twice", count(self.twice)),
            ("in another order", count(self.out_of_order)),
            ("not published, but came", count(self.unsent)),
            ("not accounted for", self.unaccounted),
            ("other errors", count(self.errors)),
        ]
    }

    /// Whether all of that is 0.
    pub fn is_right(&self) -> bool {
        self.faults().iter().all(|(_, count)| *count == 0)
    }

    /// The other columns, with their heads.
    pub fn counts(&self) -> [(&'static str, u64); 6] {
        [
            ("deliveries", self.deliveries),
            ("gaps", self.gaps),
            ("missed with a gap", self.missed),
            ("not published", self.not_published),
            ("unknown", self.unknown),
            ("deliveries of unknown", self.of_unknown),
        ]
    }
}
