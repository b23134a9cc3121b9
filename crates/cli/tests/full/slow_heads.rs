//! Five thousand connections that send one byte of a head per second do not keep new clients from being
//! served, and are closed after the request timeout. On every model except those with a process per
//! connection, and `select`, which holds only a thousand.

use crate::support::{
    DEADLINE, Server,
    hello::{GET, expect_hello},
    on_models, until,
};
use regatta_testkit::machine;
use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

const SLOW: usize = 5_000;
/// The head that each of them sends, byte by byte.
const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nX: a byte each second until it is over";
/// Maximum time of a new client, from its connect to its reply.
const SERVED: Duration = Duration::from_millis(100);
/// Of this many new clients in a row, one must be served in time: other programs may use this machine.
const IN_A_ROW: usize = 8;
/// The request timeout.
const LIMIT: Duration = Duration::from_secs(6);

on_models!(
    slow_heads_do_not_block_new_clients_and_are_closed_after_the_timeout:
    threads, poll, epoll, cluster, percore, green, on_async, uring
);

fn slow_heads_do_not_block_new_clients_and_are_closed_after_the_timeout(model: &str) {
    let _turn = machine::alone();
    regatta_serve::raise_open_files();
    let given = format!("{}s", LIMIT.as_secs());
    let server = Server::of("hello", model, &["--request-timeout", &given]);
    let alone = (0..IN_A_ROW).map(|_| served(&server)).min().unwrap();
    let mut slow = Slow::connect(&server);
    let opened = slow.last_began.duration_since(slow.first_began);
    let mut times = Vec::new();
    // While all slow connections are open, each sends a byte per second.
    while slow.first_began.elapsed() + Duration::from_millis(500) < LIMIT {
        slow.send_due();
        times.push(served(&server));
        thread::sleep(Duration::from_millis(30)); // the new clients' pace
    }
    let closed = slow.connections.iter().filter(|c| is_closed(c)).count();
    if slow.first_began.elapsed() < LIMIT {
        assert_eq!(closed, 0, "{model}: closed before the timeout");
    }
    times.chunks_exact(IN_A_ROW).for_each(|row| {
        let best = row.iter().min().unwrap();
        assert!(*best < SERVED, "{model}: {best:?} at best of {row:?}; alone {alone:?}");
    });
    assert!(times.len() >= IN_A_ROW, "{model}: {SLOW} connections took {opened:?} to open");
    times.sort();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    until("the slow ones are closed", || {
        slow.send_due();
        slow.connections.retain(|connection| !is_closed(connection));
        slow.connections.is_empty()
    });
    let over = slow.last_began.elapsed();
    println!(
        "{model:8} {SLOW} connected in {opened:.1?}; a new client: {alone:.1?} alone, {median:.1?} \
         in the median, {worst:.1?} at worst of {}; the last was closed after {over:.1?}",
        times.len()
    );
    assert!(over >= LIMIT - Duration::from_millis(100), "{model}: {over:?}");
    assert!(served(&server) < DEADLINE, "the server no longer serves");
}

/// Returns the time from the connect of a new client to its reply.
fn served(server: &Server) -> Duration {
    let began = Instant::now();
    let mut stream = server.connect();
    stream.write_all(GET).unwrap();
    expect_hello(&mut stream);
    began.elapsed()
}

struct Slow {
    connections: Vec<TcpStream>,
    /// Bytes of the head that all of them have sent.
    sent: usize,
    first_began: Instant,
    last_began: Instant,
}

impl Slow {
    /// Opens all connections. Each sends its first byte.
    fn connect(server: &Server) -> Slow {
        let first_began = Instant::now();
        let connections = (0..SLOW).map(|_| {
            let mut stream = TcpStream::connect(server.addr).expect("one more connection");
            stream.set_nonblocking(true).unwrap();
            stream.write_all(&HEAD[..1]).unwrap();
            stream
        });
        let connections = connections.collect();
        Slow { connections, sent: 1, first_began, last_began: Instant::now() }
    }

    /// Sends the next byte on each connection if a second has passed since the last one.
    fn send_due(&mut self) {
        if self.last_began.elapsed() < Duration::from_secs(self.sent as u64) {
            return;
        }
        for stream in &mut self.connections {
            // `is_closed` finds the closed ones.
            let _ = stream.write(&HEAD[self.sent..][..1]);
        }
        self.sent += 1;
    }
}

fn is_closed(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0]) {
        Ok(0) => true,
        Ok(_) => panic!("a reply to part of a head"),
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}
