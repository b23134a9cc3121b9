//! A client that leaves its replies unread.

use crate::support::{
    shard::{client, client::Client, nodes::Node, on_shard_models, sharded},
    until,
};
use regatta_proto::resp::write_command;
use std::{
    io::{ErrorKind, Read, Write},
    thread,
    time::Duration,
};

/// Size of the value that is requested repeatedly, in bytes.
const VALUE: usize = 100_000;

on_shard_models!(a_client_that_leaves_300_mb_unread_takes_bounded_memory: sharing);

fn a_client_that_leaves_300_mb_unread_takes_bounded_memory(model: &str) {
    let (_nodes, proxy) = sharded(model, 4, &["--cores", "1"]);
    let mut good = client(&proxy);
    good.ask(&[&b"SET"[..], b"large", &vec![b'x'; VALUE]]);
    for number in 0..50 {
        good.say(&format!("SET k{number} v"));
    }
    let before = proxy.memory();
    let mut bad = client(&proxy);
    let mut requests = Vec::new();
    (0..3000).for_each(|_| write_command([&b"GET"[..], b"large"], &mut requests));
    bad.stream.set_nonblocking(true).unwrap();
    let (mut sent, mut most) = (0, 0);
    let mut is_cut = false;
    for round in 0..2000 {
        match bad.stream.write(&requests[sent..]) {
            Ok(more) => sent += more,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => is_cut = true,
        }
        assert_eq!(good.say(&format!("GET k{}", round % 50)), "$1\r\nv\r\n", "{model}");
        // Reads all of /proc.
        if round % 20 == 0 || is_cut {
            most = most.max(proxy.memory().saturating_sub(before));
        }
    }
    println!("{model}: {most} bytes more, disconnected: {is_cut}");
    assert!(most < 64 << 20, "{model}: {most} bytes");
    drop(bad);
    until("the memory is freed", || proxy.memory().saturating_sub(before) < 8 << 20);
}

on_shard_models!(a_message_longer_than_its_buffer_disconnects_only_its_subscriber: epoll);

fn a_message_longer_than_its_buffer_disconnects_only_its_subscriber(model: &str) {
    let (_nodes, proxy) = sharded(model, 1, &["--client-buffer", "1"]);
    let (mut subscriber, mut publisher) = (client(&proxy), client(&proxy));
    subscriber.say("SUBSCRIBE news");
    assert_eq!(publisher.ask(&["PUBLISH", "news", &"x".repeat(60_000)]), b":1\r\n", "{model}");
    assert!(subscriber.next().is_some_and(|message| message.len() > 60_000), "{model}");
    assert_eq!(publisher.ask(&["PUBLISH", "news", &"x".repeat(3 << 20)]), b":1\r\n", "{model}");
    assert_eq!(subscriber.next(), None, "{model}");
    assert_eq!(publisher.say("SET k v"), "+OK\r\n", "{model}");
}

on_shard_models!(a_value_without_room_is_an_error_and_later_replies_are_right: epoll, uring);

fn a_value_without_room_is_an_error_and_later_replies_are_right(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &["--cores", "1", "--client-buffer", "2"]);
    let mut client = client(&proxy);
    client.say("SET k v");
    for (key, size) in [("fits", 1 << 20), ("large", 5 << 20)] {
        assert_eq!(client.ask(&[&b"SET"[..], key.as_bytes(), &vec![b'x'; size]]), b"+OK\r\n");
    }
    assert_eq!(client.say("GET fits").len(), (1 << 20) + 12, "{model}");
    client.raw(b"GET large\r\nGET k\r\nGET large\r\nGET k\r\n");
    let mut next = || String::from_utf8_lossy(&client.next().expect("a reply")).into_owned();
    let is_refused = |reply: String| reply.contains("SHARDTOOLARGE");
    assert!(is_refused(next()), "{model}");
    assert_eq!(next(), "$1\r\nv\r\n", "{model}");
    assert!(is_refused(next()), "{model}");
    assert_eq!(next(), "$1\r\nv\r\n", "{model}");
}

/// Waits until the nodes have sent everything that they can, and sent nothing more for a while.
fn until_sent(nodes: &[Node]) {
    let sent = |node: &Node| {
        let info = node.client().say("INFO stats");
        let bytes = info.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:"));
        bytes.and_then(|bytes| bytes.parse::<u64>().ok()).expect("a number")
    };
    let (mut before, mut same) = (0, 0);
    until("the nodes send nothing more", || {
        let now: u64 = nodes.iter().map(sent).sum();
        // The replies to INFO are sent, too.
        same = if now - before < 100_000 { same + 1 } else { 0 };
        before = now;
        thread::sleep(Duration::from_millis(50));
        same == 5
    });
}

/// Reads replies to GET slowly: 256 KiB every few milliseconds. Returns the size of each value.
fn read_slowly(client: &mut Client, count: usize) -> Vec<usize> {
    let mut buffer = vec![0; 256 << 10];
    // A comparison of slices is fast also without optimization.
    let expected = vec![b'x'; buffer.len()];
    let mut unread = 0;
    let mut sizes = Vec::new();
    let (mut head, mut left) = (Vec::new(), 0);
    while sizes.len() < count || left > 0 {
        let read = client.stream.read(&mut buffer).expect("a reply");
        assert!(read > 0, "disconnected after {sizes:?}, {left} bytes of the last value missing");
        let mut bytes = &buffer[..read];
        unread += read;
        while !bytes.is_empty() {
            if left > 0 {
                let part = bytes.len().min(left);
                let value = &bytes[..part.min(left.saturating_sub(2))];
                assert!(value == &expected[..value.len()], "a wrong value");
                (bytes, left) = (&bytes[part..], left - part);
                continue;
            }
            head.push(bytes[0]);
            bytes = &bytes[1..];
            if head.ends_with(b"\r\n") {
                let line = String::from_utf8_lossy(&head).trim_end().to_string();
                let size = line.strip_prefix('$').unwrap_or_else(|| panic!("{line}"));
                sizes.push(size.parse().expect("a size"));
                left = sizes[sizes.len() - 1] + 2;
                head.clear();
            }
        }
        if unread > 256 << 10 {
            unread = 0;
            thread::sleep(Duration::from_millis(5));
        }
    }
    sizes
}

