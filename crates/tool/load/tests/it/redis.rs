//! RESP against a real redis-server, and against one behind a faulty proxy.

use crate::common::{Server, assert_undisturbed, bundled, in_every_shape, plan, run, workload};
use regatta_load::{Plan, Until};
use regatta_script::Workload;
use regatta_testkit::{child::Killed, deadline::until};
use std::{
    cell::RefCell,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// A redis-server process.
struct Redis {
    _process: Killed,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Redis {
    /// Starts redis-server.
    fn start() -> Redis {
        let address = SocketAddr::from(([127, 0, 0, 1], regatta_testkit::port::free()));
        let port = address.port().to_string();
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        // Otherwise it serves only 127.0.0.1, and no other loopback address.
        command.args(["--protected-mode", "no"]);
        command.arg("--dir").arg(folder.path());
        let process = Killed::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let started = Redis { _process: process, address, _folder: folder };
        until("redis-server answers", || started.ask("PING").is_some_and(|r| r == "+PONG\r\n"));
        started
    }

    /// Returns the reply to a one-line command, if any.
    fn ask(&self, command: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text.strip_suffix("+OK\r\n")?.to_owned())
    }

    /// How often the server executed this command.
    fn calls(&self, command: &str) -> u64 {
        let text = self.ask("INFO commandstats").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:")));
        let calls = line.and_then(|line| line.strip_prefix("calls=")?.split(',').next());
        calls.map_or(0, |calls| calls.parse().unwrap())
    }
}

fn of(text: &str) -> Workload {
    Workload::from_text(&format!("protocol = 'redis'\n{text}"), "mine").unwrap()
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_real_server_answers_every_kind_of_load_correctly() {
    let server = Redis::start();
    for workload in [workload("shard"), bundled("redis.toml")] {
        in_every_shape(workload.sharing_keys().unwrap(), server.address);
        in_every_shape(workload, server.address);
    }
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_real_server_answers_the_workloads_of_the_race_correctly() {
    let server = Redis::start();
    for name in ["set-get", "one-by-one", "mset-10", "mset-100", "mget-100"] {
        let workload = bundled(&format!("shard-{name}.toml"));
        for pipeline in [1, 100, 1_000] {
            let plan = Plan {
                workload: workload.clone(),
                pipeline,
                until: Until::Elapsed(Duration::from_millis(100)),
                path: Some("/5".into()),
                ..plan(server.address)
            };
            assert_undisturbed(&run(&plan).unwrap());
        }
    }
    assert!(server.ask("INFO keyspace").unwrap().contains("db5:keys="));
    assert!(!server.ask("INFO keyspace").unwrap().contains("db0:"));
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn the_load_and_the_server_count_the_same() {
    let server = Redis::start();
    let text = "keys = 10\n[[request]]\nsteps = [{ command = 'INCR' }, { command = 'GET' }]";
    let until = Until::Requests(1_000);
    let tally =
        run(&Plan { workload: of(text), connections: 2, until, ..plan(server.address) }).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(tally.requests, 1_000);
    // Each connection sends one additional request to join.
    assert_eq!(server.calls("incr") + server.calls("get"), 1_002);
    // Ten values and ten counters for each connection.
    assert_eq!(server.calls("set"), 40);
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_second_load_finds_its_keys_in_the_required_state() {
    let server = Redis::start();
    for _ in 0..2 {
        let plan = Plan { workload: workload("shard"), ..plan(server.address) };
        assert_undisturbed(&run(&plan).unwrap());
    }
}

/// Forwards everything to a real server, and its replies back through `alter`. Its second argument is
/// how many bytes of replies came earlier on the connection. If it returns false, the connection is
/// closed after these bytes.
fn in_front(of: SocketAddr, alter: fn(&mut Vec<u8>, usize) -> bool) -> Server {
    Server::start(move |stream, _| {
        let upstream = TcpStream::connect(of).unwrap();
        upstream.set_nodelay(true).unwrap();
        let (mut from_client, mut to_server) =
            (stream.try_clone().unwrap(), upstream.try_clone().unwrap());
        let there = thread::spawn(move || {
            let _ = io::copy(&mut from_client, &mut to_server);
            let _ = to_server.shutdown(Shutdown::Both);
        });
        let (mut buffer, mut before, mut goes_on) = (vec![0; 1 << 16], 0, true);
        while goes_on && let Ok(n @ 1..) = (&upstream).read(&mut buffer) {
            let mut bytes = buffer[..n].to_vec();
            goes_on = alter(&mut bytes, before);
            before += n;
            goes_on &= (&stream).write_all(&bytes).is_ok();
        }
        let _ = stream.shutdown(Shutdown::Both);
        let _ = upstream.shutdown(Shutdown::Both);
        there.join().unwrap();
    })
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_changed_byte_in_a_value_is_found() {
    let server = Redis::start();
    let text = "keys = 10\n[[request]]\ncommand = 'GET'";
    let altered = in_front(server.address, |bytes, before| {
        let letter = bytes.iter().rposition(u8::is_ascii_lowercase);
        if let Some(place) = letter.filter(|_| before > 10_000) {
            bytes[place] ^= 1;
        }
        true
    });
    let until = Until::Elapsed(Duration::from_secs(20));
    let tally = run(&Plan { workload: of(text), until, ..plan(altered.address) }).unwrap();
    let wrong = tally.first_wrong.clone().unwrap();
    assert!(wrong.expected.contains("the first value of key"), "{wrong:?}");
    assert!(wrong.sent.contains("GET"), "{wrong:?}");
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn lost_connections_are_not_wrong_replies() {
    let server = Redis::start();
    let cut = in_front(server.address, |bytes, before| {
        if before > 20_000 {
            bytes.truncate(bytes.len() / 2);
        }
        before <= 20_000
    });
    for workload in [workload("shard"), workload("shard").sharing_keys().unwrap()] {
        let until = Until::Requests(10_000);
        let plan = Plan { workload, connections: 3, pipeline: 4, until, ..plan(cut.address) };
        let tally = run(&plan).unwrap();
        assert!(tally.errors.closed_early > 0, "{:?}", tally.errors);
        assert_eq!(tally.first_wrong, None);
    }
}

/// Makes every connection read stale values: always the first value that it found.
fn always_the_first_value(bytes: &mut Vec<u8>, before: usize) -> bool {
    thread_local!(static FIRST: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) });
    const VALUE: &[u8] = b"$40\r\n";
    const FRAMED: usize = VALUE.len() + 40 + 2;
    if before > 1_000 && bytes.starts_with(VALUE) && bytes.len() == FRAMED {
        FIRST.with_borrow_mut(|first| bytes.clone_from(first.get_or_insert(bytes.clone())));
    }
    true
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn shared_keys_reveal_stale_reads_that_no_single_client_can_see() {
    let server = Redis::start();
    let stale = in_front(server.address, always_the_first_value);
    let text = "keys = 1\nvalue_bytes = 40\n\
                [[request]]\ncommand = 'SET'\n[[request]]\nweight = 4\ncommand = 'GET'";
    let workload = of(text).sharing_keys().unwrap();
    // Threads finish one after the other, and the check needs the operations of all.
    for threads in [1, 3] {
        let plan =
            |address| Plan { workload: workload.clone(), connections: 4, threads, ..plan(address) };
        let tally = run(&plan(server.address)).unwrap();
        assert_undisturbed(&tally);
        let verified = tally.verified.unwrap();
        assert!(verified.operations >= tally.replies && verified.keys == 1, "{verified:?}");
        assert_eq!(verified.beyond, 0);
        let until = Until::Elapsed(Duration::from_secs(2));
        let tally = run(&Plan { until, ..plan(stale.address) }).unwrap();
        let wrong = tally.first_wrong.clone().unwrap();
        assert!(wrong.expected.starts_with("no value older than the write of"), "{wrong:?}");
        assert_eq!(tally.errors.wrong_reply, 1);
    }
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn tolerated_errors_are_counted_and_the_connections_continue() {
    let server = Redis::start();
    let failing = in_front(server.address, |bytes, before| {
        if before > 5_000 && before % 3 == 0 && bytes.as_slice() == b"+OK\r\n" {
            *bytes = b"-DOWN node 2\r\n".to_vec();
        }
        true
    });
    for workload in [workload("shard"), workload("shard").sharing_keys().unwrap()] {
        // A number of requests, not a time: on a busy machine few are sent in a time.
        let until = Until::Requests(10_000);
        let plan =
            Plan { workload, connections: 2, until, tolerates: Some(1.0), ..plan(failing.address) };
        let tally = run(&plan).unwrap();
        assert!(tally.errors.wrong_reply > 0, "{:?}", tally.errors);
        assert_eq!(tally.errors.total(), tally.errors.wrong_reply, "{:?}", tally.errors);
        assert_eq!(tally.connections_opened, 2);
        let wrong = tally.first_wrong.clone().unwrap();
        assert_eq!(wrong.received, "-DOWN node 2\\r\\n");
    }
}
