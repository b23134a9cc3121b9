//! What the kernel still holds of what was sent.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

/// Bytes that were written to a TCP socket and that the peer has not acknowledged (SIOCOUTQ,
/// tcp(7)). 0 once the connection is gone.
pub fn unacknowledged(socket: impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: for a descriptor that is open (it is borrowed) the request, whose other name is
    // TIOCOUTQ, writes one int to the address given, which is that of `bytes`.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(bytes as usize) }
}
