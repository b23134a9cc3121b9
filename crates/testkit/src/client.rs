//! Raw clients: sockets with a deadline for each read and write, and checks of the bytes that arrive.

use crate::deadline::{DEADLINE, until};
use socket2::{Domain, Socket, Type};
use std::{
    io::{ErrorKind, Read},
    net::{SocketAddr, TcpStream},
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

/// Waits until a server listens at this address.
#[track_caller]
pub fn until_listens(addr: SocketAddr) {
    until(&format!("a server listens at {addr}"), || TcpStream::connect(addr).is_ok());
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
    /// It is bound to the address and does not listen.
    _bound: Socket,
}

/// Returns an address at which nobody listens.
#[track_caller]
pub fn refusing() -> Refusing {
    // Not a connected socket: the kernel takes its port away when its other end resets it. And without
    // SO_REUSEADDR, which would share the port.
    let bound = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    bound.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    Refusing { addr: bound.local_addr().unwrap().as_socket().unwrap(), _bound: bound }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn an_address_that_refuses_cannot_be_taken() {
        let nobody = refusing();
        for _ in 0..3 {
            let error = TcpStream::connect(nobody.addr).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            assert_eq!(TcpListener::bind(nobody.addr).unwrap_err().kind(), ErrorKind::AddrInUse);
        }
    }
}
