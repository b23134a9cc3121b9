//! Blocked clients that disconnect, and blocking commands whose reply never comes.

use crate::support::{
    Server,
    shard::{client, client::Client, nodes::Node, on_shard_models, proxy, proxy_to, sharded},
    until,
};
use std::{
    io::Write,
    iter,
    net::{Shutdown, TcpListener},
    thread,
    time::{Duration, Instant},
};

/// Waits until this number of clients is blocked on the nodes.
fn until_blocked(nodes: &[Node], count: usize) {
    let blocked = |node: &Node| {
        let info = node.client().say("INFO clients");
        let number = info.split_once("blocked_clients:").and_then(|(_, rest)| rest.lines().next());
        number.and_then(|number| number.parse::<usize>().ok()).expect("a number of clients")
    };
    until(&format!("{count} clients are blocked"), || {
        nodes.iter().map(blocked).sum::<usize>() == count
    });
}

/// Returns an element that no blocked client has taken.
fn push_and_pop(proxy: &Server) -> String {
    let mut client = client(proxy);
    client.say("RPUSH list element");
    client.say("LPOP list")
}

on_shard_models!(a_blocked_client_that_disconnects_gets_no_element: all);

fn a_blocked_client_that_disconnects_gets_no_element(model: &str) {
    let (nodes, proxy) = sharded(model, 2, &[]);
    // More than the proxy reads ahead, and less than the kernel holds: the end arrives.
    let many = "GET key\r\n".repeat(7700);
    for more in ["", "GET key\r\nMULTI\r\nSET key 1\r\n", &many] {
        for is_reset in [false, true] {
            let mut client = client(&proxy);
            client.raw(format!("SET key 1\r\nBLPOP list 0\r\n{more}").as_bytes());
            // The reply to SET does not wait for BLPOP. A close with unread input sends a reset.
            match is_reset {
                true => assert!(client.stream.peek(&mut [0]).is_ok_and(|read| read > 0)),
                false => assert_eq!(client.next().as_deref(), Some(&b"+OK\r\n"[..]), "{model}"),
            }
            until_blocked(&nodes, 1);
            drop(client);
            until_blocked(&nodes, 0);
            assert_eq!(push_and_pop(&proxy), "$7\r\nelement\r\n", "{model}");
        }
    }
}

on_shard_models!(a_client_that_sends_nothing_after_its_blocking_command_gets_an_element: all);

fn a_client_that_sends_nothing_after_its_blocking_command_gets_an_element(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &[]);
    let element = b"*2\r\n$4\r\nlist\r\n$7\r\nelement\r\n";
    for _ in 0..20 {
        let mut client = client(&proxy);
        client.say("RPUSH list element");
        client.raw(b"BLPOP list 0\r\n");
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.next().as_deref(), Some(&element[..]), "{model}");
        assert_eq!(client.next(), None, "{model}: then it is disconnected");
    }
}

on_shard_models!(a_stop_loses_no_element: all);

/// Elements are pushed while the proxy stops. Each of them is delivered, or still in the list.
fn a_stop_loses_no_element(model: &str) {
    let nodes = [Node::start(&[])];
    for round in 0..20 {
        let mut proxy = proxy(model, &nodes, &["--cores", "2"]);
        let blpop = format!("BLPOP list{round} 0\r\n");
        let consumers: Vec<Client> = (0..8).map(|_| client(&proxy)).collect();
        let consumers = consumers.into_iter().map(|mut consumer| {
            consumer.raw(blpop.as_bytes());
            consumer
        });
        let consumers: Vec<Client> = consumers.collect();
        until_blocked(&nodes, 8);
        let consume = |mut consumer: Client| {
            let mut taken = Vec::new();
            while let Some(reply) = consumer.next() {
                let text = String::from_utf8(reply).unwrap();
                taken.push(text.lines().nth(4).unwrap_or_else(|| panic!("{text}")).to_string());
                // The proxy may have stopped.
                let _ = consumer.stream.write_all(blpop.as_bytes());
            }
            taken
        };
        let (mut pushed, taken) = thread::scope(|scope| {
            let consumers: Vec<_> =
                consumers.into_iter().map(|one| scope.spawn(|| consume(one))).collect();
            let (mut pusher, mut pushed) = (nodes[0].client(), Vec::new());
            while pushed.len() < 30 || !consumers.iter().all(|one| one.is_finished()) {
                assert!(pushed.len() < 200_000, "{model}: the proxy does not stop");
                if pushed.len() == round {
                    scope.spawn(|| proxy.signal("-TERM"));
                }
                let element = format!("e{}", pushed.len());
                pusher.say(&format!("RPUSH list{round} {element}"));
                pushed.push(element);
            }
            let taken = consumers.into_iter().flat_map(|one| one.join().unwrap());
            (pushed, taken.collect::<Vec<String>>())
        });
        assert!(proxy.ended().success(), "{model}");
        let left = nodes[0].client().say(&format!("LRANGE list{round} 0 -1"));
        let left = left.lines().filter(|line| line.starts_with('e')).map(String::from);
        let mut found: Vec<String> = left.chain(taken).collect();
        pushed.sort();
        found.sort();
        let lost: Vec<&String> = pushed.iter().filter(|one| !found.contains(one)).collect();
        assert!(lost.is_empty(), "{model}, round {round}: lost {lost:?} of {}", pushed.len());
        assert_eq!(found, pushed, "{model}, round {round}");
    }
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_node_that_refuses_to_unblock_still_loses_its_blocked_client() {
    let (nodes, proxy) = sharded("epoll", 1, &[]);
    for refused in ["-client|id", "-client|unblock"] {
        assert_eq!(nodes[0].client().say(&format!("ACL SETUSER default {refused}")), "+OK\r\n");
        let mut client = client(&proxy);
        client.raw(b"BLPOP list 0\r\n");
        until_blocked(&nodes, 1);
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.next(), None);
        until_blocked(&nodes, 0);
        assert_eq!(nodes[0].client().say("ACL SETUSER default +client"), "+OK\r\n");
    }
}

