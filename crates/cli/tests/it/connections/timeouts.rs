//! The two timeouts of `regatta serve` close a connection in time on every model.

use crate::support::{DEADLINE, Server, expect, expect_end, on_every_model};
use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

const LIMIT: Duration = Duration::from_secs(2);

/// The server closes the connection when [`LIMIT`] is over, counted from `start`, and not only after the default
/// timeout of a minute. The exact time is tested with the simulator's clock (`engine/tests`).
fn expect_close_in_time(mut stream: TcpStream, start: Instant, which: &str) {
    expect_end(&mut stream);
    let took = start.elapsed();
    assert!(took >= LIMIT.mul_f64(0.9), "{which}: closed after {took:?}, limit {LIMIT:?}");
    assert!(took < LIMIT + DEADLINE, "{which}: closed after {took:?}, limit {LIMIT:?}");
}

#[test]
fn a_silent_client_is_closed_after_the_idle_timeout() {
    on_every_model(|model, more| {
        let server = Server::of("double", model, &[more, &["--idle-timeout", "2s"]].concat());
        let mut served = server.connect();
        served.write_all(b"4\n").unwrap();
        expect(&mut served, b"8\n");
        let fresh = server.connect();
        let start = Instant::now();
        served.write_all(b"4\n").unwrap();
        expect(&mut served, b"8\n");
        expect_close_in_time(fresh, start, "a client that never sent anything");
        expect_close_in_time(served, start, "a client after a reply");
    });
}

#[test]
fn a_connection_with_half_a_request_is_closed_after_the_request_timeout() {
    on_every_model(|model, more| {
        let server = Server::of("double", model, &[more, &["--request-timeout", "2s"]].concat());
        let mut first = server.connect();
        let mut later = server.connect();
        for stream in [&mut first, &mut later] {
            stream.write_all(b"4\n").unwrap();
            expect(stream, b"8\n");
        }
        let start = Instant::now();
        first.write_all(b"12").unwrap();
        later.write_all(b"4\n5\n12").unwrap();
        expect(&mut later, b"8\n10\n");
        expect_close_in_time(first, start, "half a request");
        expect_close_in_time(later, start, "half a request after whole ones");
    });
}

/// The client sends a byte at a time. It is never idle, but the request takes too long.
#[test]
fn a_client_that_sends_a_request_too_slowly_is_closed_after_the_request_timeout() {
    on_every_model(|model, more| {
        let limits = ["--request-timeout", "2s", "--idle-timeout", "1s"];
        let server = Server::of("double", model, &[more, &limits].concat());
        let mut stream = server.connect();
        stream.write_all(b"4\n").unwrap();
        expect(&mut stream, b"8\n");
        let start = Instant::now();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        // Until the close: the next byte is answered with a reset.
        while stream.write_all(b"1").is_ok() {
            assert!(start.elapsed() < LIMIT + DEADLINE, "still open");
            match stream.read(&mut [0; 8]) {
                Ok(0) => break,
                Ok(_) => panic!("a reply to part of a request"),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        let took = start.elapsed();
        assert!(took >= LIMIT.mul_f64(0.9), "closed after {took:?}");
    });
}
