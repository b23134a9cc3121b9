//! Protocols of other hubs on top of WebSocket, so that the same load can drive them. Each member
//! subscribes to one channel, and a broadcast is a publication to it.
//!
//! An adapter writes requests and parses server messages. It does not decide whether a message was
//! owed.

mod action_cable;
mod centrifuge;
mod incoming;
mod nats;
mod phoenix;
mod text;

pub(super) use incoming::{Incoming, Next};

use super::message::Request;
use regatta_proto::websocket::Frame;
use serde::{Deserialize, Serialize};

/// A protocol on top of WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adapter {
    /// Phoenix channels, version 2 of their JSON serialization.
    Phoenix,
    /// Action Cable, `actioncable-v1-json`.
    ActionCable,
    /// Centrifuge and Centrifugo, in JSON.
    Centrifuge,
    /// NATS.
    Nats,
}

impl Adapter {
    const ALL: [Adapter; 4] =
        [Adapter::Phoenix, Adapter::ActionCable, Adapter::Centrifuge, Adapter::Nats];

    /// The names on the command line and in manifests.
    pub const NAMES: [&str; 4] = ["phoenix", "actioncable", "centrifuge", "nats"];

    /// Returns the adapter of this name.
    pub fn parse(name: &str) -> Option<Adapter> {
        let at = Adapter::NAMES.iter().position(|one| *one == name)?;
        Some(Adapter::ALL[at])
    }

    /// The default path, if the URL has none.
    pub(super) fn path(self) -> &'static str {
        match self {
            Adapter::Phoenix => phoenix::PATH,
            Adapter::ActionCable => action_cable::PATH,
            Adapter::Centrifuge => centrifuge::PATH,
            Adapter::Nats => nats::PATH,
        }
    }

    /// The subprotocol that is offered in the upgrade (RFC 6455, 1.9), and that the server must choose.
    pub(super) fn subprotocol(self) -> Option<&'static str> {
        (self == Adapter::ActionCable).then_some(action_cable::SUBPROTOCOL)
    }

    /// Whether the server sends a greeting, which the member waits for.
    pub(super) fn greets(self) -> bool {
        matches!(self, Adapter::ActionCable | Adapter::Nats)
    }

    /// Whether the sender's own copy is the only sign that a broadcast is done.
    pub(super) fn copy_is_result(self) -> bool {
        self == Adapter::ActionCable
    }

    /// Whether the sender's own copy arrives before the result on every server of this protocol.
    pub(super) fn copy_comes_first(self) -> bool {
        self != Adapter::Centrifuge
    }

    /// Whether messages are a byte stream in binary frames, split anywhere.
    pub(super) fn is_stream(self) -> bool {
        self == Adapter::Nats
    }

    /// The heartbeat of a member that has sent nothing for a while; `None` if the protocol needs none.
    pub(super) fn heartbeat(self) -> Option<&'static str> {
        (self == Adapter::Phoenix).then_some(phoenix::HEARTBEAT)
    }

    /// Returns the text of a request, the `number`th on its connection, counted from 1. All requests
    /// have the same length. `Request::Echo`, the first request of a connection, becomes a
    /// subscription.
    pub(super) fn text(self, request: Request, number: u64) -> String {
        String::from_utf8_lossy(self.compose(request, number).bytes()).into_owned()
    }

    /// Appends the frame of such a request.
    pub(super) fn write(self, request: Request, number: u64, mask: [u8; 4], out: &mut Vec<u8>) {
        self.frame(self.compose(request, number).bytes(), mask, out);
    }

    fn compose(self, request: Request, number: u64) -> text::Text {
        match self {
            Adapter::Phoenix => phoenix::write(request, number),
            Adapter::ActionCable => action_cable::write(request),
            Adapter::Centrifuge => centrifuge::write(request, number),
            Adapter::Nats => nats::write(request),
        }
    }

    /// Appends a frame.
    pub(super) fn frame(self, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
        let frame = if self.is_stream() { Frame::binary(payload) } else { Frame::text(payload) };
        frame.write_masked(mask, out);
    }

    /// The answer to a server's [ping](Incoming::Ping).
    pub(super) fn answer(self) -> &'static str {
        match self {
            Adapter::Nats => nats::PONG,
            _ => centrifuge::PONG,
        }
    }

    /// Parses the message at the front of a frame's payload, or of the stream.
    #[inline]
    pub(super) fn next(self, bytes: &[u8]) -> Next {
        match self {
            Adapter::Phoenix => Next::whole(phoenix::read(bytes), bytes),
            Adapter::ActionCable => Next::whole(action_cable::read(bytes), bytes),
            Adapter::Centrifuge => centrifuge::next(bytes),
            Adapter::Nats => nats::next(bytes),
        }
    }
}

#[cfg(test)]
mod tests;
