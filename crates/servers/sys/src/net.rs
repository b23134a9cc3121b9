//! Sockets: listening, accepting, and the calls of a connection. They use `recv` and `send`, which
//! are the shortest path into the kernel for a socket.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, accept_with, bind,
    getpeername, getsockname, ipproto, listen as listen_on, recv, send, shutdown, socket_with,
    socketpair, sockopt,
};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

/// Maximum number of established connections that wait to be accepted. The kernel caps it at
/// `net.core.somaxconn`.
pub const BACKLOG: i32 = 4096;

/// Whether other sockets may listen on the same port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortSharing {
    /// None may: a port in use is an error.
    Exclusive,
    /// Other sockets of this user may, if they set the same option (SO_REUSEPORT). The kernel
    /// distributes new connections over them by a hash of the addresses.
    Shared,
}

/// Listens on `addr`. Accepted connections inherit TCP_NODELAY.
pub fn listen(addr: SocketAddr, port: PortSharing, blocking: bool) -> io::Result<OwnedFd> {
    let fd = bound(addr, port, blocking)?;
    listen_on(&fd, BACKLOG)?;
    Ok(fd)
}

/// Takes a listening socket that another process opened: a descriptor of its own, which the children of this process
/// do not keep. Closing it leaves the socket listening. The mode is that of the socket, in every process that has it.
pub fn adopt(listening: impl AsFd, blocking: bool) -> io::Result<OwnedFd> {
    let fd = share(listening, blocking)?;
    sockopt::set_tcp_nodelay(&fd, true)?;
    Ok(fd)
}

/// The same for a listening socket of any kind.
pub fn share(listening: impl AsFd, blocking: bool) -> io::Result<OwnedFd> {
    let fd = rustix::io::fcntl_dupfd_cloexec(listening, 0)?;
    rustix::io::ioctl_fionbio(&fd, !blocking)?;
    Ok(fd)
}

/// Returns `addr` with a free port in place of port 0. Fails if another socket listens on the
/// address. The check only binds and does not listen, because clients that connect in that moment
/// would be reset.
pub fn free_addr(addr: SocketAddr) -> io::Result<SocketAddr> {
    local_addr(bound(addr, PortSharing::Exclusive, false)?)
}

fn bound(addr: SocketAddr, port: PortSharing, blocking: bool) -> io::Result<OwnedFd> {
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut flags = SocketFlags::CLOEXEC;
    if !blocking {
        flags |= SocketFlags::NONBLOCK;
    }
    let fd = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if port == PortSharing::Shared {
        sockopt::set_socket_reuseport(&fd, true)?;
    }
    sockopt::set_tcp_nodelay(&fd, true)?;
    bind(&fd, &addr)?;
    Ok(fd)
}

/// Starts to connect to `addr`, without waiting. The socket becomes writable when the attempt
/// succeeds or fails ([`opened`]). The connection detects that its peer has vanished.
pub fn connect(addr: SocketAddr) -> io::Result<OwnedFd> {
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_tcp_nodelay(&fd, true)?;
    detect_vanished_peers(&fd)?;
    match rustix::net::connect(&fd, &addr) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(fd),
        Err(error) => Err(error.into()),
    }
}

/// Silence after which keepalive probes a peer, the interval between probes, and the number of
/// probes that may stay unanswered.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 4;

/// Lets the kernel detect that a peer has vanished: within two minutes, whether the connection is
/// idle (SO_KEEPALIVE) or output is unacknowledged (TCP_USER_TIMEOUT).
pub fn detect_vanished_peers(socket: impl AsFd) -> io::Result<()> {
    let most = KEEPALIVE_IDLE + KEEPALIVE_INTERVAL * KEEPALIVE_PROBES;
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(&socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(&socket, KEEPALIVE_PROBES)?;
    Ok(sockopt::set_tcp_user_timeout(&socket, most.as_millis() as u32)?)
}

/// Creates two connected stream sockets (AF_UNIX), for the processes of one server.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Checks whether a connection was opened, once its socket is writable. Returns the error if it was
/// not (SO_ERROR, socket(7)).
///
/// If nothing listens on a local port, the kernel may choose that same port as the source of a
/// connection to it. The connection is then connected to itself (RFC 793, 3.4, simultaneous open).
/// That counts as refused.
pub fn opened(socket: impl AsFd) -> io::Result<()> {
    sockopt::socket_error(&socket)?.map_err(io::Error::from)?;
    if getpeername(&socket)?.is_some_and(|peer| getsockname(&socket).ok() == Some(peer)) {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(())
}

/// Sets how long a read and a write of a blocking socket may block. Sockets accepted from a
/// listener inherit it.
pub fn set_timeouts(socket: impl AsFd, read: Duration, write: Duration) -> io::Result<()> {
    set_read_timeout(&socket, read)?;
    Ok(sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(write))?)
}

/// Sets how long a read of a blocking socket may block.
pub fn set_read_timeout(socket: impl AsFd, limit: Duration) -> io::Result<()> {
    // 0 would mean forever.
    let limit = limit.max(Duration::from_micros(1));
    Ok(sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(limit))?)
}

