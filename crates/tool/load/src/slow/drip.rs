//! One slow connection: sends the start of a request at once, then one byte per call, and reads the
//! server's replies.

use crate::{
    clock::Nanos,
    sockets::socket::{self, Received},
};
use regatta_script::SlowRequest;
use rustix::{fd::OwnedFd, io};
use std::net::SocketAddr;

/// Whether a connection is still open after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Open,
    Gone,
}

/// A slow connection.
pub(super) struct Drip {
    socket: OwnedFd,
    opened_at: Nanos,
    sent: usize,
    /// The first bytes that the server sent.
    received: Vec<u8>,
}

impl Drip {
    /// Starts to connect.
    pub fn open(target: SocketAddr, now: Nanos) -> io::Result<Drip> {
        let socket = socket::open(target, None, true, None)?;
        Ok(Drip { socket, opened_at: now, sent: 0, received: Vec::new() })
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub fn opened_at(&self) -> Nanos {
        self.opened_at
    }

    /// Whether the connection has sent any byte.
    pub fn is_open(&self) -> bool {
        self.sent > 0
    }

    /// Sends the start of the request, or the next byte of it, if the socket has room.
    pub fn send(&mut self, request: &SlowRequest) -> After {
        let SlowRequest { at_once, slowly, .. } = request;
        let sent = match self.sent.checked_sub(at_once.len()) {
            None => socket::send_some(&self.socket, &at_once[self.sent..]),
            Some(i) => {
                let i = i.min(slowly.len() - 1);
                socket::send_some(&self.socket, &slowly[i..=i])
            }
        };
        match sent {
            Ok(n) => {
                self.sent += n;
                After::Open
            }
            // Bytes that the server sent before it closed can still be read.
            Err(_) => {
                self.read();
                After::Gone
            }
        }
    }

    /// Reads once, and keeps the first bytes.
    pub fn read(&mut self) -> After {
        let mut buffer = [0; 4096];
        match socket::receive_some(&self.socket, &mut buffer) {
            Ok(Received::Bytes(n)) => {
                let room = SlowRequest::SAID - self.received.len();
                self.received.extend_from_slice(&buffer[..n.min(room)]);
                After::Open
            }
            Ok(Received::Nothing) => After::Open,
            Ok(Received::End) | Err(_) => After::Gone,
        }
    }

    /// The status that the server sent, if any.
    pub fn status(&self, request: &SlowRequest) -> Option<u16> {
        (request.status)(&self.received)
    }
}
