//! Requests that are not valid RESP: the proxy refuses them as Redis does, and never forwards them, because
//! a node would close the connection that all clients share.

use crate::support::shard::{client, nodes::Node, on_shard_models, sharded};
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

/// Forms of a number. Redis accepts only some.
const NUMBERS: [&str; 32] = [
    "0",
    "1",
    "2",
    "3",
    "03",
    "003",
    "02",
    "00",
    "-0",
    "-00",
    "+3",
    "+2",
    "-1",
    "-2",
    "-03",
    "--1",
    "",
    "-",
    " 3",
    "3 ",
    "2 ",
    "3.0",
    "0x3",
    "3a",
    "a",
    "1e0",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551619",
];

/// Returns everything that a server answers to these bytes until it closes the connection.
fn answer(addr: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream.write_all(bytes).expect("the server reads");
    stream.shutdown(Shutdown::Write).expect("an open connection");
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).expect("the server closes the connection");
    reply
}

on_shard_models!(numbers_that_redis_refuses_are_refused_with_the_same_error: epoll, threads);

fn numbers_that_redis_refuses_are_refused_with_the_same_error(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &[]);
    let one = Node::start(&[]);
    let mut other = client(&proxy);
    for number in NUMBERS {
        for request in [
            format!("*{number}\r\n$3\r\nGET\r\n$3\r\nabc\r\nPING\r\n"),
            format!("*2\r\n${number}\r\nGET\r\n$3\r\nabc\r\nPING\r\n"),
            format!("*2\r\n$3\r\nGET\r\n${number}\r\nabc\r\nPING\r\n"),
            format!("*3\r\n$7\r\nPUBLISH\r\n$3\r\nabc\r\n${number}\r\nabc\r\nPING\r\n"),
        ] {
            let expected = answer(one.addr(), request.as_bytes()).escape_ascii().to_string();
            let found = answer(proxy.addr, request.as_bytes()).escape_ascii().to_string();
            // Redis does not look at the two bytes after a bulk string.
            let is_stricter = found.ends_with("expected CR LF after a bulk string\\r\\n");
            assert!(
                found == expected || is_stricter,
                "{model}: {}\n  {expected}\n  {found}",
                request.escape_debug()
            );
        }
        assert_eq!(other.say("SET k v"), "+OK\r\n", "{model}");
    }
    let info = other.say("INFO");
    assert!(info.contains("node_connections_lost:0\r\n"), "{model}: {info}");
}

on_shard_models!(any_bytes_are_answered_like_redis_or_with_a_protocol_error: epoll, threads);

fn any_bytes_are_answered_like_redis_or_with_a_protocol_error(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &[]);
    let one = Node::start(&[]);
    let mut random = SmallRng::seed_from_u64(3);
    let pieces = [
        "*",
        "$",
        ":",
        "+",
        "\r\n",
        "\r\n",
        "\r",
        "\n",
        " ",
        "\t",
        "\x0b",
        "\x0c",
        "\"",
        "'",
        "\\",
        "GET",
        "ECHO",
        "k",
        "abc",
        "*2\r\n$3\r\nGET\r\n",
        "$3\r\nabc\r\n",
        "PING\r\n",
        "GET k\r\n",
        "*1\r\n$4\r\nPING\r\n",
    ];
    let (mut same, mut refused) = (0, 0);
    for _ in 0..400 {
        let mut request = String::new();
        for _ in 0..random.random_range(1..12) {
            request.push_str(match random.random_bool(0.2) {
                true => NUMBERS.choose(&mut random).expect("some"),
                false => pieces.choose(&mut random).expect("some"),
            });
        }
        request.push_str("\r\nPING\r\n");
        let expected = answer(one.addr(), request.as_bytes());
        let found = answer(proxy.addr, request.as_bytes());
        if found == expected {
            same += 1;
            continue;
        }
        refused += 1;
        let (found, expected) =
            (found.escape_ascii().to_string(), expected.escape_ascii().to_string());
        let before = found.rsplit_once("-ERR Protocol error: ").map(|(before, _)| before);
        let is_prefix = before.is_some_and(|before| expected.starts_with(before));
        assert!(is_prefix, "{model}: {}\n  {expected}\n  {found}", request.escape_debug());
    }
    println!("{model}: {same} the same, {refused} refused");
    assert!(same > 200, "{model}: only {same} the same");
    let info = client(&proxy).say("INFO");
    assert!(info.contains("node_connections_lost:0\r\n"), "{model}: {info}");
}
