//! One slow connection: sends what it may send at once, then a byte whenever it is told to, and reads
//! what the server has to say to that.

use super::{SlowPart, SlowPlan};
use crate::{
    clock::Nanos,
    socket::{self, Received},
};
use rustix::{fd::OwnedFd, io};
use std::net::SocketAddr;

/// What all slow connections send.
pub(super) struct Request {
    /// At once, with the first byte.
    at_once: Vec<u8>,
    /// A byte at a time; its last byte again and again.
    slowly: Vec<u8>,
}

impl Request {
    pub fn new(plan: &SlowPlan) -> Self {
        let SlowPlan { host, path, .. } = plan;
        match plan.part {
            // A field that never ends.
            SlowPart::Headers => Request {
                at_once: Vec::new(),
                slowly: format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nSlow: s").into(),
            },
            SlowPart::Body => {
                // More than it will come to send.
                let length = plan.longest.as_nanos() / plan.every.as_nanos() + 2;
                let head = format!(
                    "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain\r\n\
                     Content-Length: {length}\r\n\r\n"
                );
                Request { at_once: head.into(), slowly: b"s".into() }
            }
        }
    }
}

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
    /// As much of a reply as tells its status: `HTTP/1.1 408`.
    const STATUS: usize = 12;

    /// Begins to connect.
    pub fn open(target: SocketAddr, now: Nanos) -> io::Result<Drip> {
        let socket = socket::open(target, None, true)?;
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
    pub fn send(&mut self, request: &Request) -> Happened {
        let Request { at_once, slowly } = request;
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
                let room = Self::STATUS - self.said.len();
                self.said.extend_from_slice(&buffer[..n.min(room)]);
                Happened::Nothing
            }
            Ok(Received::Nothing) => Happened::Nothing,
            Ok(Received::End) | Err(_) => Happened::Gone,
        }
    }

    /// The status of the reply, if there was one.
    pub fn status(&self) -> Option<u16> {
        let said = std::str::from_utf8(&self.said).ok()?;
        said.strip_prefix("HTTP/1.")?.get(2..)?.parse().ok()
    }
}
