//! The text protocol of memcached, against memcached itself and against servers that get it wrong.

use crate::common::{Server, assert_undisturbed, bundled, in_every_shape, plan, run, workload};
use regatta_load::{Plan, Until};
use regatta_script::Workload;
use regatta_testkit::{child::Killed, client::until_listens};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Command, Stdio},
    time::Duration,
};

/// A memcached process.
struct Memcached {
    _process: Killed,
    address: SocketAddr,
}

impl Memcached {
    /// Starts memcached.
    fn start() -> Memcached {
        let address = SocketAddr::from(([127, 0, 0, 1], regatta_testkit::port::free()));
        let port = address.port().to_string();
        let mut command = Command::new("memcached");
        // It runs as root only with `-u root`.
        command.args(["-l", "127.0.0.1", "-p", &port, "-U", "0", "-t", "1", "-u", "root"]);
        let process = Killed::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        until_listens(address);
        Memcached { _process: process, address }
    }

    /// One of the counters that `stats` prints.
    fn stat(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(b"stats\r\nquit\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        line.unwrap().parse().unwrap()
    }
}

#[test]
#[cfg_attr(not(has_memcached), ignore = "memcached is not installed (scripts/setup)")]
fn memcached_answers_every_kind_of_load_correctly() {
    let server = Memcached::start();
    for workload in [workload("cache"), bundled("memcached.toml")] {
        in_every_shape(workload, server.address);
    }
}

#[test]
#[cfg_attr(not(has_memcached), ignore = "memcached is not installed (scripts/setup)")]
fn the_load_and_memcached_count_the_same() {
    let server = Memcached::start();
    let until = Until::Requests(1_000);
    let plan = Plan { workload: workload("cache"), until, ..plan(server.address) };
    let tally = run(&plan).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(tally.requests, 1_000);
    let counted = ["cmd_set", "cmd_get", "get_hits"].map(|name| server.stat(name));
    assert_eq!(counted, [500, 500, 500]);
}

/// A cache that stores nothing and replies with `answer(i, line)` to command `i` of a connection.
fn answering(answer: fn(u64, &str) -> Option<&'static str>) -> Server {
    Server::start(move |stream, _| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut line, mut value) = (String::new(), String::new());
        for i in 0.. {
            line.clear();
            if !matches!(reader.read_line(&mut line), Ok(1..)) {
                return;
            }
            if line.starts_with("set ") && !matches!(reader.read_line(&mut value), Ok(1..)) {
                return;
            }
            let Some(reply) = answer(i, &line) else { return };
            if (&stream).write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    })
}

#[test]
fn a_cache_that_forgets_a_value_is_reported_with_the_expected_value() {
    let server = answering(|_, line| match line.starts_with("set ") {
        true => Some("STORED\r\n"),
        false => Some("END\r\n"),
    });
    let until = Until::Elapsed(Duration::from_secs(20));
    let tally = run(&Plan { workload: workload("cache"), until, ..plan(server.address) }).unwrap();
    let wrong = tally.first_wrong.clone().unwrap();
    assert!(wrong.sent.starts_with("get regatta:2a:"), "{wrong:?}");
    assert!(wrong.expected.starts_with("VALUE regatta:2a:"), "{wrong:?}");
    assert_eq!((wrong.received.as_str(), wrong.reply_index), ("END\\r\\n", 1));
}

#[test]
fn the_value_of_another_key_is_wrong_even_if_any_value_is_accepted() {
    let text = "protocol = 'memcached'\n[[request]]\nget = 'a'";
    for (reply, right) in [
        ("VALUE a 0 1\r\nx\r\nEND\r\n", true),
        ("END\r\n", true),
        ("VALUE b 0 1\r\nx\r\nEND\r\n", false),
        ("VALUE a 0 2\r\nx\r\nEND\r\n", false),
        ("SERVER_ERROR out of memory\r\n", false),
    ] {
        let server = Server::start(move |stream, _| {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while matches!(reader.read_line(&mut line), Ok(1..)) {
                if (&stream).write_all(reply.as_bytes()).is_err() {
                    return;
                }
            }
        });
        let workload = Workload::from_text(text, "any").unwrap();
        let plan = Plan { workload, pipeline: 4, ..plan(server.address) };
        let tally = run(&plan).unwrap();
        match right {
            true => assert_undisturbed(&tally),
            false => {
                let wrong = tally.first_wrong.clone().unwrap();
                assert_eq!(wrong.expected, "a value of a or none", "{reply:?}");
            }
        }
    }
}
