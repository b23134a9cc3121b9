//! Compares the nodes with those chosen by the original RedisSharding.

use regatta_keyspace::map::{Map, RedisSharding};
use std::collections::BTreeMap;

#[derive(serde::Deserialize)]
struct Vectors {
    /// By number of nodes: keys in hexadecimal digits, with their nodes.
    by_node_count: BTreeMap<usize, BTreeMap<String, usize>>,
}

fn bytes(digits: &str) -> Vec<u8> {
    assert_eq!(digits.len() % 2, 0, "{digits}");
    let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("a hexadecimal byte")).collect()
}

#[test]
fn keys_are_on_the_nodes_chosen_by_redis_sharding() {
    let vectors: Vectors = serde_json::from_str(include_str!("../data/redissharding-vectors.json"))
        .expect("the vectors");
    let mut checked = 0;
    for (nodes, keys) in &vectors.by_node_count {
        let map = Map::new(0, RedisSharding::new(*nodes).expect("a map"));
        for (key, node) in keys {
            assert_eq!(map.node(&bytes(key)), *node, "key {key} (hex), {nodes} nodes");
            checked += 1;
        }
    }
    assert!(vectors.by_node_count.len() >= 7 && checked >= 1000, "only {checked} keys");
}
