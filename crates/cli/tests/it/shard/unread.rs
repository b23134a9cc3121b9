//! A client that leaves its replies unread.

use crate::support::{
    shard::{client, on_shard_models, sharded},
    until,
};
use regatta_proto::resp::write_command;
use std::io::{ErrorKind, Write};

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
