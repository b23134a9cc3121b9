//! The kernel's list of TCP sockets, by sock_diag(7). It makes only the entries that are asked for, in a few
//! hundred microseconds for those that listen; the tables of proc_net(5) list all connections, as text.

use crate::network::netlink::{dump, u32_at};
use rustix::net::netlink::SOCK_DIAG;
use std::{
    io::{self, ErrorKind},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// State of a listening socket (include/net/tcp_states.h).
const LISTEN: u8 = 10;

// linux/sock_diag.h, linux/inet_diag.h
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const IPPROTO_TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// A TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Socket {
    /// Its local address.
    pub address: IpAddr,
    /// Its local port.
    pub port: u16,
    pub listens: bool,
    /// 0 if no process holds it.
    pub inode: u64,
}

/// Returns the sockets of this network namespace; only those that listen, if `listening`.
///
/// # Errors
/// If the kernel lacks sock_diag (CONFIG_INET_DIAG) or forbids it.
pub(crate) fn sockets(listening: bool) -> io::Result<Vec<Socket>> {
    let mut found = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let request = request(family, if listening { 1 << LISTEN } else { u32::MAX });
        dump(Some(SOCK_DIAG), SOCK_DIAG_BY_FAMILY, &request, |message| {
            found.push(socket(message)?);
            Ok(())
        })?;
    }
    Ok(found)
}

/// Reads an `inet_diag_msg`.
fn socket(message: &[u8]) -> io::Result<Socket> {
    let message: &[u8; 72] = message.first_chunk().ok_or(ErrorKind::InvalidData)?;
    let part = |at: usize| -> [u8; 4] { [0, 1, 2, 3].map(|n| message[at + n]) };
    let address = match message[0] {
        AF_INET => IpAddr::V4(Ipv4Addr::from(part(8))),
        _ => {
            let words = [8, 12, 16, 20].map(part);
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words.as_flattened()).expect("16")))
        }
    };
    Ok(Socket {
        address,
        port: u16::from_be_bytes([message[4], message[5]]),
        listens: message[1] == LISTEN,
        inode: u32_at(message, 68)?.into(),
    })
}

/// Returns an `inet_diag_req_v2` that requests all sockets in these states.
fn request(family: u8, states: u32) -> Vec<u8> {
    const ID_BYTES: usize = 48;
    let mut message = vec![family, IPPROTO_TCP, 0, 0];
    message.extend(states.to_ne_bytes());
    message.extend([0; ID_BYTES]);
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn listeners_and_both_ends_of_a_connection_are_listed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let client = TcpStream::connect(addr).unwrap();
        let _accepted = listener.accept().unwrap();
        let client = client.local_addr().unwrap();
        let listening = sockets(true).unwrap();
        let own: Vec<_> = listening.iter().filter(|one| one.port == addr.port()).collect();
        assert!(matches!(own[..], [Socket { listens: true, inode: 1.., .. }]), "{own:?}");
        assert_eq!(own[0].address, addr.ip());
        assert!(listening.iter().all(|one| one.listens));
        let all = sockets(false).unwrap();
        // A connection of another test may have the same port at its other end.
        assert!(all.iter().filter(|one| one.port == addr.port()).count() >= 2);
        assert!(all.iter().any(|one| one.port == client.port()));
    }

    #[test]
    fn a_listener_on_all_addresses_is_listed_with_its_address() {
        for addr in ["0.0.0.0:0", "[::]:0"] {
            // IPv6 may be switched off.
            let Ok(listener) = TcpListener::bind(addr) else { continue };
            let addr = listener.local_addr().unwrap();
            let listening = sockets(true).unwrap();
            let own = listening.iter().find(|one| one.port == addr.port()).unwrap();
            assert_eq!(own.address, addr.ip());
        }
    }
}
