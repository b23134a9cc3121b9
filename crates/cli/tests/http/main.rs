//! HTTP servers over real sockets, on every model: what they refuse, how they close, their limits,
//! and what clients that others have written make of them.

#[path = "../../../proto/tests/http1/cases.rs"]
mod cases;
mod closes;
mod curl;
mod limits;
mod malformed;
mod slow;
#[path = "../support/mod.rs"]
mod support;
mod ureq;

use std::{
    io::{Read, Write},
    net::TcpStream,
};
use support::Server;

/// A request for the time that keeps the connection.
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Sends `bytes` on a new connection, and gives all that comes until the server closes. A reset is
/// a failure: it may overtake a reply.
fn told(server: &Server, bytes: &[u8]) -> String {
    let mut stream = server.connect();
    stream.write_all(bytes).expect("the server takes all");
    rest(&mut stream)
}

/// All that comes until the server closes.
fn rest(stream: &mut TcpStream) -> String {
    let mut came = Vec::new();
    if let Err(error) = stream.read_to_end(&mut came) {
        panic!("expected the end, but: {error}, after {}", came.escape_ascii());
    }
    String::from_utf8(came).expect("text")
}

/// Reads the reply to one [`GET`], which must be the time.
fn expect_hello(stream: &mut TcpStream) {
    let mut came = Vec::new();
    let mut bytes = [0; 512];
    // A reply is as long as its Content-Length says, and that is 29 or so: it ends with the digits.
    while !is_whole(&came) {
        match stream.read(&mut bytes).expect("a reply") {
            0 => panic!("expected a reply, but the end came after {}", came.escape_ascii()),
            read => came.extend_from_slice(&bytes[..read]),
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
