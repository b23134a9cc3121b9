//! Every command of the table against a single server.

use crate::support::shard::{
    client,
    differential::{SHORT, compare_all, same::Tree},
    nodes::REDIS,
    on_shard_models, sharded,
};
use regatta_testkit::skip;
use std::path::Path;

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn every_command_is_answered_like_one_server_or_refused_with_a_reason() {
    compare_all(Path::new(REDIS), "epoll", &SHORT, 7);
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn every_command_is_answered_like_one_server_or_refused_on_a_sequential_model() {
    compare_all(Path::new(REDIS), "threads", &SHORT, 7);
}

/// Valkey has commands and options that the built-in table, of Redis 7.0, lacks; the nodes describe them.
#[test]
fn every_command_of_valkey_is_answered_like_one_server_or_refused_with_a_reason() {
    let valkey = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/valkey-server");
    if !valkey.is_file() {
        return skip("valkey-server is not installed (scripts/setup)");
    }
    compare_all(&valkey, "epoll", &SHORT, 7);
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
