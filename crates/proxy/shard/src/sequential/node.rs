//! A client's own connection to a node.

use super::buffer::Buffer;
use crate::node::loss_reason::Loss;
use regatta_proto::resp::{Found, Replies};
use regatta_service::style::sequential::is_timeout;
use std::io::{self, Read, Write};

/// Memory of the request buffer that is kept while it is empty, in bytes.
const KEPT: usize = 16 * 1024;

/// A client's own connection to a node.
#[derive(Debug)]
pub(super) struct Node<P> {
    pub(super) peer: P,
    /// Requests that are not yet sent.
    pub(super) out: Vec<u8>,
    /// No request has been added since the last replies arrived.
    pub(super) is_quiet: bool,
    /// Its number at the node (CLIENT ID). The inner option is `None` if the node refused to tell it.
    pub(super) number: Option<Option<u64>>,
    input: Buffer,
    replies: Replies,
}

impl<P: Read + Write> Node<P> {
    /// Wraps a connection that was just opened.
    pub(super) fn new(peer: P) -> Self {
        Node {
            peer,
            out: Vec::new(),
            is_quiet: true,
            number: None,
            input: Buffer::default(),
            replies: Replies::default(),
        }
    }

    /// Sends the requests. Redis keeps reading while its replies are unread, so this cannot
    /// deadlock.
    pub(super) fn send(&mut self) -> Result<(), Loss> {
        let sent = self.peer.write_all(&self.out).map_err(|error| lost(&error));
        self.out.clear();
        self.out.shrink_to(KEPT);
        sent
    }

    /// Appends to `out` what has arrived of the next reply, and waits for more at most once.
    /// Returns whether the reply is complete. May be called again after [`Loss::TimedOut`].
    pub(super) fn piece(&mut self, out: &mut Vec<u8>) -> Result<bool, Loss> {
        loop {
            let input = self.input.rest();
            let found = self.replies.next(input);
            let Found { bytes, whole, push } =
                found.map_err(|malformed| Loss::Malformed(malformed.0))?;
            // Pushes are unsolicited, and are not replies to any request.
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

    /// Waits until some of the next reply has arrived. May be called again after
    /// [`Loss::TimedOut`].
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

    /// Returns whether the node has sent more than was requested.
    pub(super) fn has_more(&self) -> bool {
        !self.input.rest().is_empty()
    }

    /// Returns the next reply, complete. Its limit is `most` bytes.
    pub(super) fn reply(&mut self, most: usize) -> Result<Vec<u8>, Loss> {
        let mut reply = Vec::new();
        while !self.piece(&mut reply)? {
            if reply.len() > most {
                return Err(Loss::Malformed("a reply too long to be merged"));
            }
        }
        Ok(reply)
    }
}

fn lost(error: &io::Error) -> Loss {
    if is_timeout(error) { Loss::TimedOut } else { Loss::Closed }
}
