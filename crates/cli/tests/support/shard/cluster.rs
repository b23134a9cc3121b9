//! A real Redis Cluster.

use super::{FAILOVER, client::Client, nodes::Node};
use crate::support::{until, until_within};
use regatta_testkit::port;

/// After so many milliseconds without an answer a node counts as failed, while nodes meet and while a test wants a
/// failover, and otherwise. On a busy machine a node that works may get no CPU for as long as the first.
const EAGER: &str = "1500";
const CALM: &str = "60000";

/// Masters with equal ranges of slots, and further nodes.
pub struct Cluster {
    pub masters: Vec<Node>,
    /// Nodes without slots.
    pub others: Vec<Node>,
}

impl Cluster {
    /// Starts masters, and as many further nodes, and waits until all know each other.
    pub fn start(masters: usize, others: usize) -> Cluster {
        let buses: Vec<u16> = (0..masters + others).map(|_| port::free()).collect();
        let node = |bus: &u16| {
            let bus = bus.to_string();
            // A master that loses its last slot would become a replica.
            let stays = ["--cluster-allow-replica-migration", "no"];
            let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", EAGER];
            Node::start(&[&options[..], &stays, &["--cluster-port", &bus]].concat())
        };
        let mut nodes: Vec<Node> = buses.iter().map(node).collect();
        for (number, node) in nodes.iter().enumerate() {
            let mut client = node.client();
            assert_eq!(client.say(&format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1)), "+OK\r\n");
            if number < masters {
                let bound = |number: usize| number * 16_384 / masters;
                let (first, last) = (bound(number), bound(number + 1) - 1);
                assert_eq!(client.say(&format!("CLUSTER ADDSLOTSRANGE {first} {last}")), "+OK\r\n");
            }
            let (to, bus) = (nodes[0].addr(), buses[0]);
            let meet = format!("CLUSTER MEET {} {} {bus}", to.ip(), to.port());
            assert_eq!(client.say(&meet), "+OK\r\n");
        }
        for node in &nodes {
            let mut client = node.client();
            let count = format!("cluster_known_nodes:{}\r\n", masters + others);
            until("the cluster works", || {
                let info = client.say("CLUSTER INFO");
                info.contains("cluster_state:ok") && info.contains(&count)
            });
        }
        calm(&nodes.iter().collect::<Vec<_>>(), 0);
        let others = nodes.split_off(masters);
        Cluster { masters: nodes, others }
    }

    /// Makes the first node without slots a replica of the master at this place. Returns when all know it, because only
    /// those that do vote for it.
    pub fn replicate(&self, place: usize) {
        let (replica, master) = (&self.others[0], &self.masters[place]);
        let all: Vec<&Node> = self.masters.iter().chain(&self.others).collect();
        set_timeout(&all, EAGER);
        let [own, of] = [replica, master].map(id);
        assert_eq!(replica.client().say(&format!("CLUSTER REPLICATE {of}")), "+OK\r\n");
        until("it is connected", || replica.client().say("ROLE").contains("connected"));
        let knows = |node: &&Node| {
            let nodes = node.client().say("CLUSTER NODES");
            nodes.lines().any(|line| line.starts_with(&own) && line.contains(&of))
        };
        until("all know it as a replica", || all.iter().all(knows));
        calm(&all, 0);
    }

    /// Lets the other nodes notice soon that the master at this place does not answer, so that its replica takes over.
    pub fn notice(&self, place: usize) {
        set_timeout(&self.all_but(place), EAGER);
    }

    /// The same. Returns when its replica, the first node without slots, has taken over.
    pub fn see_failover(&self, place: usize) {
        self.notice(place);
        until_within(FAILOVER, "the replica has taken over", || {
            self.others[0].client().say("ROLE").contains("master")
        });
        calm(&self.all_but(place), 1);
    }

    fn all_but(&self, place: usize) -> Vec<&Node> {
        let masters = self.masters.iter().enumerate().filter(|(at, _)| *at != place);
        masters.map(|(_, node)| node).chain(&self.others).collect()
    }

    /// The master of the slot of a key, by the ranges at the start.
    pub fn master(&self, key: &str) -> &Node {
        &self.masters[self.place(key)]
    }

    /// Its place in `masters`.
    pub fn place(&self, key: &str) -> usize {
        usize::from(slot(&mut self.masters[0].client(), key)) * self.masters.len() / 16_384
    }
}

fn set_timeout(nodes: &[&Node], millis: &str) {
    for node in nodes {
        let line = format!("CONFIG SET cluster-node-timeout {millis}");
        assert_eq!(node.client().say(&line), "+OK\r\n");
    }
}

/// From now on no node counts as failed soon. So many do so now, and rightly: one that does so wrongly would for long.
fn calm(nodes: &[&Node], failed: usize) {
    let works = |node: &&Node| {
        let mut client = node.client();
        let all = client.say("CLUSTER NODES");
        let is_failed = |line: &&str| line.split(' ').nth(2).is_some_and(|is| is.contains("fail"));
        client.say("CLUSTER INFO").contains("cluster_state:ok")
            && all.lines().filter(is_failed).count() <= failed
    };
    until_within(FAILOVER, "no node counts as failed", || {
        let is_right = nodes.iter().all(works);
        set_timeout(nodes, if is_right { CALM } else { EAGER });
        // One may have done so meanwhile.
        is_right && nodes.iter().all(works)
    });
}

/// Moves the slot of a key to a node, key by key, as `redis-cli --cluster reshard` does. `others`: the other nodes.
pub fn migrate(from: &Node, to: &Node, key: &str, others: &[&Node]) {
    let (source, target) = (id(from), id(to));
    let slot = slot(&mut from.client(), key);
    let ok = |node: &Node, line: String| assert_eq!(node.client().say(&line), "+OK\r\n", "{line}");
    ok(to, format!("CLUSTER SETSLOT {slot} IMPORTING {source}"));
    ok(from, format!("CLUSTER SETSLOT {slot} MIGRATING {target}"));
    let address = to.addr();
    loop {
        let reply = from.client().say(&format!("CLUSTER GETKEYSINSLOT {slot} 1"));
        let Some(key) = reply.lines().nth(2) else { break };
        let line = format!("MIGRATE {} {} {key} 0 5000", address.ip(), address.port());
        let reply = from.client().say(&line);
        assert!(reply == "+OK\r\n" || reply == "+NOKEY\r\n", "{reply}");
    }
    for node in [to, from].iter().chain(others) {
        ok(node, format!("CLUSTER SETSLOT {slot} NODE {target}"));
    }
    // Otherwise a node that learns of this late may contradict the next change.
    let get = format!("GET {key}");
    let moved = format!("-MOVED {slot} {address}\r\n");
    for node in [from].iter().chain(others) {
        until("the node knows it", || node.client().say(&get) == moved);
    }
    until("the owner knows it", || !to.client().say(&get).starts_with("-MOVED"));
}

/// The slot of a key.
pub fn slot(client: &mut Client, key: &str) -> u16 {
    let reply = client.say(&format!("CLUSTER KEYSLOT {key}"));
    reply.trim_start_matches(':').trim().parse().expect("a slot")
}

/// The name of a node in the cluster.
pub fn id(node: &Node) -> String {
    let reply = node.client().say("CLUSTER MYID");
    reply.lines().nth(1).expect("a name").to_owned()
}
