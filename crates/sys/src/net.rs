//! Sockets: listening, accepting, and the calls of a connection, with `recv` and `send`
//! because they are the shortest way into the kernel for a socket.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, accept_with, bind,
    getpeername, getsockname, ipproto, listen as listen_on, recv, send, shutdown, socket_with,
    socketpair, sockopt,
};
use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

/// Connections that the kernel may hold complete but not yet accepted (it caps this at
/// `net.core.somaxconn`).
pub const BACKLOG: i32 = 4096;

/// Who may listen on a port beside us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Nobody: a port in use is an error.
    Exclusive,
    /// Other sockets of this user that ask for the same (SO_REUSEPORT): the kernel spreads new
    /// connections over them by a hash of the addresses.
    Shared,
}

/// Listens on `addr`. Accepted connections send without delay (TCP_NODELAY is inherited).
pub fn listen(addr: SocketAddr, port: Port, blocking: bool) -> io::Result<OwnedFd> {
    let fd = bound(addr, port, blocking)?;
    listen_on(&fd, BACKLOG)?;
    Ok(fd)
}

/// The address that `addr` names, port 0 being any port: an error if somebody listens on it. Nothing
/// listens on it meanwhile, since who connected in that moment would be reset.
pub fn free_addr(addr: SocketAddr) -> io::Result<SocketAddr> {
    local_addr(bound(addr, Port::Exclusive, false)?)
}

fn bound(addr: SocketAddr, port: Port, blocking: bool) -> io::Result<OwnedFd> {
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut flags = SocketFlags::CLOEXEC;
    if !blocking {
        flags |= SocketFlags::NONBLOCK;
    }
    let fd = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if port == Port::Shared {
        sockopt::set_socket_reuseport(&fd, true)?;
    }
    sockopt::set_tcp_nodelay(&fd, true)?;
    bind(&fd, &addr)?;
    Ok(fd)
}

/// Begins to connect to `addr`, without waiting: the socket becomes writable when it is connected, or
/// cannot be ([`opened`]).
pub fn connect(addr: SocketAddr) -> io::Result<OwnedFd> {
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_tcp_nodelay(&fd, true)?;
    match rustix::net::connect(&fd, &addr) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(fd),
        Err(error) => Err(error.into()),
    }
}

/// Two stream sockets that are connected to each other (AF_UNIX), for processes of one server.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Whether a connection was opened, once its socket is writable; if not, why (SO_ERROR, socket(7)).
///
/// Where nobody listens on a port of this machine, the kernel may choose that very port for a connection to
/// it, which is then connected to itself (RFC 793, 3.4, simultaneous open). That counts as refused.
pub fn opened(socket: impl AsFd) -> io::Result<()> {
    sockopt::socket_error(&socket)?.map_err(io::Error::from)?;
    if getpeername(&socket)?.is_some_and(|peer| getsockname(&socket).ok() == Some(peer)) {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(())
}

/// Longest time that a read and a write of a blocking socket may block; those that a listener accepts
/// inherit it.
pub fn set_timeouts(socket: impl AsFd, read: Duration, write: Duration) -> io::Result<()> {
    set_read_timeout(&socket, read)?;
    Ok(sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(write))?)
}

/// Longest time that a read of a blocking socket may block.
pub fn set_read_timeout(socket: impl AsFd, limit: Duration) -> io::Result<()> {
    // 0 would be forever.
    let limit = limit.max(Duration::from_micros(1));
    Ok(sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(limit))?)
}

/// Makes a socket blocking again.
pub fn set_blocking(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(socket, false)?)
}

/// The address that a socket is bound to.
pub fn local_addr(socket: impl AsFd) -> io::Result<SocketAddr> {
    Ok(getsockname(socket)?.try_into()?)
}

/// Accepts a connection as a non-blocking socket.
pub fn accept(listener: impl AsFd) -> io::Result<OwnedFd> {
    Ok(accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?)
}

/// Accepts a connection as a blocking socket.
pub fn accept_blocking(listener: impl AsFd) -> io::Result<OwnedFd> {
    Ok(accept_with(listener, SocketFlags::CLOEXEC)?)
}

/// Whether an accept failed because of its one connection, which is gone, so that the next may
/// succeed at once (accept(2), error handling).
pub fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    matches!(error.kind(), ConnectionAborted | Interrupted | ConnectionReset)
        || error.raw_os_error() == Some(rustix::io::Errno::PROTO.raw_os_error())
}

/// Reads what is there. 0 is the end of input.
#[inline]
pub fn read(socket: impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    Ok(recv(socket, into, RecvFlags::empty())?.0)
}

/// Writes what fits. A connection that is gone is an error, never a signal.
#[inline]
pub fn write(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(send(socket, bytes, SendFlags::NOSIGNAL)?)
}

/// As [`read`], on a blocking socket, without blocking.
#[inline]
pub fn read_now(socket: impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    Ok(recv(socket, into, RecvFlags::DONTWAIT)?.0)
}

/// As [`write`], or [`write_last`], on a blocking socket, without blocking.
#[inline]
pub fn write_now(socket: impl AsFd, bytes: &[u8], last: bool) -> io::Result<usize> {
    let more = if last { SendFlags::MORE } else { SendFlags::empty() };
    Ok(send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT | more)?)
}

/// As [`write`], for the last bytes before [`finish_writing`]: the kernel holds them back and sends
/// them together with the end, in one packet instead of two (MSG_MORE, send(2)).
#[inline]
pub fn write_last(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::MORE)?)
}

/// Whether a read would not block now.
pub fn is_readable(socket: impl AsFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Whether the connection is no more: it was reset, or both of its directions have ended. Tells so
/// whatever is left to be read.
pub fn is_gone(socket: impl AsFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Errors and the end of both directions are told without being asked for (poll(2)).
    let asked = PollFd::new(&socket, PollFlags::empty());
    poll(&mut [asked], Some(&at_once)).is_ok_and(|gone| gone > 0)
}

/// Whether the peer has ended its sending direction, or the connection is gone. What it has sent before may
/// still be there to read.
pub fn has_ended(socket: impl AsFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let asked = PollFd::new(&socket, PollFlags::RDHUP);
    poll(&mut [asked], Some(&at_once)).is_ok_and(|ended| ended > 0)
}

/// Ends our sending direction: the peer reads what was sent, then the end of input.
pub fn finish_writing(socket: impl AsFd) -> io::Result<()> {
    Ok(shutdown(socket, Shutdown::Write)?)
}

/// Ends our reading direction: what has arrived can still be read, then comes the end of input.
/// Wakes whoever waits for input.
pub fn finish_reading(socket: impl AsFd) -> io::Result<()> {
    Ok(shutdown(socket, Shutdown::Read)?)
}

/// Ends both directions.
pub fn finish(socket: impl AsFd) -> io::Result<()> {
    Ok(shutdown(socket, Shutdown::Both)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_somebody_listens_on_is_not_free_however_they_do() {
        let any = "127.0.0.1:0".parse().unwrap();
        for port in [Port::Exclusive, Port::Shared] {
            let listener = listen(any, port, false).unwrap();
            let addr = local_addr(&listener).unwrap();
            assert_eq!(free_addr(addr).unwrap_err().kind(), io::ErrorKind::AddrInUse);
            drop(listener);
            assert_eq!(free_addr(addr).unwrap(), addr);
        }
        assert_ne!(free_addr(any).unwrap().port(), 0);
    }
}
