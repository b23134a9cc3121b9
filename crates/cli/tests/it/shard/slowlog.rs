//! SLOWLOG of the proxy.

use crate::support::{
    refused, regatta,
    shard::{
        client, client::Client, differential::same::Tree, nodes::Node, on_shard_models, proxy,
        sharded,
    },
};
use std::time::{SystemTime, UNIX_EPOCH};

/// An entry of the log.
#[derive(Debug)]
struct Entry {
    id: i64,
    unix_s: i64,
    duration_us: i64,
    arguments: Vec<String>,
    /// The number of the client, and the parts of the duration.
    client: i64,
    node_us: i64,
    proxy_us: i64,
    name: String,
}

/// The entries of the log, the newest first.
fn entries(client: &mut Client) -> Vec<Entry> {
    let reply = client.ask(&["SLOWLOG", "GET", "-1"]);
    let Tree::List(all) = Tree::read(&reply) else { panic!("{}", reply.escape_ascii()) };
    let entry = |entry: Tree| {
        let Tree::List(fields) = entry else { panic!("{entry:?} is not a list") };
        let [id, unix_s, duration_us, Tree::List(arguments), client, name] = &fields[..] else {
            panic!("{fields:?} are not the six fields of Redis")
        };
        let number = |tree: &Tree| if let Tree::Integer(number) = tree { *number } else { -1 };
        let client = client.text();
        let words = client.split(' ').map(|word| word.split_once('=').expect(&client));
        let words: Vec<(&str, i64)> =
            words.map(|(name, value)| (name, value.parse().expect(&client))).collect();
        let [("id", client), ("node_us", node_us), ("proxy_us", proxy_us)] = words[..] else {
            panic!("{client}")
        };
        let duration_us = number(duration_us);
        assert_eq!(duration_us, node_us + proxy_us);
        Entry {
            id: number(id),
            unix_s: number(unix_s),
            duration_us,
            arguments: arguments.iter().map(Tree::text).collect(),
            client,
            node_us,
            proxy_us,
            name: name.text(),
        }
    };
    all.into_iter().map(entry).collect()
}

on_shard_models!(a_request_that_waits_for_its_node_is_logged: sharing);

fn a_request_that_waits_for_its_node_is_logged(model: &str) {
    let nodes = [Node::start(&[])];
    // On a busy machine a quick request takes less.
    let proxy = proxy(model, &nodes, &["--slowlog", "1s"]);
    let mut client = client(&proxy);
    client.say("CLIENT SETNAME me");
    let id = client.say("CLIENT ID");
    client.say("SET quick 1");
    client.say("BLPOP list 1.2");
    assert_eq!(client.say("SLOWLOG LEN"), ":0\r\n", "{model}: a blocking command is not slow");
    nodes[0].client().say("CLIENT PAUSE 3000 WRITE");
    let long = "x".repeat(300);
    client.ask(&["SET", "slow", &long]);
    let all = entries(&mut client);
    let [entry] = &all[..] else { panic!("{model}: {all:?}") };
    // 128 bytes are kept of the request, 29 of which come before the value.
    let value = format!("{}... (201 more bytes)", &long[..99]);
    assert_eq!(entry.arguments, ["SET", "slow", &value[..]], "{model}");
    assert_eq!((entry.id, &entry.name[..]), (0, "me"), "{model}");
    assert_eq!(format!(":{}\r\n", entry.client), id, "{model}");
    assert!(entry.node_us >= 1_000_000, "{model}: {entry:?}");
    assert!((1_000_000..20_000_000).contains(&entry.duration_us), "{model}: {entry:?}");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    assert!((now - 60..=now + 1).contains(&entry.unix_s), "{model}: {entry:?}, now {now}");
    assert_eq!(client.say("SLOWLOG RESET"), "+OK\r\n", "{model}");
    assert_eq!(client.say("SLOWLOG LEN"), ":0\r\n", "{model}");
}

on_shard_models!(with_0s_each_request_to_a_node_is_logged_with_its_arguments: sharing);

