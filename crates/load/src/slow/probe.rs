//! One new client beside the slow ones: connects, asks, and wants a whole reply with a status from
//! 200 to 299.

use super::SlowPlan;
use crate::{
    clock::Nanos,
    socket::{self, Received},
};
use regatta_proto::http1::{
    Method,
    client::{Ask, Decoder, Event},
};
use rustix::{fd::OwnedFd, io};

/// A new client.
pub(super) struct Probe {
    socket: OwnedFd,
    began: Nanos,
    gives_up_at: Nanos,
    request: Vec<u8>,
    sent: usize,
    /// What came and is not read yet.
    came: Vec<u8>,
    decoder: Decoder,
}

impl Probe {
    /// The longest reply that is read.
    const LONGEST: usize = 16 << 20;

    /// Begins to connect.
    pub fn open(plan: &SlowPlan, now: Nanos) -> io::Result<Probe> {
        let mut request = Vec::new();
        let fields = &[("Connection", "close")];
        let (target, host) = (plan.path.as_str(), plan.host.as_str());
        Ask { method: Method::Get, target, host, fields, content: None }.write(&mut request);
        Ok(Probe {
            socket: socket::open(plan.target, None, true)?,
            began: now,
            gives_up_at: now + plan.timeout.as_nanos() as Nanos,
            request,
            sent: 0,
            came: Vec::new(),
            decoder: Decoder::default(),
        })
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub fn began(&self) -> Nanos {
        self.began
    }

    pub fn gives_up_at(&self) -> Nanos {
        self.gives_up_at
    }

    /// Whether the whole request is sent.
    pub fn has_asked(&self) -> bool {
        self.sent == self.request.len()
    }

    /// Does what can be done now. What became of it, once that is known.
    pub fn go_on(&mut self) -> Option<Result<(), String>> {
        match self.exchange() {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(because) => Some(Err(because)),
        }
    }

    fn exchange(&mut self) -> Result<bool, String> {
        if !self.has_asked() {
            let sent = socket::send_some(&self.socket, &self.request[self.sent..]);
            self.sent += sent.map_err(|error| format!("it cannot ask: {error}"))?;
        }
        let mut buffer = [0; 16 * 1024];
        match socket::receive_some(&self.socket, &mut buffer) {
            Ok(Received::Nothing) => Ok(false),
            Ok(Received::Bytes(n)) => {
                self.came.extend_from_slice(&buffer[..n]);
                self.read()
            }
            Ok(Received::End) => match self.decoder.end_of_input() {
                Ok(Some(_)) => Ok(true),
                Ok(None) => Err("the server closed the connection without a reply".into()),
                Err(malformed) => Err(malformed.to_string()),
            },
            Err(error) => Err(format!("it cannot read: {error}")),
        }
    }

    /// Whether the reply is whole.
    fn read(&mut self) -> Result<bool, String> {
        let mut input = self.came.as_slice();
        let mut whole = false;
        loop {
            match self.decoder.next(&mut input, Method::Get).map_err(|error| error.to_string())? {
                Some(Event::Switched(_)) => {
                    return Err("expected a status from 200 to 299, got 101".into());
                }
                Some(Event::Head(head)) if !(200..300).contains(&head.status) => {
                    return Err(format!("expected a status from 200 to 299, got {}", head.status));
                }
                Some(Event::Head(_) | Event::Content(_)) => {}
                Some(Event::End { .. }) => whole = true,
                None => break,
            }
            if whole {
                break;
            }
        }
        let read = self.came.len() - input.len();
        self.came.drain(..read);
        if self.came.len() > Self::LONGEST {
            return Err(format!("the reply is longer than {} bytes", Self::LONGEST));
        }
        Ok(whole)
    }
}
