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
