//! Nodes that refuse a connection, a password, or a command that the proxy needs.

use crate::support::{
    Server, refused, regatta,
    shard::{client, client::Client, nodes::Node, on_shard_models, proxy, sharded},
    until,
};
use std::{fs, process::Command};
use tempfile::TempDir;

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn nothing_is_applied_if_the_node_refuses_multi() {
    let (nodes, proxy) = sharded("epoll", 1, &[]);
    nodes[0].client().say("ACL SETUSER default -multi");
    // The key is known from the first command, from the second, or never.
    for commands in [&["SET a 1"][..], &["PING", "SET a 1"], &["PING"]] {
        let mut client = client(&proxy);
        assert_eq!(client.say("MULTI"), "+OK\r\n");
        for command in commands {
            let reply = client.say(command);
            let is_refused = reply.starts_with("-SHARDDOWN node ") && reply.contains("NOPERM");
            assert_eq!(is_refused, command.starts_with("SET"), "{reply}");
        }
        let reply = client.say("EXEC");
        assert!(reply.starts_with("-SHARDDOWN node "), "{reply}");
        assert_eq!(client.say("GET a"), "$-1\r\n");
    }
    nodes[0].client().say("ACL SETUSER default +multi");
    let mut client = client(&proxy);
    client.say("MULTI");
    assert_eq!(client.say("PING"), "+QUEUED\r\n");
    assert_eq!(client.say("SET a 1"), "+QUEUED\r\n");
    assert_eq!(client.say("EXEC"), "*2\r\n+PONG\r\n+OK\r\n");
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_subscription_on_a_dead_node_fails_and_the_client_stays_connected() {
    let (mut nodes, proxy) = sharded("epoll", 2, &[]);
    nodes[1].kill();
    let mut client = client(&proxy);
    // The first command finds out that the node is dead, the second knows.
    for _ in 0..2 {
        let reply = client.say("PSUBSCRIBE *");
        assert!(reply.starts_with("-SHARDDOWN node 127.0.0.1:"), "{reply}");
        assert_eq!(client.say("PING"), "+PONG\r\n");
    }
    nodes[1].revive();
    until("the node is used again", || client.say("PSUBSCRIBE *").starts_with("*3\r\n"));
    client.raw(b"PING\r\n");
    assert_eq!(client.next().as_deref(), Some(&b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"[..]));
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_node_that_refuses_the_password_is_down() {
    let node = Node::start(&["--requirepass", "right"]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("password");
    fs::write(&path, "wrong").unwrap();
    let nodes = [node];
    let proxy = proxy("epoll", &nodes, &["--node-password-file", path.to_str().unwrap()]);
    let mut client = client(&proxy);
    for _ in 0..200 {
        let reply = client.say("SET k v");
        assert!(reply.starts_with("-SHARDDOWN node ") && reply.contains("WRONGPASS"), "{reply}");
        assert!(!reply.contains("may have been applied"), "{reply}");
    }
    let mut direct = nodes[0].client();
    assert_eq!(direct.say("AUTH right"), "+OK\r\n");
    let info = direct.say("INFO stats");
    let count = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    let count: usize = count.expect("a number").parse().unwrap();
    assert!(count < 50, "{count} connections for 200 requests");
}

on_shard_models!(an_argument_above_the_limit_of_its_node_is_refused: sharing);

fn an_argument_above_the_limit_of_its_node_is_refused(model: &str) {
    let nodes = [Node::start(&["--proto-max-bulk-len", "1mb"]), Node::start(&[])];
    let proxy = proxy(model, &nodes, &["--cores", "1"]);
    let (mut good, mut bad) = (client(&proxy), client(&proxy));
    good.say("RPUSH list a");
    // A key of each node.
    let is_small = |key: &str| {
        client(&proxy).say(&format!("SET {key} v"));
        nodes[0].client().say(&format!("EXISTS {key}")) == ":1\r\n"
    };
    let keys: Vec<String> = (0..100).map(|number| format!("k{number}")).collect();
    let small = keys.iter().find(|key| is_small(key)).expect("a key");
    let large = keys.iter().find(|key| !is_small(key)).expect("a key");
    let value = |size: usize| vec![b'x'; size];
    let set = |key: &str, size| [b"SET".to_vec(), key.into(), value(size)];
    // A request of another client is behind it, and one of its own.
    for hello in ["HELLO 2", "HELLO 3"] {
        bad.say(hello);
        bad.send(&set(small, (1 << 20) + 1));
        bad.raw(format!("GET {small}\r\n").as_bytes());
        assert_eq!(good.say(&format!("GET {small}")), "$1\r\nv\r\n", "{model}");
        let reply = String::from_utf8(bad.next().expect("a reply")).unwrap();
        let node = nodes[0].addr();
        assert!(reply.starts_with(&format!("-SHARDTOOLARGE node {node} ")), "{model}: {reply}");
        assert!(reply.contains("1048576") && reply.ends_with("nothing was sent\r\n"), "{reply}");
        assert_eq!(bad.next().as_deref(), Some(&b"$1\r\nv\r\n"[..]), "{model}");
    }
    assert_eq!(bad.ask(&set(large, 3 << 20)), b"+OK\r\n", "{model}");
    let mset =
        ["MSET".into(), large.as_str().into(), value(2 << 20), small.as_str().into(), value(1)];
    assert!(bad.ask(&mset).starts_with(b"-SHARDTOOLARGE "), "{model}");
    assert_eq!(bad.say(&format!("STRLEN {large}")), ":3145728\r\n", "{model}: nothing was sent");
    assert_eq!(bad.ask(&set(small, 1 << 20)), b"+OK\r\n", "{model}: exactly the limit");
    assert!(bad.say("INFO").contains("node_connections_lost:0\r\n"), "{model}");
}

on_shard_models!(a_node_is_not_down_if_the_proxy_is_out_of_descriptors: epoll, uring);

fn a_node_is_not_down_if_the_proxy_is_out_of_descriptors(model: &str) {
    let node = Node::start(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 48; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_regatta")]);
    command.args(["shard", "--model", model, "--cores", "1", "--nodes", &node.addr().to_string()]);
    let proxy = Server::start(command);
    let mut good = client(&proxy);
    assert_eq!(good.say("RPUSH l a"), ":1\r\n");
    let fillers: Vec<Client> = (0..60).map(|_| client(&proxy)).collect();
    until("no descriptor is free", || {
        good.say("RPUSH l a");
        good.say("BLPOP l 0").contains("the proxy cannot connect: ")
    });
    assert!(good.say("INFO").contains(",state=up"), "{model}");
    drop(fillers);
    until("a descriptor is free", || good.say("BLPOP l 0").starts_with("*2\r\n"));
}

#[test]
fn buffers_above_their_limit_are_refused() {
    for option in ["--client-buffer", "--max-request"] {
        let error = refused(regatta!("shard --nodes 127.0.0.1:1 {option} 513"));
        assert!(error.contains("from 1 to 512"), "{error}");
    }
}
