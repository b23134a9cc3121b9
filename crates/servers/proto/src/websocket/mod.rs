//! WebSocket, client and server, by RFC 6455, with permessage-deflate by RFC 7692.
//!
//! A connection starts as HTTP/1.1: [`handshake`] reads and writes the upgrade. Then [`Decoder`]
//! turns bytes into messages, and [`Frame`] turns messages into bytes. The decoder unmasks in
//! place. A message that is complete in the input, in one frame and not compressed, is borrowed from
//! it, not copied. Other messages are assembled in a separate buffer.
//!
//! Both sides are strict. The events of a decoder depend only on the bytes, never on how they were
//! split, with one exception: invalid UTF-8 is refused as soon as the wrong byte arrives.

mod close;
mod close_code;
mod decoder;
mod deflate;
mod frame;
pub mod handshake;
mod mask;
mod utf8;
mod violation;

pub use close_code::{CloseCode, is_close_code};
pub use decoder::{Decoder, Event};
pub use deflate::{Deflate, DeflateSettings};
pub use frame::{Frame, MAX_CONTROL, Opcode, Role};
pub use mask::apply as apply_mask;
pub use violation::Violation;
