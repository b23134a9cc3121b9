//! WebSocket, both ends, by RFC 6455, with permessage-deflate by RFC 7692.
//!
//! A connection begins as HTTP/1.1: [`handshake`] reads and writes the upgrade. From then on
//! [`Decoder`] turns bytes into messages, and [`Frame`] turns messages into bytes. The decoder
//! unmasks in place, and a message that lies whole in the input is lent from there, not copied. Only
//! one that arrives in pieces is put together in memory of its own.
//!
//! Both ends are strict. What a decoder reports depends on the bytes alone, never on how they were
//! cut, except that text which cannot become UTF-8 is refused as soon as the wrong byte is there.

mod close;
mod decoder;
mod deflate;
mod frame;
pub mod handshake;
mod mask;
mod utf8;

pub use close::{CloseCode, is_close_code};
pub use decoder::{Decoder, Event};
pub use deflate::{Deflate, DeflateSettings};
pub use frame::{Frame, Opcode};
pub use mask::apply as apply_mask;

/// Most bytes of the payload of a control frame (RFC 6455, 5.5).
pub const MAX_CONTROL: usize = 125;

/// Which end reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads what a client sends: masked frames.
    Server,
    /// Reads what a server sends: frames that are not masked.
    Client,
}

/// Why a connection fails (RFC 6455, 7.1.7). A Close frame with the code is sent, and nothing that
/// follows is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why} (close code {code})")]
pub struct Violation {
    /// The status code for the Close frame.
    pub code: CloseCode,
    /// The rule that was broken.
    pub why: &'static str,
}

impl Violation {
    pub(crate) fn protocol(why: &'static str) -> Self {
        Violation { code: CloseCode::PROTOCOL, why }
    }

    pub(crate) const NOT_TEXT: Violation =
        Violation { code: CloseCode::NOT_TEXT, why: "a text is not UTF-8" };

    pub(crate) const TOO_BIG: Violation =
        Violation { code: CloseCode::TOO_BIG, why: "a message is longer than the limit" };
}