fn with_0s_each_request_to_a_node_is_logged_with_its_arguments(model: &str) {
    let (_nodes, proxy) =
        sharded(model, 2, &["--cores", "2", "--slowlog", "0s", "--slowlog-entries", "40"]);
    let mut clients: Vec<Client> = (0..5).map(|_| client(&proxy)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        // What the proxy answers is not logged.
        client.raw(format!("SET k{number} v\r\nPING\r\nGET k{number}\r\nGET\r\n").as_bytes());
        client.raw(format!("MULTI\r\nINCR n{number}\r\nEXEC\r\n").as_bytes());
    }
    for client in &mut clients {
        (0..7).for_each(|_| drop(client.next()));
    }
    let mut found: Vec<String> =
        entries(&mut clients[0]).iter().map(|entry| entry.arguments.join(" ")).collect();
    found.sort();
    let mut expected: Vec<String> = (0..5)
        .flat_map(|n| [format!("SET k{n} v"), format!("GET k{n}"), format!("INCR n{n}")])
        .chain((0..5).map(|_| "EXEC".to_owned()))
        .collect();
    expected.sort();
    assert_eq!(found, expected, "{model}");
    // Each node is shown what it gets of a split request.
    clients[0].say("SLOWLOG RESET");
    clients[0].say("MSET a 1 b 2 c 3 d 4");
    let all = entries(&mut clients[0]);
    let mut found: Vec<String> = all.iter().map(|entry| entry.arguments.join(" ")).collect();
    found.sort();
    assert_eq!(found, ["MSET a 1 d 4", "MSET b 2 c 3"], "{model}");
    // The newest come first, and the oldest make room.
    for number in 0..100 {
        clients[1].say(&format!("GET {number}"));
    }
    let all = entries(&mut clients[0]);
    let arguments: Vec<&str> = all.iter().map(|entry| &entry.arguments[1][..]).collect();
    let expected: Vec<String> = (60..100).rev().map(|number| number.to_string()).collect();
    assert_eq!(arguments, expected, "{model}");
    assert!(all.windows(2).all(|pair| pair[0].id == pair[1].id + 1), "{model}: {all:?}");
}

on_shard_models!(the_time_in_the_proxy_is_apart: epoll, uring);

fn the_time_in_the_proxy_is_apart(model: &str) {
    /// Half of each wait here. A busy machine adds less to the other time.
    const HALF_US: i64 = 1_000_000;
    let (nodes, proxy) = sharded(model, 2, &["--slowlog", "0s"]);
    let mut client = client(&proxy);
    // `a` is on the second node, `b` on the first one.
    for key in ["a", "b"] {
        client.ask(&["SET", key, "1"]);
    }
    assert_eq!(nodes[1].client().say("EXISTS a"), ":1\r\n");
    let entry = |client: &mut Client, arguments: &[&str]| {
        let all = entries(client).into_iter();
        let mut found = all.filter(|entry| entry.arguments == arguments);
        found.next().expect("an entry")
    };
    // A reply that waits for the one before it.
    nodes[1].client().say("CLIENT PAUSE 2000");
    client.raw(b"GET a\r\nGET b\r\n");
    (0..2).for_each(|_| drop(client.next()));
    let (first, second) = (entry(&mut client, &["GET", "a"]), entry(&mut client, &["GET", "b"]));
    assert!(first.node_us > HALF_US && first.proxy_us < HALF_US, "{model}: {first:?}");
    assert!(second.node_us < HALF_US && second.proxy_us > HALF_US, "{model}: {second:?}");
    // A request that waits until the node has answered another one, over a connection of its own.
    client.say("SLOWLOG RESET");
    client.raw(b"BLPOP list 2\r\nGET b\r\n");
    (0..2).for_each(|_| drop(client.next()));
    let waited = entry(&mut client, &["GET", "b"]);
    assert!(waited.node_us < HALF_US && waited.proxy_us > 1_750_000, "{model}: {waited:?}");
    // The parts of a merged reply wait for each other.
    client.say("SLOWLOG RESET");
    nodes[1].client().say("CLIENT PAUSE 2000");
    client.say("MGET a b");
    let (late, early) = (entry(&mut client, &["MGET", "a"]), entry(&mut client, &["MGET", "b"]));
    assert!(late.node_us > HALF_US && late.proxy_us < HALF_US, "{model}: {late:?}");
    assert!(early.node_us < HALF_US && early.proxy_us > HALF_US, "{model}: {early:?}");
}

