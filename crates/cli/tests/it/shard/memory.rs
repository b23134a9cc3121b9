//! Clients that try to fill the proxy's memory.

use crate::support::{
    Server,
    shard::{client, client::Client, on_shard_models, sharded},
};
use regatta_proto::resp::write_command;
use std::{
    fs,
    io::{ErrorKind, Write},
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// Starts the proxy with the password `secret`.
fn guarded(model: &str, more: &[&str]) -> (impl Sized + use<>, Server) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("password");
    fs::write(&path, "secret\n").unwrap();
    let mut options = vec!["--password-file", path.to_str().unwrap()];
    options.extend(more);
    let (nodes, proxy) = sharded(model, 2, &options);
    ((nodes, folder), proxy)
}

fn trusted(proxy: &Server) -> Client {
    let mut client = client(proxy);
    assert_eq!(client.say("AUTH secret"), "+OK\r\n");
    client
}

/// Sends until all is sent, the proxy no longer reads, or it closes the connection.
fn flood(client: &mut Client, bytes: &[u8]) {
    client.stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    match client.stream.write_all(bytes) {
        Ok(()) => {}
        Err(error) if is_expected(error.kind()) => {}
        Err(error) => panic!("{error}"),
    }
}

fn is_expected(kind: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, WouldBlock};
    matches!(kind, BrokenPipe | ConnectionReset | TimedOut | WouldBlock)
}

on_shard_models!(requests_before_authentication_are_small: epoll, uring, threads);

fn requests_before_authentication_are_small(model: &str) {
    let (_nodes, proxy) = guarded(model, &[]);
    for (request, error) in [
        ("*2\r\n$4\r\nAUTH\r\n$16385\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        ("*11\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
    ] {
        let mut stranger = client(&proxy);
        stranger.raw(request.as_bytes());
        assert_eq!(stranger.next().as_deref(), Some(error.as_bytes()), "{model}");
        assert_eq!(stranger.next(), None, "{model}");
    }
    // In the same pipeline, because the limits change after AUTH.
    let (mut client, mut requests) = (client(&proxy), Vec::new());
    write_command([&b"AUTH"[..], b"secret"], &mut requests);
    write_command([&b"SET"[..], b"k", &vec![b'x'; 1 << 20]], &mut requests);
    client.raw(&requests);
    assert_eq!(client.next().as_deref(), Some(&b"+OK\r\n"[..]), "{model}");
    assert_eq!(client.next().as_deref(), Some(&b"+OK\r\n"[..]), "{model}");
}

on_shard_models!(a_request_must_arrive_in_time_but_a_large_one_may_take_longer: epoll, uring, threads);

fn a_request_must_arrive_in_time_but_a_large_one_may_take_longer(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &["--request-timeout", "400ms"]);
    let (mut stuck, mut slow) = (client(&proxy), client(&proxy));
    stuck.raw(b"*2\r\n$3\r\nGET\r\n$1");
    let mut request = Vec::new();
    write_command([&b"SET"[..], b"k", &[b'x'; 160_000]], &mut request);
    // 160 KB/s, for longer than the timeout.
    for piece in request.chunks(8000) {
        slow.raw(piece);
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(slow.next().as_deref(), Some(&b"+OK\r\n"[..]), "{model}");
    assert_eq!(stuck.next(), None, "{model}");
}

on_shard_models!(attackers_of_each_kind_take_bounded_memory: epoll, uring);

fn attackers_of_each_kind_take_bounded_memory(model: &str) {
    let (_nodes, proxy) = guarded(model, &["--cores", "1", "--all-buffers", "16"]);
    let mut good = trusted(&proxy);
    good.say("SET k v");
    let before = proxy.memory();
    let large = vec![b'x'; 900_000];
    let start = |name: &str| format!("*3\r\n$3\r\n{name}\r\n$1\r\nk\r\n$50000000\r\n").into_bytes();
    let echo = |count: usize| {
        let mut out = Vec::new();
        (0..count).for_each(|_| write_command([&b"ECHO"[..], &large], &mut out));
        out
    };
    let subscribe = {
        let mut out = Vec::new();
        for number in 0..3 {
            let name = [format!("{number}").as_bytes(), &large].concat();
            write_command([&b"SUBSCRIBE"[..], &name], &mut out);
        }
        out
    };
    // What each attacker sends: half a request, commands of a transaction, large requests without
    // reading the replies, names of channels.
    let attacks = [
        [start("SET"), large.repeat(3)].concat(),
        [b"MULTI\r\n".to_vec(), echo(1)].concat(),
        echo(10),
        subscribe,
    ];
    let mut attackers = Vec::new();
    let mut most = 0;
    for attack in &attacks {
        for _ in 0..25 {
            let mut attacker = trusted(&proxy);
            flood(&mut attacker, attack);
            attackers.push(attacker);
            assert_eq!(good.say("GET k"), "$1\r\nv\r\n", "{model}");
            most = most.max(proxy.memory().saturating_sub(before));
        }
    }
    for _ in 0..200 {
        let mut stranger = client(&proxy);
        let bytes = [&b"*10\r\n"[..], b"$16000\r\n", &[b'x'; 16_000]].concat();
        flood(&mut stranger, &bytes);
        attackers.push(stranger);
    }
    assert_eq!(good.say("GET k"), "$1\r\nv\r\n", "{model}");
    most = most.max(proxy.memory().saturating_sub(before));
    let info = good.say("INFO");
    let number = |name: &str| -> usize {
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
        line.expect("a line of INFO").parse().expect("a number")
    };
    println!("{model}: {most} bytes more\n{info}");
    assert_eq!(number("clients_memory_limit_per_core"), 16 << 20, "{model}");
    assert!(number("clients_memory_on_this_core") <= 16 << 20, "{model}: {info}");
    assert!(number("clients_disconnected_at_the_memory_limit") > 0, "{model}: {info}");
    assert!(most < 64 << 20, "{model}: {most} bytes");
}
