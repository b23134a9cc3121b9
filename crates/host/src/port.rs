//! TCP ports on 127.0.0.1: finds a free one, and checks whether a process listens on one.

use crate::sockets::Sockets;
use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The ports that `free_port` returned last. The kernel may choose one of them again before its server
/// listens on it.
static GIVEN: Mutex<VecDeque<u16>> = Mutex::new(VecDeque::new());

/// Returns a port on which no process listens, chosen by the kernel, and not one of the last thousand
/// that this process got. The port is not reserved: start the server on it soon.
pub fn free_port() -> io::Result<u16> {
    const REMEMBERED: usize = 1000;
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut passed_over = Vec::new(); // kept bound, so that the kernel chooses another
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        if given.contains(&port) {
            passed_over.push(listener);
            continue;
        }
        if given.len() == REMEMBERED {
            given.pop_front();
        }
        given.push_back(port);
        return Ok(port);
    }
}

/// Whether a socket listens on `port`, on whatever local address.
pub fn is_taken(port: u16) -> io::Result<bool> {
    if connect(port, Duration::from_millis(200)).is_ok() {
        return Ok(true);
    }
    // A listener with a full queue does not accept connections for now, and one on another local address
    // never answers here. The kernel's tables show both.
    Ok(Sockets::read_listening()?.listens(port))
}

/// Connects to `port` on 127.0.0.1.
///
/// If no process listens on the port and the kernel happens to choose it as the source port too, the
/// socket connects to itself (simultaneous open, RFC 9293 section 3.5). That counts as refused.
pub(crate) fn connect(port: u16, limit: Duration) -> io::Result<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, limit)?;
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_return_a_port_again_soon() {
        let mut ports: Vec<u16> = (0..900).map(|_| free_port().unwrap()).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 900);
    }

    #[test]
    fn a_port_is_taken_while_a_process_listens_on_it() {
        let port = free_port().unwrap();
        assert!(!is_taken(port).unwrap());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(is_taken(port).unwrap());
        drop(listener);
        assert!(!is_taken(port).unwrap());
    }

    #[test]
    fn finds_a_listener_on_another_local_address() {
        let listener = TcpListener::bind("127.0.0.7:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_taken(port).unwrap());
    }
}
