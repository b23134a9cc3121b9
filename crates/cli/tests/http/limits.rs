//! What a client may make a server hold: requests at the limits, and replies that nobody reads.

use crate::{
    GET, expect_hello,
    support::{Server, on_every_shared, until},
};
use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

/// Longest head and content that are taken (`proto::http1`).
const HEAD: usize = 16 * 1024;
const CONTENT: usize = 64 * 1024;

/// The longest request, and a [`GET`] behind it.
fn longest() -> Vec<u8> {
    let start = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {CONTENT}\r\nX: ");
    let fill = "x".repeat(HEAD - start.len() - 4);
    [format!("{start}{fill}\r\n\r\n").as_bytes(), &[b'c'; CONTENT], GET].concat()
}

#[test]
fn many_of_the_longest_requests_wait_in_bounded_memory() {
    const CLIENTS: u64 = 100;
    let request = longest();
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        let mut streams: Vec<TcpStream> = (0..CLIENTS).map(|_| server.connect()).collect();
        streams.iter_mut().for_each(expect_get);
        let before = server.memory();
        let (held, last) = request.split_at(HEAD + CONTENT - 1);
        for stream in &mut streams {
            stream.write_all(held).unwrap();
        }
        // All but the last byte waits in the server or in its sockets: at most twice the request,
        // and as much again to copy it.
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
            stream.shutdown(std::net::Shutdown::Write).unwrap();
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
fn a_client_that_does_not_read_stops_being_read_and_loses_nothing() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        expect_get(&mut server.connect());
        let before = server.memory();
        let stream = server.connect();
        let mut writer = stream.try_clone().unwrap();
        writer.set_nonblocking(true).unwrap();
        let chunk = GET.repeat(1000);
        let (mut sent, mut stuck) = (0usize, Instant::now());
        while stuck.elapsed() < Duration::from_millis(500) {
            assert!(sent < 1 << 28, "the server reads on and on");
            match writer.write(&chunk[sent % GET.len()..]) {
                Ok(wrote) => {
                    sent += wrote;
                    stuck = Instant::now();
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    thread::sleep(Duration::from_millis(5)); // nothing more fits: watch it
                }
            }
        }
        let grown = server.memory().saturating_sub(before);
        assert!(grown < 8 << 20, "grew by {grown} bytes");
        expect_get(&mut server.connect()); // another client is served meanwhile
        writer.set_nonblocking(false).unwrap();
        writer.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let asked = sent / GET.len();
        let half_close = || writer.shutdown(std::net::Shutdown::Write).unwrap();
        let mut count = Count::default();
        half_close();
        count.read(&stream);
        assert_eq!(count.replies, asked);
    });
}

/// Counts replies as they come.
#[derive(Default)]
struct Count {
    replies: usize,
    tail: Vec<u8>,
}

impl Count {
    /// Reads to the end.
    fn read(&mut self, mut stream: &TcpStream) {
        const MARK: &[u8] = b"\r\n\r\nHello. The time is ";
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let read = stream.read(&mut bytes).expect("replies, then the end");
            if read == 0 {
                return;
            }
            self.tail.extend_from_slice(&bytes[..read]);
            self.replies += self.tail.windows(MARK.len()).filter(|w| *w == MARK).count();
            let keep = self.tail.len().min(MARK.len() - 1);
            self.tail.drain(..self.tail.len() - keep);
        }
    }
}

#[test]
fn a_client_that_owes_the_rest_of_its_content_is_cut_off() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &["--request-timeout", "300ms"]);
        let mut stream = server.connect();
        stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n").unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        until("it is cut off", || {
            // A byte now and then keeps it from being idle, not from being slow.
            stream.write_all(b"").is_err()
                || !matches!(stream.read(&mut [0; 8]), Err(e) if e.kind() == ErrorKind::WouldBlock)
        });
    });
}
