//! TCP ports for the servers of tests that cannot bind port 0 themselves.

use socket2::{Domain, Socket, Type};
use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    process,
    sync::{Mutex, PoisonError},
};

/// The first port that is given.
const FIRST: u16 = 10_000;

/// Returns a TCP port of 127.0.0.1 that is free, and that no other test gets until this process ends.
///
/// It is below the ports that the kernel gives to those who bind port 0 and to clients. A UDP socket with
/// the same number is the reservation, also among processes.
#[track_caller]
pub fn free() -> u16 {
    static RESERVED: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = range.split_whitespace().next().and_then(|low| low.parse().ok()).unwrap_or(32_768);
    assert!(end > FIRST, "no ports from {FIRST} to {end}");
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    // Processes begin at different ports, so that each seldom tries those of another.
    let begin = process::id() as usize * 61 % usize::from(end - FIRST);
    for port in (FIRST..end).cycle().skip(begin).take(usize::from(end - FIRST)) {
        let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)) else { continue };
        if can_bind(port).is_ok() {
            reserved.push(socket);
            return port;
        }
    }
    panic!("no port from {FIRST} to {end} is free");
}

/// Binds a port on all addresses, because a listener on any of them would disturb. It does not listen: a
/// child that another thread starts at this moment keeps a copy of the socket for a while, and nobody may
/// reach that.
fn can_bind(port: u16) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::HashSet, net::TcpListener};

    #[test]
    fn a_port_with_a_listener_is_not_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(can_bind(port).is_err());
        drop(listener);
        can_bind(port).unwrap();
    }

    #[test]
    fn a_port_is_given_once_and_is_free() {
        let ports: HashSet<u16> = (0..100).map(|_| free()).collect();
        assert_eq!(ports.len(), 100);
        for port in ports {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        }
    }
}
