//! `--map cluster`: a real Redis Cluster behind the proxy.

use crate::support::{
    Over, Server, refused, regatta,
    shard::{
        FAILOVER, client,
        cluster::{Cluster, migrate},
        nodes::Node,
        on_shard_models, proxy_to,
    },
    until, until_within,
};
use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

/// The proxy in front of a cluster, of which it is given one node.
pub(super) fn clustered(model: &str, cluster: &Cluster) -> Server {
    proxy_to(model, [cluster.masters[0].addr()].into_iter(), &["--map", "cluster", "--cores", "2"])
}

on_shard_models!(all_masters_are_one_redis: epoll, percore);

fn all_masters_are_one_redis(model: &str) {
    let cluster = Cluster::start(3, 0);
    let proxy = clustered(model, &cluster);
    let mut client = client(&proxy);
    let keys: Vec<String> = (0..50).map(|number| format!("key:{number}")).collect();
    let pairs: Vec<String> = keys.iter().map(|key| format!("{key} {key}")).collect();
    assert_eq!(client.say(&format!("MSET {}", pairs.join(" "))), "+OK\r\n");
    let all: String = keys.iter().map(|key| format!("${}\r\n{key}\r\n", key.len())).collect();
    assert_eq!(client.say(&format!("MGET {}", keys.join(" "))), format!("*50\r\n{all}"));
    for master in &cluster.masters {
        let size: usize = master.client().say("DBSIZE").trim()[1..].parse().unwrap();
        assert!(size > 5, "{size}");
    }
    assert_eq!(client.say("DBSIZE"), ":50\r\n");
    let mut cursor = "0".to_string();
    let mut found = Vec::new();
    loop {
        let reply = client.say(&format!("SCAN {cursor}"));
        let mut words = reply.lines().filter(|line| !line.starts_with(['*', '$']));
        cursor = words.next().expect("a cursor").to_owned();
        found.extend(words.map(str::to_owned));
        if cursor == "0" {
            break;
        }
    }
    found.sort();
    let mut expected = keys.clone();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(client.say(&format!("DEL {}", keys.join(" "))), ":50\r\n");
}

on_shard_models!(keys_of_one_command_are_of_one_slot: epoll);

fn keys_of_one_command_are_of_one_slot(model: &str) {
    let cluster = Cluster::start(3, 0);
    let proxy = clustered(model, &cluster);
    let mut client = client(&proxy);
    // These are at one node.
    let cross = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
    let (one, other) = ("a{1}", "b{5}");
    assert_eq!(cluster.master(one).addr(), cluster.master(other).addr());
    assert_eq!(client.say(&format!("RENAME {one} {other}")), cross);
    assert_eq!(client.say("MULTI"), "+OK\r\n");
    assert_eq!(client.say(&format!("SET {one} 1")), "+QUEUED\r\n");
    assert_eq!(client.say(&format!("SET {other} 1")), cross);
    assert!(client.say("EXEC").starts_with("-EXECABORT"));
    assert_eq!(client.say(&format!("WATCH {one}")), "+OK\r\n");
    assert_eq!(client.say("MULTI"), "+OK\r\n");
    assert_eq!(client.say("INCR x{1}"), "+QUEUED\r\n");
    assert_eq!(client.say("EXEC"), "*1\r\n:1\r\n");
    assert_eq!(client.say("RPUSH list 1"), ":1\r\n");
    assert_eq!(client.say("BLPOP list 0"), "*2\r\n$4\r\nlist\r\n$1\r\n1\r\n");
    assert!(
        client.say("PSUBSCRIBE a*").starts_with("-ERR the proxy does not support 'psubscribe'")
    );
    assert!(client.say("SELECT 1").starts_with("-ERR "));
    let mut subscriber = crate::support::shard::client(&proxy);
    let confirmed = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
    assert_eq!(subscriber.say("SUBSCRIBE news"), confirmed);
    assert_eq!(client.say("PUBLISH news hello"), ":1\r\n");
    let message = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n";
    assert_eq!(String::from_utf8_lossy(&subscriber.next().unwrap()), message);
}

on_shard_models!(a_slot_moves_while_clients_write: epoll, percore);

