//! How the null server answers input on one connection.

use super::streams::{Input, Streams};
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
    /// Whether requests are those of HTTP/2, and the reply consists of its frames. Their streams are filled in, and
    /// `request_bytes` and `closes` have no effect.
    pub on_streams: bool,
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
    OnStreams(Streams),
}

pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    /// Bytes received since the last full length of a request.
    received: usize,
    /// For [`Answer::OnStreams`].
    input: Input,
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
        Connection { socket, received: 0, input: Input::default() }
    }
}

impl Answer {
    /// `None` if the reply should consist of frames and does not.
    pub(super) fn canned(canned: &Canned) -> Option<Self> {
        let Canned { request_bytes, reply, closes, on_streams } = canned;
        if *on_streams {
            return Streams::new(reply.clone()).map(Answer::OnStreams);
        }
        let due_after_one_read = READ / *request_bytes + 1;
        let copies = due_after_one_read.min(WRITE / reply.len().max(1)).max(1);
        Some(Answer::Canned {
            request_bytes: request_bytes.get(),
            reply_bytes: reply.len(),
            replies: reply.repeat(copies),
            closes: *closes,
        })
    }

    /// Reads once, and sends what is due. If that does not fit into the socket, the connection is
    /// closed: the null server needs no backpressure.
    #[inline]
    /// `out` is a buffer for what is sent.
    pub(super) fn serve(
        &self,
        connection: &mut Connection,
        bytes: &mut [u8],
        out: &mut Vec<u8>,
    ) -> Left {
        let read = match net::read(&connection.socket, bytes) {
            Ok(0) => return Left::Closed,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Left::Idle,
            Err(_) => return Left::Closed,
        };
        let Connection { socket, received, input } = connection;
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
            Answer::OnStreams(streams) => {
                out.clear();
                streams.take(input, &bytes[..read], out);
                out.is_empty() || is_written(socket, out)
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