on_shard_models!(a_slow_reader_gets_a_value_of_60_mib: all);

fn a_slow_reader_gets_a_value_of_60_mib(model: &str) {
    let (nodes, proxy) = sharded(model, 1, &["--cores", "1"]);
    let size = 60 << 20;
    assert_eq!(nodes[0].client().ask(&[&b"SET"[..], b"key", &vec![b'x'; size]]), b"+OK\r\n");
    let (mut slow, mut other) = (client(&proxy), client(&proxy));
    slow.raw(b"GET key\r\n");
    // A client that shares the connection to the node is served meanwhile.
    assert_eq!(other.say("SET other v"), "+OK\r\n", "{model}");
    until_sent(&nodes);
    assert_eq!(read_slowly(&mut slow, 1), [size], "{model}");
    assert_eq!(slow.say("GET other"), "$1\r\nv\r\n", "{model}");
}

on_shard_models!(a_slow_reader_gets_all_large_values_that_it_pipelines: all);

fn a_slow_reader_gets_all_large_values_that_it_pipelines(model: &str) {
    let (nodes, proxy) = sharded(model, 2, &["--cores", "1"]);
    let (size, value) = (10 << 20, vec![b'x'; 10 << 20]);
    let mut stores = client(&proxy);
    for number in 0..10 {
        assert_eq!(
            stores.ask(&["SET".into(), format!("{number}").into(), value.clone()]),
            b"+OK\r\n"
        );
    }
    // One that has received nothing yet, and one that has received only short replies.
    for mut slow in [client(&proxy), stores] {
        let requests: String = (0..10).map(|number| format!("GET {number}\r\n")).collect();
        slow.raw(requests.as_bytes());
        until_sent(&nodes);
        assert_eq!(read_slowly(&mut slow, 10), [size; 10], "{model}");
        assert_eq!(slow.say("PING"), "+PONG\r\n", "{model}");
    }
}

on_shard_models!(a_reply_without_room_is_an_error_and_the_client_stays_connected: sharing);

fn a_reply_without_room_is_an_error_and_the_client_stays_connected(model: &str) {
    let (nodes, proxy) = sharded(model, 2, &["--cores", "1", "--client-buffer", "1"]);
    for node in &nodes {
        let mut direct = node.client();
        for number in 0..8 {
            let key = format!("{number}");
            assert_eq!(direct.ask(&["SET".into(), key.into(), vec![b'x'; 250_000]]), b"+OK\r\n");
        }
    }
    let mut client = client(&proxy);
    // Its replies are short until now, so all these requests are sent at once.
    for _ in 0..50 {
        client.say("PING");
        client.say("GET none");
    }
    let keys: Vec<String> = (0..8).map(|number| number.to_string()).collect();
    let gets: String = keys.iter().map(|key| format!("GET {key}\r\n")).collect();
    // MGET has parts of 2 MB in all.
    client.raw(format!("{gets}MGET {}\r\nGET none\r\n", keys.join(" ")).as_bytes());
    until_sent(&nodes);
    let replies: Vec<Vec<u8>> = (0..10).map(|_| client.next().expect("a reply")).collect();
    let is_refused = |reply: &Vec<u8>| reply.windows(14).any(|part| part == b"SHARDTOOLARGE ");
    for reply in &replies[..9] {
        assert!(is_refused(reply) || reply.len() > 250_000, "{model}: {} bytes", reply.len());
    }
    assert!(replies[..8].iter().any(|reply| !is_refused(reply)), "{model}");
    assert!(is_refused(&replies[8]), "{model}");
    assert_eq!(replies[9], b"$-1\r\n", "{model}");
    assert_eq!(client.say("GET none"), "$-1\r\n", "{model}");
}

on_shard_models!(a_value_that_has_begun_keeps_its_room: sharing);

fn a_value_that_has_begun_keeps_its_room(model: &str) {
    let (nodes, proxy) = sharded(model, 2, &["--cores", "1", "--client-buffer", "8"]);
    for node in &nodes {
        for key in 0..10 {
            let set = ["SET".into(), format!("{key}").into(), vec![b'x'; 7 << 20]];
            assert_eq!(node.client().ask(&set), b"+OK\r\n");
        }
    }
    for _ in 0..5 {
        let mut client = client(&proxy);
        for _ in 0..50 {
            client.say("GET none");
        }
        client.raw((0..10).map(|key| format!("GET {key}\r\n")).collect::<String>().as_bytes());
        until_sent(&nodes);
        let replies: Vec<Vec<u8>> = (0..10).map_while(|_| client.next()).collect();
        let sizes: Vec<usize> = replies.iter().map(Vec::len).collect();
        assert_eq!(sizes.len(), 10, "{model}: disconnected after {sizes:?}");
        assert!(sizes.iter().any(|size| *size > 7 << 20), "{model}: {sizes:?}");
    }
}
