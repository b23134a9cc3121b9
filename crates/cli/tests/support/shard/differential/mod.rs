//! Sends every Redis command, with arguments of every kind, to one server and to the proxy in front of
//! four. The proxy must give the same reply, or an error with the reason, and each key must be on the node
//! that the shard map names.

pub mod exchange;
pub mod generate;
mod judge;
pub mod same;

use crate::support::{
    Server,
    shard::{client, client::Client, nodes::Node, proxy},
};
use exchange::{Mode, OF_THE_CONNECTION, Pair};
use generate::{Documented, Generator, documented};
use judge::{Count, Counts, judge, report};
use rand::{SeedableRng, rngs::SmallRng};
use regatta_keyspace::{
    command::Command,
    map::{Map, Slots},
};
use same::Tree;
use std::path::Path;

/// A mode, and the number of random requests for each command in it. Each command is also sent with its
/// optional parts left out.
type Extent = (Mode, usize);

/// The extent of the tests of every change.
pub const SHORT: [Extent; 4] = [
    (Mode { resp3: false, is_queued: false }, 60),
    (Mode { resp3: true, is_queued: false }, 12),
    (Mode { resp3: false, is_queued: true }, 8),
    (Mode { resp3: true, is_queued: true }, 4),
];

/// The extent of the tests that take long.
pub const LONG: [Extent; 4] = [
    (Mode { resp3: false, is_queued: false }, 300),
    (Mode { resp3: true, is_queued: false }, 300),
    (Mode { resp3: false, is_queued: true }, 100),
    (Mode { resp3: true, is_queued: true }, 100),
];

/// Number of requests from one filling of the servers to the next.
const UNTIL_FILLED: usize = 20;

/// Number of nodes.
const NODES: usize = 4;

/// Compares the replies to all commands. Sequential models refuse transactions. `program`: of all servers.
pub fn compare_all(program: &Path, model: &str, extents: &[Extent], seed: u64) {
    let mut comparison = Comparison::start(program, model, seed);
    let is_sequential = ["threads", "green", "fork", "prefork"].contains(&model);
    let (mut plain, mut queued) = (Counts::new(), Counts::new());
    for &(mode, each) in extents {
        if !(is_sequential && mode.is_queued) {
            comparison.run(mode, each, if mode.is_queued { &mut queued } else { &mut plain });
        }
    }
    let Comparison { commands, different, .. } = comparison;
    report(&plain);
    report(&queued);
    assert!(different.is_empty(), "{} are different:\n{}", different.len(), different.join("\n"));
    judge(&commands, &plain, false);
    if !is_sequential {
        judge(&commands, &queued, true);
    }
}

struct Comparison {
    nodes: Vec<Client>,
    _nodes: Vec<Node>,
    proxy: Server,
    one: Node,
    commands: Vec<Documented>,
    generator: Generator,
    different: Vec<String>,
}

impl Comparison {
    fn start(program: &Path, model: &str, seed: u64) -> Comparison {
        let nodes: Vec<Node> = (0..NODES).map(|_| Node::of(program, &[])).collect();
        let proxy = proxy(model, &nodes, &[]);
        let one = Node::of(program, &[]);
        let mut direct = one.client();
        let commands = documented(&mut direct);
        direct.say("SET a hello");
        let Tree::Text(dumped) = Tree::read(&direct.ask(&["DUMP", "a"])) else { panic!("a text") };
        Comparison {
            nodes: nodes.iter().map(Node::client).collect(),
            _nodes: nodes,
            proxy,
            one,
            commands,
            generator: Generator::new(SmallRng::seed_from_u64(seed), dumped),
            different: Vec::new(),
        }
    }

    fn connect(&self, mode: Mode) -> Pair {
        Pair::new(self.one.client(), client(&self.proxy), mode)
    }

    /// Compares the replies to all commands in one mode.
    fn run(&mut self, mode: Mode, each: usize, counts: &mut Counts) {
        let mut pair = self.connect(mode);
        let commands = std::mem::take(&mut self.commands);
        for command in &commands {
            let changes_connection = OF_THE_CONNECTION.contains(&&command.name[..]);
            if mode.is_queued && changes_connection {
                continue;
            }
            let count = counts.entry(command.name.clone()).or_default();
            let mut requests = self.generator.forms(command, least(&command.name));
            requests.extend((0..each).map(|_| self.generator.request(command)));
            for requests in requests.chunks(UNTIL_FILLED) {
                pair.fill();
                for request in requests {
                    pair = self.compare(pair, command, request, count);
                    if changes_connection {
                        pair = self.connect(mode);
                    }
                }
                self.check_places(command, requests);
            }
        }
        self.commands = commands;
    }

    fn compare(
        &mut self,
        mut pair: Pair,
        command: &Documented,
        request: &[Vec<u8>],
        count: &mut Count,
    ) -> Pair {
        match pair.exchange(&command.name, request) {
            Ok(outcome) => count.add(outcome),
            Err(difference) => {
                self.different.push(format!("{} {difference}", pair.mode));
                pair.fill();
            }
        }
        // Each side removes other random elements.
        if command.name == "spop" {
            pair.fill();
        }
        pair
    }

    /// Checks that each key is on the node that the shard map names, and that no key is missing.
    fn check_places(&mut self, command: &Documented, requests: &[Vec<Vec<u8>>]) {
        let map = Map::new(1, Slots::even(NODES).expect("few nodes"));
        let (mut all, mut wrong) = (Vec::new(), Vec::new());
        for (node, client) in self.nodes.iter_mut().enumerate() {
            for key in keys(client) {
                if map.node(&key) != node {
                    wrong.push(format!("{} is on node {node}", key.escape_ascii()));
                }
                all.push(key);
            }
        }
        all.sort();
        let expected = keys(&mut self.one.client());
        if all != expected {
            wrong.push(format!(
                "the nodes have {} keys, one server has {}",
                all.len(),
                expected.len()
            ));
        }
        if !wrong.is_empty() {
            let requests: Vec<String> = requests.iter().map(|one| exchange::line(one)).collect();
            let (name, wrong) = (&command.name, wrong.join(", "));
            self.different
                .push(format!("{name}: {wrong} after one of\n  {}", requests.join("\n  ")));
        }
    }
}

/// Returns all keys of the first database, sorted.
fn keys(client: &mut Client) -> Vec<Vec<u8>> {
    let Tree::List(keys) = Tree::read(&client.ask(&["KEYS", "*"])) else { panic!("a list") };
    let text = |key: Tree| if let Tree::Text(text) = key { text } else { panic!("a text") };
    let mut keys: Vec<Vec<u8>> = keys.into_iter().map(text).collect();
    keys.sort();
    keys
}

/// Returns the minimum number of arguments of a command, including its name.
pub fn least(name: &str) -> usize {
    let known = Command::all().iter().find(|command| command.name == name);
    known.map_or(1, |command| usize::from(command.arity.unsigned_abs()))
}
