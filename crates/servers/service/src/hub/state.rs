//! What a connection of the hub is doing.

use regatta_proto::{
    http1::server,
    websocket::{CloseCode, Decoder},
};

/// What a connection does with its input.
#[derive(Debug)]
pub(super) enum State {
    Http(server::Decoder),
    Open {
        decoder: Box<Decoder>,
        /// Whether it is at `/echo`, and therefore in no room.
        echoes: bool,
        next_ticket: u64,
    },
    /// The client speaks the protocol of Centrifugo: another session goes on with what it has sent.
    HandedOver,
    /// The input has ended, but broadcasts or results are pending. A Close frame with this code
    /// follows them.
    Leaving {
        code: CloseCode,
        /// How long the client should wait after the close before it reconnects, if a drain closes it.
        reconnect_ms: Option<u16>,
    },
    /// A Close frame was sent. Input is ignored.
    Closed,
    /// There is no memory for it, and it has output to read before it would see a Close frame.
    Cut,
}

impl State {
    /// Whether a message is incomplete: part of it was consumed.
    pub(super) fn is_inside_message(&self) -> bool {
        matches!(self, State::Open { decoder, .. } if decoder.is_inside())
    }
}
