//! Bugs that proxies are known to have, with a test for each, and what sequential models refuse.

use crate::support::{
    Server,
    shard::{client, nodes::Node, on_shard_models, proxy, sharded},
    until,
};
use regatta_proto::resp::write_command;

/// Returns a key of each node, in the order of the nodes.
fn keys(nodes: &[Node], proxy: &Server) -> Vec<String> {
    let mut found = vec![None; nodes.len()];
    for number in 0.. {
        let key = format!("k{number}");
        client(proxy).ask(&["SET", &key, "v"]);
        for (node, found) in nodes.iter().zip(&mut found) {
            if found.is_none() && node.client().say(&format!("EXISTS {key}")) == ":1\r\n" {
                *found = Some(key.clone());
            }
        }
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    found.into_iter().flatten().collect()
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn mset_returns_an_error_if_one_node_is_out_of_memory() {
    let (nodes, proxy) = sharded("epoll", 4, &[]);
    let keys = keys(&nodes, &proxy);
    nodes[2].client().say("CONFIG SET maxmemory 1");
    let mut client = client(&proxy);
    let reply = client.say(&format!("MSET {} a {} b {} c", keys[0], keys[2], keys[3]));
    assert!(reply.starts_with("-OOM applied on 2 of 3 nodes; node 127.0.0.1:"), "{reply}");
    assert_eq!(client.say(&format!("GET {}", keys[0])), "$1\r\na\r\n");
}

on_shard_models!(an_unknown_command_is_answered_in_order: all);

fn an_unknown_command_is_answered_in_order(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &[]);
    let mut client = client(&proxy);
    client.raw(b"SET a 1\r\nGET a\r\nNONSENSE x\r\nGET a\r\nGET b\r\nPING\r\n");
    let replies: Vec<Vec<u8>> = (0..6).filter_map(|_| client.next()).collect();
    let expected = "+OK\r\n$1\r\n1\r\n-ERR unknown command 'NONSENSE', with args beginning with: \
                    'x' \r\n$1\r\n1\r\n$-1\r\n+PONG\r\n";
    assert_eq!(String::from_utf8_lossy(&replies.concat()), expected, "{model}");
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn get_without_a_key_is_answered() {
    let (_nodes, proxy) = sharded("epoll", 2, &[]);
    let error = "-ERR wrong number of arguments for 'get' command\r\n";
    assert_eq!(client(&proxy).say("GET"), error);
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn an_empty_array_is_skipped() {
    let (_nodes, proxy) = sharded("epoll", 2, &[]);
    let mut client = client(&proxy);
    client.raw(b"*0\r\n*-1\r\n\r\n*0\r\n");
    assert_eq!(client.say("PING"), "+PONG\r\n");
}

on_shard_models!(mget_returns_an_error_if_one_node_is_down_and_the_client_stays_connected: all);

fn mget_returns_an_error_if_one_node_is_down_and_the_client_stays_connected(model: &str) {
    let (mut nodes, proxy) = sharded(model, 4, &[]);
    let keys = keys(&nodes, &proxy);
    let mut client = client(&proxy);
    let mget = format!("MGET {} {} {}", keys[0], keys[1], keys[3]);
    assert!(client.say(&mget).starts_with("*3\r\n"), "{model}");
    nodes[1].kill();
    let reply = client.say(&mget);
    assert!(reply.starts_with("-SHARDDOWN node 127.0.0.1:"), "{model}: {reply}");
    assert_eq!(client.say(&format!("GET {}", keys[0])), "$1\r\nv\r\n", "{model}");
}

on_shard_models!(a_dead_node_fails_only_its_own_keys_and_is_used_again_after_a_restart: all);

fn a_dead_node_fails_only_its_own_keys_and_is_used_again_after_a_restart(model: &str) {
    let (mut nodes, proxy) = sharded(model, 4, &[]);
    let keys = keys(&nodes, &proxy);
    nodes[2].kill();
    let mut client = client(&proxy);
    for (number, key) in keys.iter().enumerate() {
        let reply = client.say(&format!("GET {key}"));
        let failed = reply.starts_with("-SHARDDOWN node ");
        assert_eq!(failed, number == 2, "{model}: {key}: {reply}");
    }
    nodes[2].revive();
    let again = format!("SET {} again", keys[2]);
    until("the node is used again", || client.say(&again) == "+OK\r\n");
}

on_shard_models!(select_does_not_leak_to_other_clients: all);

fn select_does_not_leak_to_other_clients(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &[]);
    let (mut one, mut other) = (client(&proxy), client(&proxy));
    assert_eq!(one.say("SELECT 3"), "+OK\r\n");
    assert_eq!(one.say("SET a three"), "+OK\r\n");
    assert_eq!(other.say("GET a"), "$-1\r\n", "{model}");
    assert_eq!(other.say("SET a zero"), "+OK\r\n");
    assert_eq!(one.say("GET a"), "$5\r\nthree\r\n", "{model}");
    assert_eq!(one.say("SELECT 0"), "+OK\r\n");
    assert_eq!(one.say("GET a"), "$4\r\nzero\r\n", "{model}");
    // The connection to the node is prepared with HELLO first, whose reply says nothing of the database.
    for hello in ["HELLO 2", "HELLO 3"] {
        one.say(hello);
        for _ in 0..3 {
            let refused = "-ERR DB index is out of range\r\n";
            assert_eq!(one.say("SELECT 99"), refused, "{model}, {hello}");
        }
        assert_eq!(one.say("GET a"), "$4\r\nzero\r\n", "{model}, {hello}");
    }
}

on_shard_models!(multi_does_not_leak_to_other_clients: sharing);

fn multi_does_not_leak_to_other_clients(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &[]);
    let (mut one, mut other) = (client(&proxy), client(&proxy));
    assert_eq!(one.say("MULTI"), "+OK\r\n");
    assert_eq!(one.say("SET a 1"), "+QUEUED\r\n");
    assert_eq!(other.say("GET a"), "$-1\r\n", "{model}");
    assert_eq!(other.say("SET a 2"), "+OK\r\n", "{model}");
    assert_eq!(one.say("INCR a"), "+QUEUED\r\n");
    assert_eq!(one.say("EXEC"), "*2\r\n+OK\r\n:2\r\n", "{model}");
    assert_eq!(other.say("GET a"), "$1\r\n2\r\n", "{model}");
}

on_shard_models!(the_buffers_of_a_large_pipeline_are_freed: sharing);

fn the_buffers_of_a_large_pipeline_are_freed(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &["--cores", "1"]);
    let mut client = client(&proxy);
    client.say("SET a 1");
    let before = proxy.memory();
    let mut pipeline = Vec::new();
    let value = vec![b'x'; 1000];
    for number in 0..20_000 {
        let key = format!("k{number}");
        write_command([&b"SET"[..], key.as_bytes(), &value], &mut pipeline);
    }
    let mut writer = client.stream.try_clone().expect("a second handle");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::io::Write::write_all(&mut writer, &pipeline).expect("the proxy reads")
        });
        for _ in 0..20_000 {
            assert_eq!(client.next().as_deref(), Some(&b"+OK\r\n"[..]), "{model}");
        }
    });
    let growth = proxy.memory().saturating_sub(before);
    assert!(growth < 8 << 20, "{model}: {growth} bytes are kept");
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn an_unreachable_node_is_named_in_the_error() {
    let mut node = Node::start(&[]);
    node.kill();
    let proxy = proxy("epoll", &[node], &[]);
    let reply = client(&proxy).say("GET a");
    assert!(reply.starts_with("-SHARDDOWN node 127.0.0.1:"), "{reply}");
}

