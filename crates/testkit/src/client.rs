//! Raw clients: sockets with a deadline for each read and write, and checks of the bytes that arrive.

use crate::deadline::DEADLINE;
use std::{
    io::{ErrorKind, Read},
    net::{SocketAddr, TcpListener, TcpStream},
};

/// Connects, with deadlines and without Nagle's algorithm.
#[track_caller]
pub fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&addr, DEADLINE).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads as many bytes as expected, and compares them.
#[track_caller]
pub fn expect(stream: &mut TcpStream, expected: &[u8]) {
    let mut got = vec![0; expected.len()];
    if let Err(error) = stream.read_exact(&mut got) {
        panic!("expected {:?}, but: {error}", expected.escape_ascii().to_string());
    }
    assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

/// Checks that the server closes or resets the connection without sending another byte.
#[track_caller]
pub fn expect_end(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("expected the end, but: {error}"),
    }
    assert_eq!(rest.escape_ascii().to_string(), "", "expected the end");
}

/// An address that refuses connections for as long as this lives: no other socket can get its port.
pub struct Refusing {
    /// The address.
    pub addr: SocketAddr,
    /// Its own end is bound to the address and does not listen.
    _bound: TcpStream,
}

/// Returns an address at which nobody listens.
#[track_caller]
pub fn refusing() -> Refusing {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let bound = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    Refusing { addr: bound.local_addr().unwrap(), _bound: bound }
}
