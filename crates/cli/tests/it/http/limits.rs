//! Limits on the memory that a client can occupy: requests of maximum size, and unread replies.

use crate::{
    http::{GET, expect_hello},
    support::{Server, on_every_shared, send_until_stuck},
};
use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

/// Maximum size of a head and of a content, in bytes (`proto::http1`).
const HEAD: usize = 16 * 1024;
const CONTENT: usize = 64 * 1024;

/// The reply to a [`GET`], except for the times.
const REPLY: &str = "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
    Content-Type: text/plain\r\nContent-Length: 29\r\n\r\nHello. The time is 1234567890";

/// A request of maximum size, followed by a [`GET`].
fn longest() -> Vec<u8> {
    let start = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {CONTENT}\r\nX: ");
    let fill = "x".repeat(HEAD - start.len() - 4);
    [format!("{start}{fill}\r\n\r\n").as_bytes(), &[b'c'; CONTENT], GET].concat()
}

#[test]
fn many_requests_of_maximum_size_take_bounded_memory() {
    const CLIENTS: u64 = 100;
    let request = longest();
    on_every_shared(|model| {
        let server = Server::of("hello", model, &["--max-connections", "128"]);
        let mut streams: Vec<TcpStream> = (0..CLIENTS).map(|_| server.connect()).collect();
        streams.iter_mut().for_each(expect_get);
        let before = server.memory();
        let (held, last) = request.split_at(HEAD + CONTENT - 1);
        for stream in &mut streams {
            stream.write_all(held).unwrap();
        }
        // Everything except the last byte waits in the server or in its sockets: at most twice the
        // request, and the same again for a copy.
        let grown = server.memory().saturating_sub(before);
        assert!(grown < CLIENTS * 4 * (HEAD + CONTENT) as u64, "grew by {grown} bytes");
        for stream in &mut streams {
            stream.write_all(last).unwrap();
        }
        for stream in &mut streams {
            let mut status = [0; 12];
            stream.read_exact(&mut status).unwrap();
            assert_eq!(&status, b"HTTP/1.1 405");
            let mut replies = String::new();
            stream.shutdown(Shutdown::Write).unwrap();
            stream.read_to_string(&mut replies).unwrap();
            assert!(replies.contains("HTTP/1.1 200 OK\r\n"), "{replies}");
        }
    });
}

fn expect_get(stream: &mut TcpStream) {
    stream.write_all(GET).unwrap();
    expect_hello(stream);
}

#[test]
fn stops_reading_from_a_client_that_does_not_read_and_loses_no_reply() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        expect_get(&mut server.connect());
        let before = server.memory();
        let stream = server.connect();
        let sent = send_until_stuck(&stream, GET);
        let grown = server.memory().saturating_sub(before);
        assert!(grown < 8 << 20, "grew by {grown} bytes");
        expect_get(&mut server.connect()); // another client is still served
        stream.shutdown(Shutdown::Write).unwrap();
        // All replies have the same length: seconds have ten digits until the year 2286.
        let asked = (sent / GET.len()) as u64;
        let replies = io::copy(&mut &stream, &mut io::sink()).expect("replies, then the end");
        assert_eq!(replies, asked * REPLY.len() as u64);
    });
}

#[test]
fn a_client_that_does_not_finish_its_content_is_closed() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &["--request-timeout", "300ms"]);
        let mut stream = server.connect();
        stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n").unwrap();
        let started = Instant::now();
        match stream.read(&mut [0; 8]) {
            Ok(read) => assert_eq!(read, 0, "a reply to part of a request"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        assert!(started.elapsed() >= Duration::from_millis(250), "{:?}", started.elapsed());
    });
}
