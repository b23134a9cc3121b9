//! What the null server sends for what it has read, on one connection.

use regatta_sys::net;
use std::{io, num::NonZeroUsize, os::fd::OwnedFd};

/// Bytes of one read.
pub(super) const READ: usize = 64 * 1024;
/// Most bytes of replies that one write sends, unless a single reply is longer.
const WRITE: usize = 1024 * 1024;

/// What the null server sends where the request is not the reply.
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

/// What is sent for what was read.
pub(super) enum Answer {
    Echo,
    Canned {
        request_bytes: usize,
        reply_bytes: usize,
        /// Copies of the reply, so that many are one slice and one write.
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
    /// There was nothing to read.
    Idle,
    /// The read took all there was.
    Drained,
    /// The read filled its buffer.
    Unread,
    /// It is over.
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

    /// Reads once, and sends what is due. What does not fit into the socket closes the connection:
    /// a floor needs no backpressure.
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

/// Sends `bytes` bytes of `replies`, over and over.
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

/// Sends the last reply and the end together, as other servers do after `Connection: close`. The
/// connection is over in any case.
fn finish(socket: &OwnedFd, reply: &[u8]) -> bool {
    if net::write_last(socket, reply).is_ok() {
        // A connection that is gone needs no end.
        let _ = net::finish_writing(socket);
    }
    false
}
