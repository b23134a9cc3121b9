//! Transactions.

use crate::support::shard::{client, nodes::Node, on_shard_models, proxy, proxy_to, sharded};
use regatta_proto::resp::write_command;
use std::{
    fs,
    io::{ErrorKind, Read, Write},
    iter,
    net::TcpListener,
    time::{Duration, Instant},
};
use tempfile::TempDir;

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn exec_with_a_wrong_number_of_arguments_ends_the_transaction() {
    let (_nodes, proxy) = sharded("epoll", 2, &[]);
    let mut client = client(&proxy);
    client.say("SET key before");
    for watch in [false, true] {
        if watch {
            client.say("WATCH key");
        }
        client.say("MULTI");
        client.say("SET key after");
        let reply = client.say("EXEC now");
        assert!(reply.starts_with("-EXECABORT "), "{reply}");
        assert_eq!(client.say("GET key"), "$6\r\nbefore\r\n");
        assert_eq!(client.say("EXEC"), "-ERR EXEC without MULTI\r\n");
    }
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn with_one_node_commands_without_keys_are_queued_beside_those_with_keys() {
    let (_nodes, proxy) = sharded("epoll", 1, &[]);
    let mut client = client(&proxy);
    client.say("SET key before");
    for begin in ["PING", "WATCH key"] {
        client.say(begin);
        client.say("MULTI");
        for line in ["SET key after", "DBSIZE"] {
            assert_eq!(client.say(line), "+QUEUED\r\n", "{begin}: {line}");
        }
        assert_eq!(client.say("EXEC"), "*2\r\n+OK\r\n:1\r\n", "{begin}");
    }
}

on_shard_models!(a_refused_exec_is_answered_as_by_redis: all);

fn a_refused_exec_is_answered_as_by_redis(model: &str) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("password");
    fs::write(&path, "secret").unwrap();
    let nodes = [Node::start(&[])];
    let proxy = proxy(model, &nodes, &["--password-file", path.to_str().unwrap()]);
    let single = Node::start(&["--requirepass", "secret"]);
    let (mut ours, mut redis) = (client(&proxy), single.client());
    let mut same = |line: &str| {
        let reply = ours.say(line);
        assert_eq!(reply, redis.say(line), "{model}: {line}");
    };
    for line in ["EXEC", "EXEC now", "GET key", "AUTH secret", "GET key", "RESET", "GET key"] {
        same(line);
    }
    if !["threads", "green", "fork", "prefork"].contains(&model) {
        for line in ["AUTH secret", "SUBSCRIBE channel", "MULTI", "SET key 1", "EXEC", "DISCARD"] {
            same(line);
        }
    }
}

#[test]
fn a_node_that_reads_nothing_pauses_a_client_in_a_transaction() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let node = iter::once(listener.local_addr().expect("its address"));
    let proxy = proxy_to("epoll", node, &["--cores", "1", "--node-timeout", "60s"]);
    let mut client = client(&proxy);
    client.say("MULTI");
    // The first command starts the transaction on the node, which accepts it and then reads nothing.
    client.raw(b"SET key 1\r\n");
    let (mut node, _) = listener.accept().expect("the proxy");
    let mut multi = [0; b"*1\r\n$5\r\nMULTI\r\n".len()];
    node.read_exact(&mut multi).expect("MULTI");
    node.write_all(b"+OK\r\n").expect("a reply");
    let before = proxy.memory();
    let mut set = Vec::new();
    write_command([&b"SET"[..], b"key", &vec![b'x'; 4 << 20]], &mut set);
    client.stream.set_nonblocking(true).unwrap();
    let (mut sent, mut paused_at) = (0, Instant::now());
    // The proxy either pauses the client or keeps everything.
    while sent < 100 << 20 && paused_at.elapsed() < Duration::from_millis(500) {
        match client.stream.write(&set[sent % set.len()..]) {
            Ok(more) => (sent, paused_at) = (sent + more, Instant::now()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => panic!("the proxy closed the connection: {error}"),
        }
    }
    let growth = proxy.memory().saturating_sub(before);
    assert!(growth < 32 << 20, "{growth} bytes are kept, {sent} were sent");
}