on_shard_models!(many_requests_for_the_log_take_bounded_memory: epoll, uring);

fn many_requests_for_the_log_take_bounded_memory(model: &str) {
    let (nodes, proxy) = sharded(model, 1, &["--cores", "1", "--slowlog", "0s"]);
    let (mut client, mut other) = (client(&proxy), client(&proxy));
    let long = "x".repeat(200);
    for _ in 0..128 {
        client.ask(&["SET", "k", &long]);
    }
    let one = client.say("SLOWLOG GET -1").len();
    nodes[0].client().say("CLIENT PAUSE 60000 WRITE");
    let before = proxy.memory();
    // All wait for the reply to SET.
    client.raw(format!("SET k v\r\n{}", "SLOWLOG GET -1\r\n".repeat(2000)).as_bytes());
    for _ in 0..3 {
        assert_eq!(other.say("PING"), "+PONG\r\n", "{model}");
    }
    let growth = proxy.memory().saturating_sub(before);
    assert!(growth < 20 << 20, "{model}: {growth} bytes, the log has {one}");
    nodes[0].client().say("CLIENT UNPAUSE");
    assert_eq!(client.next().as_deref(), Some(&b"+OK\r\n"[..]), "{model}");
    for _ in 0..2000 {
        assert!(client.next().is_some_and(|log| log.starts_with(b"*128\r\n")), "{model}");
    }
}

on_shard_models!(a_client_must_authenticate_before_it_reads_the_log: epoll);

fn a_client_must_authenticate_before_it_reads_the_log(model: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    std::fs::write(&file, "secret").expect("a file");
    let (_nodes, proxy) =
        sharded(model, 1, &["--password-file", file.to_str().expect("UTF-8"), "--slowlog", "0s"]);
    let mut client = client(&proxy);
    for command in ["GET", "LEN", "RESET", "HELP"] {
        let reply = client.say(&format!("SLOWLOG {command}"));
        assert!(reply.starts_with("-NOAUTH "), "{model}: {reply}");
    }
    client.say("AUTH secret");
    assert_eq!(client.say("SLOWLOG LEN"), ":0\r\n", "{model}");
}

on_shard_models!(the_slow_log_can_be_off: epoll);

fn the_slow_log_can_be_off(model: &str) {
    let (nodes, proxy) = sharded(model, 1, &["--slowlog", "off"]);
    let mut client = client(&proxy);
    client.say("SET k v");
    nodes[0].client().say("CLIENT PAUSE 100");
    client.say("GET k");
    assert_eq!(client.say("SLOWLOG GET"), "*0\r\n", "{model}");
    assert!(client.say("SLOWLOG HELP").contains("GET"), "{model}");
}

on_shard_models!(models_that_measure_nothing_refuse_it: sequential);

fn models_that_measure_nothing_refuse_it(model: &str) {
    let (_nodes, proxy) = sharded(model, 1, &[]);
    let reply = client(&proxy).say("SLOWLOG GET");
    assert!(reply.starts_with("-ERR the proxy does not support 'slowlog'"), "{model}: {reply}");
}

#[test]
fn wrong_values_are_refused_with_what_is_expected() {
    for (option, value, expected) in [
        ("--slowlog", "never", "or off"),
        ("--slowlog-entries", "0", "from 1 to 10000"),
        ("--slowlog-entries", "10001", "from 1 to 10000"),
    ] {
        let error = refused(regatta!("shard --nodes 127.0.0.1:1").args([option, value]));
        assert!(error.contains(expected), "{error}");
    }
}