/// The slot goes to a node that has none before. No client gets an error, and no write is lost or applied twice.
fn a_slot_moves_while_clients_write(model: &str) {
    let cluster = Cluster::start(3, 1);
    let proxy = clustered(model, &cluster);
    let is_over = AtomicBool::new(false);
    let write = |name: usize| {
        let mut client = client(&proxy);
        let mut rounds = 0;
        while !is_over.load(Relaxed) || rounds < 50 {
            rounds += 1;
            for key in 0..5 {
                let reply = client.say(&format!("INCR {name}.{key}{{tag}}"));
                assert_eq!(reply, format!(":{rounds}\r\n"), "client {name}");
            }
            // A pipeline, in order.
            for at in 0..5 {
                client.send(&["SET", &format!("{name}.p{{tag}}"), &format!("{rounds}.{at}")]);
            }
            client.send(&["GET", &format!("{name}.p{{tag}}")]);
            for _ in 0..5 {
                assert_eq!(client.next().unwrap(), b"+OK\r\n");
            }
            let value = format!("{rounds}.4");
            let right = format!("${}\r\n{value}\r\n", value.len());
            assert_eq!(String::from_utf8_lossy(&client.next().unwrap()), right);
            let keys: Vec<String> = (0..5).map(|key| format!("{name}.{key}{{tag}}")).collect();
            let reply = client.say(&format!("MGET {}", keys.join(" ")));
            let value = format!("${}\r\n{rounds}\r\n", rounds.to_string().len());
            assert_eq!(reply, format!("*5\r\n{}", value.repeat(5)));
        }
    };
    thread::scope(|scope| {
        // Also if this panics.
        let over = Over(&is_over);
        let write = &write;
        let writers: Vec<_> = (0..3).map(|name| scope.spawn(move || write(name))).collect();
        let (from, to) = (cluster.master("{tag}"), &cluster.others[0]);
        let others: Vec<&Node> =
            cluster.masters.iter().filter(|node| node.addr() != from.addr()).collect();
        until("there are keys", || from.client().say("DBSIZE") != ":0\r\n");
        migrate(from, to, "{tag}", &others);
        migrate(to, from, "{tag}", &others);
        migrate(from, to, "{tag}", &others);
        drop(over);
        writers.into_iter().for_each(|writer| writer.join().expect("no wrong answer"));
    });
    assert_eq!(cluster.others[0].client().say("DBSIZE"), ":18\r\n");
}

on_shard_models!(a_failover_is_followed: epoll, percore);

fn a_failover_is_followed(model: &str) {
    let mut cluster = Cluster::start(3, 1);
    let proxy = clustered(model, &cluster);
    let mut clients: Vec<_> = (0..4).map(|_| client(&proxy)).collect();
    let replica = &cluster.others[0];
    let master = cluster.place("a");
    cluster.replicate(master);
    assert_eq!(clients[0].say("SET a 1"), "+OK\r\n");
    let mut direct = replica.client();
    assert_eq!(direct.say("READONLY"), "+OK\r\n");
    until("it is replicated", || direct.say("GET a") == "$1\r\n1\r\n");
    cluster.masters[master].kill();
    cluster.notice(master);
    for client in &mut clients {
        until_within(FAILOVER, "the replica has taken over", || {
            let reply = client.say("GET a");
            let is_error = reply.starts_with("-SHARDDOWN") || reply.starts_with("-CLUSTERDOWN");
            assert!(is_error || reply == "$1\r\n1\r\n", "{reply}");
            !is_error
        });
        assert_eq!(client.say("INCR b{a}").as_bytes()[0], b':');
    }
}

on_shard_models!(what_a_cluster_does_not_support_is_refused: epoll);

fn what_a_cluster_does_not_support_is_refused(model: &str) {
    for (options, expected) in [
        (
            &["--model", model, "--auth", "nodes"][..],
            "--auth nodes is not possible with --map cluster",
        ),
        (&["--model", "threads"], "--map cluster"),
        (&["--model", model, "--node-tls-ca", "ca.pem"], "--node-tls-ca is not possible"),
        (&["--model", model, "--hash-tag", "{}"], "--hash-tag applies only to"),
    ] {
        let text = refused(regatta!("shard --map cluster --nodes 127.0.0.1:1").args(options));
        assert!(text.contains(expected), "{options:?}: {text}");
    }
}
