//! A text that is built in a fixed buffer, without heap allocation.

use super::super::message::Payload;
use std::io::Write;

/// Maximum number of bytes of a text.
const MOST: usize = 256;
/// Maximum number of digits of a number in it.
pub const DIGITS: usize = 10;

/// A text of at most 256 bytes.
#[derive(Debug)]
pub struct Text {
    bytes: [u8; MOST],
    length: usize,
}

impl Text {
    /// Creates a text that starts with `begin`.
    pub fn of(begin: &str) -> Text {
        Text { bytes: [b' '; MOST], length: 0 }.with(begin)
    }

    /// Appends a text.
    pub fn with(mut self, text: &str) -> Text {
        self.bytes[self.length..][..text.len()].copy_from_slice(text.as_bytes());
        self.length += text.len();
        self
    }

    /// Appends a number in decimal. There must be room for [`DIGITS`] digits.
    pub fn with_number(mut self, number: u64) -> Text {
        let mut room = &mut self.bytes[self.length..];
        let before = room.len();
        write!(room, "{number}").expect("there is room for a number");
        self.length += before - room.len();
        self
    }

    /// Appends the digits of a payload, without quotes.
    pub fn with_digits(mut self, payload: Payload) -> Text {
        let room = &mut self.bytes[self.length..][..Payload::DIGITS];
        room.copy_from_slice(&payload.digits());
        self.length += Payload::DIGITS;
        self
    }

    /// Pads with spaces and appends `end`, to a total of `length` bytes.
    pub fn ended(mut self, end: &str, length: usize) -> Text {
        debug_assert!(self.length + end.len() <= length, "it is longer than {length} bytes");
        self.length = self.length.max(length - end.len());
        self.with(end)
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
