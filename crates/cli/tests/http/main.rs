//! HTTP servers over real sockets, on every model: what they refuse, how they close, their limits,
//! and what clients that others have written make of them.

#[path = "../../../proto/tests/http1/cases.rs"]
mod cases;
mod closes;
mod curl;
mod limits;
mod malformed;
#[path = "../support/mod.rs"]
mod support;
mod ureq;

use std::{
    io::{Read, Write},
    net::TcpStream,
};
use support::{
    Server,
    hello::{GET, expect_hello},
};

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
