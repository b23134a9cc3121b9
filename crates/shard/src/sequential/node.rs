//! A client's own connection to a node.

use super::buffer::Buffer;
use crate::loss::Loss;
use regatta_proto::resp::{Found, Replies};
use regatta_service::style::sequential::is_timeout;
use std::io::{self, Read, Write};

/// Memory for requests that is kept for the next ones.
const KEPT: usize = 16 * 1024;

/// A client's own connection to a node.
#[derive(Debug)]
pub(super) struct Node<P> {
    pub(super) peer: P,
    /// Requests that are to be sent.
    pub(super) out: Vec<u8>,
    /// No request was written out since the last replies came.
    pub(super) is_quiet: bool,
    input: Buffer,
    replies: Replies,
}

impl<P: Read + Write> Node<P> {
    /// A connection that has just been opened.
    pub(super) fn new(peer: P) -> Self {
        Node {
            peer,
            out: Vec::new(),
            is_quiet: true,
            input: Buffer::default(),
            replies: Replies::default(),
        }
    }

    /// Sends the requests. Redis reads also while its replies are not read, so this does not wait for
    /// itself.
    pub(super) fn send(&mut self) -> Result<(), Loss> {
        let sent = self.peer.write_all(&self.out).map_err(|error| lost(&error));
        self.out.clear();
        self.out.shrink_to(KEPT);
        sent
    }

    /// Appends what has come of the next reply to `out`, waiting for more once at most. Returns whether
    /// the reply is whole. After [`Loss::TimedOut`] it may be called again.
    pub(super) fn piece(&mut self, out: &mut Vec<u8>) -> Result<bool, Loss> {
        loop {
            let input = self.input.rest();
            let found = self.replies.next(input);
            let Found { bytes, whole, push } =
                found.map_err(|malformed| Loss::Malformed(malformed.0))?;
            // Nobody asks for pushes; they answer nothing.
            if !push {
                out.extend_from_slice(&input[..bytes]);
            }
            self.input.take(bytes);
            if whole && !push {
                return Ok(true);
            }
            if !whole {
                break;
            }
        }
        self.read()?;
        Ok(false)
    }

    /// Waits until something of the next reply is there. After [`Loss::TimedOut`] it may be called again.
    pub(super) fn wait(&mut self) -> Result<(), Loss> {
        if self.input.rest().is_empty() { self.read() } else { Ok(()) }
    }

    fn read(&mut self) -> Result<(), Loss> {
        loop {
            match self.input.fill(|room| self.peer.read(room)) {
                Ok(0) => return Err(Loss::Closed),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(&error)),
            }
        }
    }

    /// Whether it has sent more than it was asked for.
    pub(super) fn has_more(&self) -> bool {
        !self.input.rest().is_empty()
    }

    /// The next reply, whole, of so many bytes at most.
    pub(super) fn reply(&mut self, most: usize) -> Result<Vec<u8>, Loss> {
        let mut reply = Vec::new();
        while !self.piece(&mut reply)? {
            if reply.len() > most {
                return Err(Loss::Malformed("a reply that is too long to be merged"));
            }
        }
        Ok(reply)
    }
}

fn lost(error: &io::Error) -> Loss {
    if is_timeout(error) { Loss::TimedOut } else { Loss::Closed }
}
