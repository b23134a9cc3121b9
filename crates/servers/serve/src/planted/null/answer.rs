//! How the null server answers input on one connection.

use regatta_sys::net;
use std::{io, num::NonZeroUsize, os::fd::OwnedFd};

/// Bytes of one read.
pub(super) const READ: usize = 64 * 1024;
/// Maximum bytes of replies per write, unless a single reply is longer.
const WRITE: usize = 1024 * 1024;

/// A canned reply of the null server, where the reply differs from the request.
#[derive(Clone, Debug)]
pub struct Canned {
    /// Length of a request, in bytes. A connection is due one reply for each full length.
    pub request_bytes: NonZeroUsize,
    /// One reply. Not empty.
    pub reply: Vec<u8>,
    /// Whether a connection is closed after its first reply, as other servers do after
    /// `Connection: close`.
    pub closes: bool,
}

/// How input is answered.
pub(super) enum Answer {
    Echo,
    Canned {
        request_bytes: usize,
        reply_bytes: usize,
        /// Copies of the reply, so that many replies are one slice and one write.
        replies: Vec<u8>,
        closes: bool,
    },
}

pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    /// Bytes received since the last full length of a request.
    received: usize,
}

/// How a read left a connection.
pub(super) enum Left {
    /// The socket had no input.
    Idle,
    /// The read emptied the socket.
    Drained,
    /// The read filled its buffer.
    Unread,
    /// The connection is closed.
    Closed,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Connection { socket, received: 0 }
    }
}

impl Answer {
    pub(super) fn canned(Canned { request_bytes, reply, closes }: &Canned) -> Self {
        let due_after_one_read = READ / *request_bytes + 1;
        let copies = due_after_one_read.min(WRITE / reply.len().max(1)).max(1);
        Answer::Canned {
            request_bytes: request_bytes.get(),
            reply_bytes: reply.len(),
            replies: reply.repeat(copies),
            closes: *closes,
        }
    }

    /// Reads once, and sends what is due. If that does not fit into the socket, the connection is
    /// closed: the null server needs no backpressure.
    #[inline]
    pub(super) fn serve(&self, connection: &mut Connection, bytes: &mut [u8]) -> Left {
        let read = match net::read(&connection.socket, bytes) {
            Ok(0) => return Left::Closed,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Left::Idle,
            Err(_) => return Left::Closed,
        };
        let Connection { socket, received } = connection;
        let stays_open = match self {
            Answer::Echo => is_written(socket, &bytes[..read]),
            Answer::Canned { request_bytes, reply_bytes, replies, closes } => {
                *received += read;
                let due = *received / request_bytes;
                *received %= request_bytes;
                match closes {
                    true if due > 0 => finish(socket, &replies[..*reply_bytes]),
                    true => true,
                    false => are_sent(socket, due * reply_bytes, replies),
                }
            }
        };
        match stays_open {
            false => Left::Closed,
            true if read == bytes.len() => Left::Unread,
            true => Left::Drained,
        }
    }
}

fn is_written(socket: &OwnedFd, bytes: &[u8]) -> bool {
    net::write(socket, bytes).is_ok_and(|written| written == bytes.len())
}

/// Sends `bytes` bytes, by repeating `replies`.
#[inline]
fn are_sent(socket: &OwnedFd, mut bytes: usize, replies: &[u8]) -> bool {
    while bytes > 0 {
        let some = &replies[..bytes.min(replies.len())];
        if !is_written(socket, some) {
            return false;
        }
        bytes -= some.len();
    }
    true
}

/// Sends the last reply together with the FIN, like other servers after `Connection: close`.
/// Returns false, because the connection is closed in any case.
fn finish(socket: &OwnedFd, reply: &[u8]) -> bool {
    if net::write_last(socket, reply).is_ok() {
        // A connection that is gone needs no shutdown.
        let _ = net::shutdown_write(socket);
    }
    false
}
