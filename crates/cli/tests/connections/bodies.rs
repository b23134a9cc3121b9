//! What a request costs does not depend on how its bytes come.

use crate::{
    server_side::wait_until_read,
    support::{DEADLINE, Server, models},
};
use std::{
    fs,
    io::{Read, Write},
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

/// Largest content that is accepted (`proto::http1`).
const CONTENT: usize = 64 * 1024;
/// Bytes that are sent one by one, each a read of its own.
const BYTES: usize = 4096;
/// Measurements, of which the best counts: others use this machine too.
const TRIES: usize = 3;

/// The last bytes of a long body cost as much as those of a short one. Where each read copies what
/// has come before, they cost several times as much, and the body its length squared.
#[test]
fn a_body_that_comes_byte_by_byte_costs_no_more_than_linear() {
    thread::scope(|scope| {
        let models = models().into_iter();
        for model in models.filter(|model| ["fork", "prefork", "threads", "green"].contains(model)) {
            let measured = thread::Builder::new().name(model.into());
            measured.spawn_scoped(scope, || is_linear(model)).unwrap();
        }
    });
}

fn is_linear(model: &str) {
    let server = Server::of("hello", model, &["--cores", "1", "--max-connections", "1"]);
    let best = |content| (0..TRIES).map(|_| cost_of_last_bytes(&server, content)).min().unwrap();
    let (short, long) = (best(BYTES + 1), best(CONTENT));
    let ratio = long.as_secs_f64() / short.as_secs_f64();
    println!("{model}: {short:?} in a short body, {long:?} in a long one, ratio {ratio:.2}");
    assert!(ratio < 2.0, "{model}: {short:?} in a short body, but {long:?} in a long one");
}

/// CPU time that the server takes for the last bytes of a body of that length, which come one by
/// one.
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

/// CPU time of all its threads, to the nanosecond (the first number of /proc/PID/schedstat).
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
