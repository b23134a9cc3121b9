//! Sends every Redis command, with arguments of every kind, to one server and to the proxy in front of
//! four. The proxy must give the same reply, or an error with the reason.

use super::{
    generate::{Documented, Generator, documented, filling},
    same::{Tree, comparable, is_refusal},
};
use crate::support::shard::{client, client::Client, nodes::Node, on_shard_models, sharded};
use rand::{SeedableRng, rngs::SmallRng};
use regatta_keyspace::command::{Command, flag};
use std::collections::BTreeMap;

/// A library of functions that is loaded whenever the servers are filled.
const LIBRARY: &str = "#!lua name=lib1
redis.register_function('f1', function(keys, args) return #keys end)
redis.register_function{function_name='f2', flags={'no-writes'},
    callback=function(keys, args) return redis.call('type', keys[1]) end}";

/// Number of requests for each command.
const EACH: usize = 60;

/// Counts for one command: same replies, same replies without an error, and refusals.
#[derive(Default)]
struct Count {
    same: usize,
    good: usize,
    refused: usize,
}

struct Pair {
    one: Client,
    sharded: Client,
}

impl Pair {
    fn fill(&mut self) {
        for client in [&mut self.one, &mut self.sharded] {
            client.say("FLUSHALL");
            client.say("FUNCTION FLUSH");
            client.ask(&["FUNCTION", "LOAD", LIBRARY]);
            for request in filling() {
                let reply = client.ask(&request);
                assert_ne!(reply[0], b'-', "{request:?}: {}", reply.escape_ascii());
            }
        }
    }
}

/// Returns the number of replies to a request.
fn replies(name: &str, request: &[Vec<u8>]) -> usize {
    match name {
        "subscribe" | "psubscribe" | "ssubscribe" | "unsubscribe" | "punsubscribe"
        | "sunsubscribe" => (request.len() - 1).max(1),
        _ => 1,
    }
}

/// Commands that change the state of the connection. Both connections are reopened after them.
const OF_THE_CONNECTION: [&str; 16] = [
    "multi",
    "exec",
    "discard",
    "watch",
    "unwatch",
    "subscribe",
    "psubscribe",
    "ssubscribe",
    "unsubscribe",
    "punsubscribe",
    "sunsubscribe",
    "quit",
    "reset",
    "hello",
    "select",
    "auth",
];

fn all(client: &mut Client, count: usize) -> Vec<Tree> {
    let mut all = Vec::new();
    while all.len() < count {
        let Some(reply) = client.next() else { break };
        let tree = Tree::read(&reply);
        let failed = matches!(tree, Tree::Error(_));
        all.push(tree);
        if failed {
            break;
        }
    }
    all
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn every_command_is_answered_like_one_server_or_refused_with_a_reason() {
    compare_all("epoll");
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn every_command_is_answered_like_one_server_or_refused_on_a_sequential_model() {
    compare_all("threads");
}

fn compare_all(model: &str) {
    let (_nodes, proxy) = sharded(model, 4, &[]);
    let one = Node::start(&[]);
    let mut pair = Pair { one: one.client(), sharded: client(&proxy) };
    let commands = documented(&mut pair.one);
    pair.one.say("SET a hello");
    let Tree::Text(dumped) = Tree::read(&pair.one.ask(&["DUMP", "a"])) else { panic!("a text") };
    let mut generator = Generator::new(SmallRng::seed_from_u64(7), dumped);
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    let (mut different, mut asked) = (Vec::new(), 0);
    for command in &commands {
        let count = counts.entry(&command.name).or_default();
        for number in 0..EACH {
            if number % 20 == 0 {
                pair.fill();
            }
            let request = generator.request(command);
            compare(&mut pair, command, &request, count, &mut different);
            asked += 1;
            if OF_THE_CONNECTION.contains(&&command.name[..]) {
                pair = Pair { one: one.client(), sharded: client(&proxy) };
            }
            // SPOP removes different random elements on both sides.
            if command.name == "spop" {
                pair.fill();
            }
        }
    }
    report(&counts, asked);
    assert!(different.is_empty(), "{} are different:\n{}", different.len(), different.join("\n"));
    judge(&commands, &counts);
}

fn compare(
    pair: &mut Pair,
    command: &Documented,
    request: &[Vec<u8>],
    count: &mut Count,
    different: &mut Vec<String>,
) {
    let name = &command.name[..];
    let expected = replies(name, request);
    pair.sharded.send(request);
    let sharded = all(&mut pair.sharded, expected);
    if sharded.iter().any(is_refusal) {
        count.refused += 1;
        return;
    }
    pair.one.send(request);
    let one = all(&mut pair.one, expected);
    let comparable = |replies: &[Tree]| -> Vec<Tree> {
        replies.iter().map(|reply| comparable(name, reply.clone())).collect()
    };
    if comparable(&one) == comparable(&sharded) {
        count.same += 1;
        count.good += usize::from(!one.iter().any(|reply| matches!(reply, Tree::Error(_))));
        return;
    }
    let words: Vec<String> = request.iter().map(|word| word.escape_ascii().to_string()).collect();
    let short = |replies: &[Tree]| {
        let text: Vec<String> = replies.iter().map(show).collect();
        text.join(", ").chars().take(300).collect::<String>()
    };
    different.push(format!(
        "{}\n  one server: {}\n  the proxy:  {}",
        words.join(" "),
        short(&one),
        short(&sharded)
    ));
    pair.fill();
}

fn show(reply: &Tree) -> String {
    match reply {
        Tree::List(elements) => {
            format!("[{}]", elements.iter().map(show).collect::<Vec<_>>().join(" "))
        }
        Tree::Text(text) => format!("'{}'", text.escape_ascii()),
        Tree::Error(text) => format!("-{}", text.escape_ascii()),
        other => format!("{other:?}"),
    }
}

impl Count {
    /// Returns whether the proxy refused the command and never answered it without an error.
    fn is_refused(&self) -> bool {
        self.good == 0 && self.refused > 0
    }
}

fn report(counts: &BTreeMap<&str, Count>, asked: usize) {
    let refused: Vec<&str> =
        counts.iter().filter(|(_, count)| count.is_refused()).map(|(name, _)| *name).collect();
    let same = counts.values().filter(|count| count.refused == 0).count();
    println!(
        "{} commands, {asked} requests: {same} always the same, {} the same or refused, {} refused",
        counts.len(),
        counts.len() - same - refused.len(),
        refused.len()
    );
    println!("refused: {}", refused.join(" "));
}

/// Commands that concern several nodes: the proxy splits them by key, sends them to all nodes, or, like
/// SCAN, to one node after another.
const SPLIT: [&str; 12] = [
    "mget",
    "mset",
    "del",
    "unlink",
    "exists",
    "touch",
    "dbsize",
    "flushdb",
    "flushall",
    "keys",
    "randomkey",
    "scan",
];

fn judge(commands: &[Documented], counts: &BTreeMap<&str, Count>) {
    let refused = counts.values().filter(|count| count.is_refused()).count();
    assert!(refused * 4 <= counts.len(), "{refused} of {} commands are refused", counts.len());
    for name in SPLIT {
        let count = &counts[name];
        assert!(count.good > 0 && count.refused == 0, "{name} is refused");
    }
    let mut checked = 0;
    for command in commands {
        let Some(known) = Command::all().iter().find(|one| one.name == command.name) else {
            panic!("{} is not in the table", command.name);
        };
        let is_data = known.has(flag::WRITE) || known.has(flag::READONLY);
        if !is_data || !has_one_key(known) || EXCEPTIONS.contains(&known.name) {
            continue;
        }
        checked += 1;
        let count = &counts[known.name];
        assert!(count.refused == 0, "{} has one key and is refused", known.name);
        assert!(count.good > 0, "{} was never answered without an error", known.name);
    }
    println!("{checked} commands with one key, none refused");
}

/// Commands with one key that are not judged, with the reason. A refusal has its reason in the reply.
const EXCEPTIONS: [&str; 5] = [
    // Refused with BY or GET: their patterns read other keys.
    "sort",
    "sort_ro",
    // Refused: they are part of the migration between nodes.
    "migrate",
    "restore-asking",
    // For tests of the server: its arguments are not documented.
    "pfdebug",
];

fn has_one_key(command: &Command) -> bool {
    use regatta_keyspace::command::{Begin, Find};
    matches!(
        command.specs,
        [spec] if matches!(spec.begin, Begin::Index { .. })
            && matches!(spec.find, Find::Range { last: 0, .. })
    )
}

on_shard_models!(a_scan_over_all_nodes_finds_every_key: epoll, threads);

fn a_scan_over_all_nodes_finds_every_key(model: &str) {
    let (_nodes, proxy) = sharded(model, 4, &[]);
    let mut client = client(&proxy);
    for number in 0..3000 {
        client.ask(&["SET", &format!("key:{number}"), "v"]);
    }
    let (mut cursor, mut found) = ("0".to_string(), Vec::new());
    loop {
        let Tree::List(reply) = Tree::read(&client.ask(&["SCAN", &cursor, "COUNT", "100"])) else {
            panic!("the reply to SCAN is not a list");
        };
        let Tree::List(keys) = &reply[1] else { panic!("no list of keys in the reply to SCAN") };
        found.extend(keys.iter().map(Tree::text));
        cursor = reply[0].text();
        if cursor == "0" {
            break;
        }
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 3000);
    assert_eq!(client.say("DBSIZE"), ":3000\r\n");
}
