//! HTTP servers over real sockets, on every model: refused requests, closing, limits, and
//! independently written clients.

mod closes;
mod curl;
mod limits;
mod malformed;
mod ureq;

use crate::support::{
    Server,
    hello::{GET, expect_hello},
};
use std::{
    io::{Read, Write},
    net::TcpStream,
};

/// Sends `bytes` on a new connection and returns everything that the server sends until it closes. A
/// reset is a failure, because it may overtake a reply.
fn reply_to(server: &Server, bytes: &[u8]) -> String {
    let mut stream = server.connect();
    stream.write_all(bytes).expect("the server accepts all bytes");
    rest(&mut stream)
}

/// Returns everything that the server sends until it closes.
fn rest(stream: &mut TcpStream) -> String {
    let mut came = Vec::new();
    if let Err(error) = stream.read_to_end(&mut came) {
        panic!("expected the end, but: {error}, after {}", came.escape_ascii());
    }
    String::from_utf8(came).expect("text")
}
