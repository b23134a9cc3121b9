//! Requests to `hello` and their replies.

use std::{
    io::{ErrorKind, Read},
    net::TcpStream,
};

/// A request for the time that keeps the connection.
pub const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Reads the reply to one [`GET`], which must be the time.
pub fn expect_hello(stream: &mut TcpStream) {
    let mut came = Vec::new();
    let mut bytes = [0; 512];
    // The content is about 29 bytes, as announced in Content-Length.
    while !is_whole(&came) {
        match stream.read(&mut bytes) {
            Ok(0) => panic!("expected a reply, but the end came after {}", came.escape_ascii()),
            Ok(read) => came.extend_from_slice(&bytes[..read]),
            // A read with a timeout is not restarted after a signal (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("expected a reply, but {error}"),
        }
    }
    let text = String::from_utf8_lossy(&came);
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("\r\n\r\nHello. The time is "), "{text}");
}

fn is_whole(came: &[u8]) -> bool {
    let text = String::from_utf8_lossy(came);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.split("Content-Length: ").nth(1).expect("a length");
    let length: usize = length.lines().next().unwrap().parse().expect("digits");
    body.len() >= length
}
