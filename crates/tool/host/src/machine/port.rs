//! TCP ports: finds a free one of this machine, checks whether a process listens on one, and exchanges bytes with a
//! server until a deadline.

use crate::machine::sockets::Sockets;
use std::{
    fs,
    hash::{BuildHasher, RandomState},
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// The place in [`servers`] of the port that is tried next. Each process begins at a random place, so that
/// two processes rarely choose the same port.
static NEXT: LazyLock<AtomicUsize> =
    LazyLock::new(|| AtomicUsize::new(RandomState::new().hash_one(()) as usize >> 1));

/// Returns a port on which no process listens; another each time, until all were returned. The port is not
/// reserved, and its server may take long to start. So it is outside the range from which the kernel
/// chooses ports for connections and for listeners on port 0.
///
/// # Errors
/// If the kernel's range cannot be read, or no port is free.
pub fn free_port() -> io::Result<u16> {
    let ports = servers(&fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")?);
    first_free(&ports, || NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The first free one of `ports`, at the next places. Tries as many as there are.
fn first_free(ports: &[u16], place: impl Fn() -> usize) -> io::Result<u16> {
    let tried = ports.iter().map(|_| ports[place() % ports.len()]);
    let mut free = tried.filter(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    free.next().ok_or_else(|| io::ErrorKind::AddrInUse.into())
}

/// The ports from 10,000 that are outside the kernel's range for ports of its choice (tcp(7),
/// `ip_local_port_range`). All ports from 10,000 if that leaves fewer than a thousand.
fn servers(range: &str) -> Vec<u16> {
    let mut bounds = range.split_whitespace().map_while(|bound| bound.parse().ok());
    let ephemeral = bounds.next().unwrap_or(0)..=bounds.next().unwrap_or(0);
    let all = 10_000..=u16::MAX;
    let outside: Vec<u16> = all.clone().filter(|port| !ephemeral.contains(port)).collect();
    if outside.len() < 1_000 { all.collect() } else { outside }
}

/// Whether a socket listens on `port`, on whatever local address.
pub fn is_taken(port: u16) -> io::Result<bool> {
    let own = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    if connect(own, Duration::from_millis(200)).is_ok() {
        return Ok(true);
    }
    // A listener with a full queue does not accept connections for now, and one on another local address
    // never answers here. The kernel's tables show both.
    Ok(Sockets::read_listening()?.listens(port))
}

/// Connects to an address of this machine.
///
/// If no process listens on the port and the kernel happens to choose it as the source port too, the
/// socket connects to itself (simultaneous open, RFC 9293 section 3.5). That counts as refused.
pub(crate) fn connect(address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, limit)?;
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}

/// A connection on which all reads and writes fail after a deadline, even if bytes still come.
pub struct UntilDeadline<'a> {
    /// The connection. Each read and write sets its timeout.
    pub stream: &'a TcpStream,
    /// The deadline.
    pub deadline: Instant,
}

impl Read for UntilDeadline<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(time_left(self.deadline)?))?;
        self.stream.read(into)
    }
}

impl Write for UntilDeadline<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(time_left(self.deadline)?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the time until a deadline, above zero; the error `TimedOut` if there is none.
pub fn time_left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn does_not_return_a_port_again_soon() {
        let mut ports: Vec<u16> = (0..900).map(|_| free_port().unwrap()).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 900);
    }

    #[test]
    fn ports_of_servers_are_not_chosen_by_the_kernel() {
        let ports = servers("32768\t60999\n");
        assert_eq!((ports[0], ports[ports.len() - 1]), (10_000, u16::MAX));
        assert!(ports.contains(&32_767) && ports.contains(&61_000));
        assert!(!ports.contains(&32_768) && !ports.contains(&60_999));
        assert_eq!(servers("1024\t65535").len(), 55_536);
        assert_eq!(servers("11000 65535").len(), 1_000);
        assert_eq!(servers("10999 65535").len(), 55_536);
        assert_eq!(servers("").len(), 55_536);
    }

    #[test]
    fn a_listening_port_is_not_free() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (listens, free) = (taken.local_addr().unwrap().port(), free_port().unwrap());
        let next = AtomicUsize::new(0);
        let place = || next.fetch_add(1, Ordering::Relaxed);
        assert_eq!(first_free(&[listens, listens, free, listens], place).unwrap(), free);
        assert_eq!(
            first_free(&[listens, listens], place).unwrap_err().kind(),
            io::ErrorKind::AddrInUse
        );
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

    #[test]
    fn a_server_that_never_stops_sending_does_not_postpone_a_deadline() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let server = thread::spawn(move || while peer.write_all(b"x").is_ok() {});
        let deadline = Instant::now() + Duration::from_millis(50);
        let read = io::copy(&mut UntilDeadline { stream: &stream, deadline }, &mut io::sink());
        // The last read may end by its own timeout.
        let kind = read.unwrap_err().kind();
        assert!(matches!(kind, io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{kind:?}");
        drop(stream);
        server.join().unwrap();
    }
}