/// Makes a socket blocking again.
pub fn set_blocking(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(socket, false)?)
}

/// Returns the address that a socket is bound to.
pub fn local_addr(socket: impl AsFd) -> io::Result<SocketAddr> {
    Ok(getsockname(socket)?.try_into()?)
}

/// Returns the IP address of the peer. `None`: it has none, as on a Unix socket, or the connection is gone.
pub fn peer_ip(socket: impl AsFd) -> Option<IpAddr> {
    let peer = getpeername(socket).ok()??;
    SocketAddr::try_from(peer).ok().map(|address| address.ip())
}

/// Accepts a connection as a non-blocking socket.
pub fn accept(listener: impl AsFd) -> io::Result<OwnedFd> {
    Ok(accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?)
}

/// Accepts a connection as a blocking socket.
pub fn accept_blocking(listener: impl AsFd) -> io::Result<OwnedFd> {
    Ok(accept_with(listener, SocketFlags::CLOEXEC)?)
}

/// Whether an accept failed only because its connection is gone or a signal came, so that the next
/// may succeed at once (accept(2), error handling).
pub fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    matches!(error.kind(), ConnectionAborted | Interrupted | ConnectionReset)
        || error.raw_os_error() == Some(rustix::io::Errno::PROTO.raw_os_error())
}

/// Reads the available bytes. Returns 0 at the end of input.
#[inline]
pub fn read(socket: impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    Ok(recv(socket, into, RecvFlags::empty())?.0)
}

/// Writes as many bytes as fit. A lost connection is an error, never a signal.
#[inline]
pub fn write(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(send(socket, bytes, SendFlags::NOSIGNAL)?)
}

/// Like [`read`], without blocking on a blocking socket.
#[inline]
pub fn read_now(socket: impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    Ok(recv(socket, into, RecvFlags::DONTWAIT)?.0)
}

/// Like [`write()`], or [`write_last`] if `last`, without blocking on a blocking socket.
#[inline]
pub fn write_now(socket: impl AsFd, bytes: &[u8], last: bool) -> io::Result<usize> {
    let more = if last { SendFlags::MORE } else { SendFlags::empty() };
    Ok(send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT | more)?)
}

/// Like [`write()`], for the last bytes before [`shutdown_write`]. The kernel delays them and sends
/// them together with the FIN, in one packet instead of two (MSG_MORE, send(2)).
#[inline]
pub fn write_last(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::MORE)?)
}

/// Whether a read would not block now.
pub fn is_readable(socket: impl AsFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Whether the connection was reset, or both directions are shut down, even if input is still
/// unread.
pub fn is_gone(socket: impl AsFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Errors and hang-ups are always reported (poll(2)).
    let asked = PollFd::new(&socket, PollFlags::empty());
    poll(&mut [asked], Some(&at_once)).is_ok_and(|gone| gone > 0)
}

/// Whether the peer has closed its sending side, or the connection is gone. Earlier input may still
/// be unread.
pub fn has_ended(socket: impl AsFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let asked = PollFd::new(&socket, PollFlags::RDHUP);
    poll(&mut [asked], Some(&at_once)).is_ok_and(|ended| ended > 0)
}

/// Shuts down our sending side. The peer reads what was sent, then the end of input.
pub fn shutdown_write(socket: impl AsFd) -> io::Result<()> {
    Ok(shutdown(socket, Shutdown::Write)?)
}

/// Shuts down our receiving side. Input that has arrived can still be read, followed by the end of
/// input. Wakes threads that wait for input.
pub fn shutdown_read(socket: impl AsFd) -> io::Result<()> {
    Ok(shutdown(socket, Shutdown::Read)?)
}

/// Shuts down both directions.
pub fn shutdown_both(socket: impl AsFd) -> io::Result<()> {
    Ok(shutdown(socket, Shutdown::Both)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_listener_is_not_free() {
        let any = "127.0.0.1:0".parse().unwrap();
        for port in [PortSharing::Exclusive, PortSharing::Shared] {
            let listener = listen(any, port, false).unwrap();
            let addr = local_addr(&listener).unwrap();
            assert_eq!(free_addr(addr).unwrap_err().kind(), io::ErrorKind::AddrInUse);
            drop(listener);
            assert_eq!(free_addr(addr).unwrap(), addr);
        }
        assert_ne!(free_addr(any).unwrap().port(), 0);
    }
}
