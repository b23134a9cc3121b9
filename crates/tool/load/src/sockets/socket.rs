//! Non-blocking client sockets: open, send, receive. No policy.

use rustix::{
    fd::{AsFd, AsRawFd, OwnedFd},
    io::{self, Errno},
    net::{
        AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags,
        SocketType, bind, connect, ipproto, recv, send, sendmsg, socket_with,
        sockopt::{
            set_socket_linger, set_socket_recv_buffer_size, set_tcp_congestion, set_tcp_nodelay,
        },
    },
};
use std::{
    io::IoSlice,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    path::Path,
    time::Duration,
};

/// Starts to connect. Over loopback the connection is usually established on return, although the kernel
/// reports "in progress"; the first send shows it. `receives` is the size of the receive buffer in
/// bytes; `None` keeps the system's default.
pub(crate) fn open(
    target: SocketAddr,
    source: Option<Ipv4Addr>,
    no_delay: bool,
    receives: Option<usize>,
) -> io::Result<OwnedFd> {
    let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    if no_delay {
        set_tcp_nodelay(&socket, true)?;
        if target.ip().is_loopback() {
            // There is no congestion over loopback, and reno costs the least. If it is not available,
            // the system's default is good enough.
            let _ = set_tcp_congestion(&socket, "reno");
        }
    }
    if let Some(bytes) = receives {
        set_socket_recv_buffer_size(&socket, bytes)?;
    }
    if let Some(source) = source {
        choose_port_at_connect(&socket)?;
        bind(&socket, &SocketAddrV4::new(source, 0))?;
    }
    match connect(&socket, &target) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// Connects to a Unix socket. Fails with `EAGAIN` if the server's queue of new connections is full.
/// `receives` is the size of the receive buffer in bytes; `None` keeps the system's default.
pub(crate) fn open_unix(path: &Path, receives: Option<usize>) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    if let Some(bytes) = receives {
        set_socket_recv_buffer_size(&socket, bytes)?;
    }
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Number of unread bytes.
pub(crate) fn unread(socket: impl AsFd) -> u64 {
    io::ioctl_fionread(socket).unwrap_or(0)
}

/// Sends as many bytes as the kernel accepts; `Ok(0)` if it accepts none now, or is still connecting.
#[inline]
pub(crate) fn send_some(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    match send(socket, bytes, SendFlags::NOSIGNAL) {
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        sent => sent,
    }
}

/// Like [`send_some`], for several pieces one after the other.
pub(crate) fn send_pieces(socket: impl AsFd, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
    match sendmsg(socket, pieces, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        sent => sent,
    }
}

/// Makes a later close reset the connection.
pub(crate) fn reset_on_close(socket: impl AsFd) -> io::Result<()> {
    set_socket_linger(socket, Some(Duration::ZERO))
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// This many bytes.
    Bytes(usize),
    /// No bytes available now.
    Nothing,
    /// End of input: the server closed its sending side.
    End,
}

/// Reads once.
#[inline]
pub(crate) fn receive_some(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Received> {
    match recv(socket, buffer, RecvFlags::empty()) {
        Ok((0, _)) => Ok(Received::End),
        Ok((n, _)) => Ok(Received::Bytes(n)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Nothing),
        Err(error) => Err(error),
    }
}

/// Makes the kernel choose the port at connect, when it knows the target. The port is then taken only
/// for that pair of addresses, and one in TIME_WAIT can be reused.
fn choose_port_at_connect(socket: &OwnedFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the kernel reads one c_int at the address of `on`, which
    // lives through the call. (rustix has no safe form of this option.)
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if status == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
}
