//! The CPU cost of a body that arrives byte by byte grows no faster than its length.

use crate::support::{DEADLINE, Server, transcript::server_side::wait_until_read};
use regatta_testkit::machine;
use std::{
    fs,
    io::{Read, Write},
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Largest content that is accepted (`proto::http1`).
const CONTENT: usize = 64 * 1024;
/// Number of bytes that are sent one by one, each in a separate read.
const BYTES: usize = 2048;
/// Measurements of each kind, of which the best counts: others use this machine too.
const TRIES: usize = 12;
/// Largest ratio of costs, long body to short body. It is 1.0 for a linear server, and 1.3 to 1.9 for
/// one that copies everything it holds on each read: most of the cost of such a byte is in the kernel.
const RATIO: f64 = 1.25;

/// The last bytes of a long body cost as much as those of a short one. If each read copied what came
/// before, the cost of a body would be quadratic. Models run one after the other because they share
/// the caches.
#[test]
fn a_body_that_comes_byte_by_byte_costs_no_more_than_linear() {
    let _turn = machine::alone();
    let sequential = ["fork", "prefork", "threads", "green"];
    let failed: Vec<_> = sequential.into_iter().filter(|model| !is_linear(model)).collect();
    assert!(failed.is_empty(), "failed on {}; the ratios are above", failed.join(", "));
}

fn is_linear(model: &str) -> bool {
    let server = Server::of("hello", model, &["--cores", "1", "--max-connections", "1"]);
    let (mut short, mut long) = (Duration::MAX, Duration::MAX);
    for _ in 0..TRIES {
        short = short.min(cost_of_last_bytes(&server, BYTES + 1));
        long = long.min(cost_of_last_bytes(&server, CONTENT));
    }
    let ratio = long.as_secs_f64() / short.as_secs_f64();
    println!("{model}: {short:.1?} in a short body, {long:.1?} in a long one: {ratio:.2}");
    ratio < RATIO
}

/// Returns the CPU time that the server takes for the last bytes of a body of length `content`, which
/// arrive one by one.
fn cost_of_last_bytes(server: &Server, content: usize) -> Duration {
    let mut stream = server.connect();
    let SocketAddr::V4(client) = stream.local_addr().unwrap() else { panic!("not IPv4") };
    let SocketAddr::V4(addr) = server.addr else { panic!("not IPv4") };
    let read = || wait_until_read(client, addr, Instant::now() + DEADLINE).unwrap();
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {content}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![b'c'; content - BYTES]).unwrap();
    read();
    let before = cpu(server);
    for _ in 1..BYTES {
        stream.write_all(b"c").unwrap();
        read();
    }
    let took = cpu(server) - before;
    stream.write_all(b"c").unwrap();
    stream.read_exact(&mut [0; 12]).unwrap(); // and it is a request that is answered
    took
}

/// Returns the CPU time of all threads of its processes (first field of /proc/PID/task/TID/schedstat, in
/// nanoseconds).
fn cpu(server: &Server) -> Duration {
    let threads = server.processes().into_iter().flat_map(|(pid, _)| {
        fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok)
    });
    let of_one = |thread: fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(threads.filter_map(of_one).sum())
}
