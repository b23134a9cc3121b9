//! Compares the shard map with a real nutcracker: both must choose the same server for every key,
//! for every hash and both distributions.

mod nodes;
mod nutcracker;

use self::nodes::Node;
use self::nutcracker::{Nutcracker, Pool};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_keyspace::map::{
    Map, Twemproxy,
    twemproxy::{Distribution, Hash, Server},
};
use regatta_testkit::{prerequisite::find, skip};
use std::{net::Ipv4Addr, path::Path};

/// The weight and name of each server. Each has a separate address.
type Servers<'a> = &'a [(u32, &'a str)];

/// 1,200 keys: ordinary ones, ones with braces and dollar signs, and random bytes.
fn keys() -> Vec<Vec<u8>> {
    let mut random = SmallRng::seed_from_u64(7);
    let mut keys: Vec<Vec<u8>> = vec![vec![], vec![0], vec![255], b"{}".to_vec(), b"{a}".to_vec()];
    keys.extend((0..395).map(|i| format!("user:{i}:name").into_bytes()));
    let length = |random: &mut SmallRng| random.random_range(0..40);
    for alphabet in [&b"ab{}$"[..], b"abcdefgh0123456789:{}", b"{}$\x80\xff"] {
        for _ in 0..100 {
            let letter = |random: &mut SmallRng| alphabet[random.random_range(0..alphabet.len())];
            keys.push((0..length(&mut random)).map(|_| letter(&mut random)).collect());
        }
    }
    for _ in 0..500 {
        keys.push((0..length(&mut random)).map(|_| random.random()).collect());
    }
    assert_eq!(keys.len(), 1200);
    keys
}

/// Compares the node of every key in nutcracker and in the map, for all hashes and distributions.
fn compare(nodes: &[Node], servers: Servers<'_>, tag: Option<&'static str>) {
    let program = find("nutcracker").expect("nutcracker is installed");
    let lines: Vec<String> = nodes
        .iter()
        .zip(servers)
        .map(|(node, (weight, name))| format!("{}:{weight} {name}", node.address).trim_end().into())
        .collect();
    assert_eq!((lines.len(), nodes.len()), (servers.len(), servers.len()));
    let each = Hash::ALL.into_iter().flat_map(|hash| [(hash, "ketama"), (hash, "modula")]);
    let pools: Vec<Pool> = each
        .map(|(hash, distribution)| Pool {
            hash: hash.name(),
            distribution,
            tag,
            servers: lines.clone(),
        })
        .collect();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let proxy = Nutcracker::start(&program, folder.path(), &pools);
    let keys = keys();
    let tag = tag.map(|tag| <[u8; 2]>::try_from(tag.as_bytes()).expect("two characters"));
    let servers: Vec<Server> = lines.iter().map(|line| line.parse().expect("a server")).collect();
    let mut compared = 0;
    for (number, pool) in pools.iter().enumerate() {
        let distribution: Distribution = pool.distribution.parse().expect("a distribution");
        let hash: Hash = pool.hash.parse().expect("a hash");
        let map = Map::new(0, Twemproxy::new(distribution, hash, tag, &servers).expect("a map"));
        let mut client = proxy.connect(number);
        for keys in keys.chunks(100) {
            for (key, node) in keys.iter().zip(client.nodes(keys)) {
                let what = (pool.hash, pool.distribution);
                assert_eq!(map.node(key), node, "{what:?}, {lines:?}, '{}'", key.escape_ascii());
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 24 * 1200);
}

fn local(count: usize) -> Vec<Node> {
    (0..count).map(|i| Node::tcp(i, (Ipv4Addr::LOCALHOST, 0)).expect("a server")).collect()
}

#[test]
#[cfg_attr(not(has_nutcracker), ignore = "nutcracker is not installed (scripts/setup)")]
fn agrees_for_one_server() {
    compare(&local(1), &[(3, "")], None);
}

#[test]
#[cfg_attr(not(has_nutcracker), ignore = "nutcracker is not installed (scripts/setup)")]
fn agrees_for_two_servers() {
    compare(&local(2), &[(1, ""), (1, "")], None);
}

#[test]
#[cfg_attr(not(has_nutcracker), ignore = "nutcracker is not installed (scripts/setup)")]
fn agrees_for_three_servers_of_unequal_weight_with_tags() {
    compare(&local(3), &[(1, ""), (2, ""), (3, "")], Some("{}"));
}

#[test]
#[cfg_attr(not(has_nutcracker), ignore = "nutcracker is not installed (scripts/setup)")]
fn agrees_for_five_servers_whose_names_sort_by_length() {
    let servers = [(10, "charlie"), (1, "b"), (7, "delta"), (2, "aa"), (100, "a")];
    compare(&local(5), &servers, Some("$$"));
}

#[test]
#[cfg_attr(not(has_nutcracker), ignore = "nutcracker is not installed (scripts/setup)")]
fn agrees_for_eight_servers_in_reverse_order() {
    let servers = ["h", "g", "f", "e", "d", "c", "b", "a"].map(|name| (1, name));
    compare(&local(8), &servers, None);
}

#[test]
#[cfg_attr(not(has_nutcracker), ignore = "nutcracker is not installed (scripts/setup)")]
fn agrees_for_thirteen_servers_with_small_and_large_weights() {
    let weights: Vec<(u32, &str)> = (0..13).map(|i| (1 + i * i, "")).collect();
    compare(&local(13), &weights, None);
}

#[test]
#[cfg_attr(not(has_nutcracker), ignore = "nutcracker is not installed (scripts/setup)")]
fn agrees_that_the_memcached_port_is_not_part_of_a_name() {
    let mut random = SmallRng::from_os_rng();
    let mut nodes = Vec::new();
    for _ in 0..50 {
        // Any address of the loopback network, because the port is fixed.
        let host =
            Ipv4Addr::new(127, random.random_range(1..255), random.random(), random.random());
        nodes.extend(Node::tcp(nodes.len(), (host, 11211)));
        if nodes.len() == 3 {
            return compare(&nodes, &[(1, ""), (2, ""), (1, "")], None);
        }
    }
    skip("port 11211 is in use on every address that was tried");
}

#[test]
#[cfg_attr(not(has_nutcracker), ignore = "nutcracker is not installed (scripts/setup)")]
fn agrees_for_unix_sockets() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| -> Box<Path> { folder.path().join(name).into() };
    let names = ["long-name.sock", "b.sock", "a.sock"];
    let nodes: Vec<Node> = (0..)
        .zip(names)
        .map(|(number, name)| Node::unix(number, &path(name)).expect("a server"))
        .collect();
    compare(&nodes, &[(1, ""), (1, ""), (4, "")], None);
}
