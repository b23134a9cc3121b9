//! One slow connection: sends what it may send at once, then a byte whenever it is told to, and reads
//! what the server has to say to that.

use crate::{
    clock::Nanos,
    socket::{self, Received},
};
use regatta_script::Unending;
use rustix::{fd::OwnedFd, io};
use std::net::SocketAddr;

/// Whether a connection still stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// It does.
    Nothing,
    /// It does not.
    Gone,
}

/// A slow connection.
pub(super) struct Drip {
    socket: OwnedFd,
    opened_at: Nanos,
    sent: usize,
    /// The begin of what the server said.
    said: Vec<u8>,
}

impl Drip {
    /// Begins to connect.
    pub fn open(target: SocketAddr, now: Nanos) -> io::Result<Drip> {
        let socket = socket::open(target, None, true, None)?;
        Ok(Drip { socket, opened_at: now, sent: 0, said: Vec::new() })
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub fn opened_at(&self) -> Nanos {
        self.opened_at
    }

    /// Whether it could send anything.
    pub fn is_open(&self) -> bool {
        self.sent > 0
    }

    /// Sends a byte more, if the system takes it.
    pub fn send(&mut self, request: &Unending) -> Happened {
        let Unending { at_once, slowly, .. } = request;
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
                Happened::Nothing
            }
            // What the server said before it closed is still there.
            Err(_) => {
                self.read();
                Happened::Gone
            }
        }
    }

    /// Reads what the server says.
    pub fn read(&mut self) -> Happened {
        let mut buffer = [0; 4096];
        match socket::receive_some(&self.socket, &mut buffer) {
            Ok(Received::Bytes(n)) => {
                let room = Unending::SAID - self.said.len();
                self.said.extend_from_slice(&buffer[..n.min(room)]);
                Happened::Nothing
            }
            Ok(Received::Nothing) => Happened::Nothing,
            Ok(Received::End) | Err(_) => Happened::Gone,
        }
    }

    /// The status in what the server said, if there was one.
    pub fn status(&self, request: &Unending) -> Option<u16> {
        (request.status)(&self.said)
    }
}
