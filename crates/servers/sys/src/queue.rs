//! Output that the kernel still holds.

use rustix::net::getpeername;
use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

/// Returns the bytes written to a TCP socket that the peer has not acknowledged (SIOCOUTQ, tcp(7));
/// 0 once the connection is gone.
pub fn unacknowledged(socket: impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open, because it is borrowed. The request (TIOCOUTQ is another name
    // of SIOCOUTQ) writes one int to the given address, which is that of `bytes`.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // After a reset, the kernel keeps the last count, but no peer address.
    let gone = bytes > 0 && getpeername(&socket).is_err();
    Ok(if gone { 0 } else { bytes as usize })
}

#[cfg(test)]
mod tests {
    use super::unacknowledged;
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
    };

    #[test]
    fn unacknowledged_bytes_do_not_count_after_a_reset() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 1 << 16]).is_ok() {}
        assert!(unacknowledged(&socket).unwrap() > 0);
        drop(peer); // with input unread: a reset
        socket.set_nonblocking(false).unwrap();
        assert!(socket.read(&mut [0]).is_err());
        assert_eq!(unacknowledged(&socket).unwrap(), 0);
    }
}