on_shard_models!(a_blocked_client_gets_an_element_that_another_client_pushes: all);

fn a_blocked_client_gets_an_element_that_another_client_pushes(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &[]);
    let (mut one, mut other) = (client(&proxy), client(&proxy));
    one.raw(b"BLPOP list 0\r\nPING\r\n");
    assert_eq!(other.say("RPUSH list a"), ":1\r\n");
    assert_eq!(one.next().as_deref(), Some(&b"*2\r\n$4\r\nlist\r\n$1\r\na\r\n"[..]), "{model}");
    assert_eq!(one.next().as_deref(), Some(&b"+PONG\r\n"[..]), "{model}");
}

on_shard_models!(commands_after_a_blocking_command_run_after_it: all);

fn commands_after_a_blocking_command_run_after_it(model: &str) {
    let (nodes, proxy) = sharded(model, 4, &[]);
    let keys = keys(&nodes, &proxy);
    let (mut one, mut other) = (client(&proxy), client(&proxy));
    one.raw(format!("BLPOP list 0\r\nGET {}\r\n", keys[0]).as_bytes());
    until("a node waits for the list", || {
        nodes.iter().any(|node| node.client().say("INFO clients").contains("blocked_clients:1"))
    });
    assert_eq!(other.say(&format!("SET {} later", keys[0])), "+OK\r\n");
    assert_eq!(other.say("RPUSH list a"), ":1\r\n");
    let replies = [one.next().unwrap(), one.next().unwrap()].concat();
    let expected = "*2\r\n$4\r\nlist\r\n$1\r\na\r\n$5\r\nlater\r\n";
    assert_eq!(String::from_utf8_lossy(&replies), expected, "{model}");
}

on_shard_models!(every_client_has_a_different_id: all);

fn every_client_has_a_different_id(model: &str) {
    let (_nodes, proxy) = sharded(model, 1, &[]);
    let (mut one, mut other) = (client(&proxy), client(&proxy));
    assert_ne!(one.say("CLIENT ID"), other.say("CLIENT ID"), "{model}");
}

on_shard_models!(a_sequential_proxy_reconnects_to_a_restarted_node: sequential);

fn a_sequential_proxy_reconnects_to_a_restarted_node(model: &str) {
    let (mut nodes, proxy) = sharded(model, 1, &[]);
    let mut client = client(&proxy);
    assert_eq!(client.say("SET a 1"), "+OK\r\n");
    nodes[0].kill();
    nodes[0].revive();
    assert_eq!(client.say("GET a"), "$-1\r\n", "{model}");
}

on_shard_models!(sequential_models_refuse_unsupported_commands: sequential);

fn sequential_models_refuse_unsupported_commands(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &[]);
    let mut client = client(&proxy);
    for command in ["MULTI", "WATCH a", "SUBSCRIBE a", "PSUBSCRIBE a*"] {
        let reply = client.say(command);
        assert!(reply.contains("a sequential model"), "{model}: {command}: {reply}");
    }
    assert_eq!(client.say("PING"), "+PONG\r\n");
}