on_shard_models!(a_stop_disconnects_blocked_clients_at_once: all);

fn a_stop_disconnects_blocked_clients_at_once(model: &str) {
    let (nodes, mut proxy) = sharded(model, 2, &["--grace", "60s"]);
    let mut client = client(&proxy);
    client.raw(b"BLPOP list 0\r\n");
    until_blocked(&nodes, 1);
    let start = Instant::now();
    proxy.signal("-TERM");
    assert_eq!(client.next(), None, "{model}");
    assert!(proxy.ended().success(), "{model}");
    assert!(start.elapsed() < Duration::from_secs(30), "{model}: {:?}", start.elapsed());
}

on_shard_models!(blocked_clients_and_silent_subscribers_are_not_idle: sharing);

fn blocked_clients_and_silent_subscribers_are_not_idle(model: &str) {
    let (nodes, proxy) = sharded(model, 2, &["--idle-timeout", "1s"]);
    let (mut blocked, mut subscribed) = (client(&proxy), client(&proxy));
    subscribed.say("SUBSCRIBE channel");
    blocked.raw(b"BLPOP list 0\r\n");
    until_blocked(&nodes, 1);
    assert_eq!(client(&proxy).next(), None, "{model}: an idle client");
    assert_eq!(client(&proxy).next(), None, "{model}: an idle client");
    let mut other = client(&proxy);
    other.say("RPUSH list element");
    other.say("PUBLISH channel text");
    assert!(blocked.next().is_some_and(|reply| reply.ends_with(b"element\r\n")), "{model}");
    assert!(subscribed.next().is_some_and(|reply| reply.ends_with(b"text\r\n")), "{model}");
}

on_shard_models!(vanished_clients_and_nodes_are_detected: all);

fn vanished_clients_and_nodes_are_detected(model: &str) {
    let (nodes, proxy) = sharded(model, 1, &[]);
    let mut client = client(&proxy);
    client.raw(b"BLPOP list 0\r\n");
    until_blocked(&nodes, 1);
    let (own, to_node) = (proxy.addr.port(), nodes[0].addr().port());
    // Only the proxy's ends: connections of a client, and to the node.
    until("keepalive timers run on all connections", || {
        let timers = keepalive_timers(|local, remote| local == own || remote == to_node);
        timers.len() >= 2 && timers.iter().all(|runs| *runs)
    });
}

/// Whether a keepalive timer runs, for each established connection with these ports, local and
/// remote (proc_pid_net(5)).
fn keepalive_timers(chosen: impl Fn(u16, u16) -> bool) -> Vec<bool> {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
    let port = |address: &str| {
        let (_, port) = address.split_once(':').expect("a port");
        u16::from_str_radix(port, 16).expect("a number")
    };
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[3] == "01" && chosen(port(row[1]), port(row[2])))
        .map(|row| row[5].starts_with("02:"))
        .collect()
}

on_shard_models!(a_blocking_command_fails_if_the_node_does_not_reply_in_time: epoll, threads);

fn a_blocking_command_fails_if_the_node_does_not_reply_in_time(model: &str) {
    // The kernel accepts connections and bytes, and nobody reads them.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let node = iter::once(silent.local_addr().expect("its address"));
    let proxy = proxy_to(model, node, &["--node-timeout", "300ms"]);
    let reply = client(&proxy).say("BLPOP list 0.2");
    assert!(reply.starts_with("-SHARDTIMEOUT node 127.0.0.1:"), "{model}: {reply}");
}
