//! A message that has partly arrived.

use super::framing::Framing;

/// How much of it has arrived, and its bytes if they are needed.
#[derive(Debug, Default)]
pub(super) struct Arriving {
    pub framing: Framing,
    /// What has arrived of a message that is compared by its fields, unless it came in one piece. The buffer is
    /// kept for the next message, and what is expected bounds it.
    pub content: Vec<u8>,
}

impl Arriving {
    /// Takes the next part of a message of `length` bytes. Returns the message if that was the last part.
    #[inline]
    pub fn whole<'m>(&'m mut self, part: &'m [u8], length: usize) -> Option<&'m [u8]> {
        if part.len() == length {
            return Some(part);
        }
        self.content.extend_from_slice(part);
        (self.content.len() >= length).then_some(&self.content)
    }

    /// Another message follows.
    #[inline]
    pub fn clear(&mut self) {
        self.framing = Framing::default();
        self.content.clear();
    }
}

/// Why a message of this length cannot be the expected one, which has at most `longest` bytes in any encoding.
#[cold]
pub(super) fn too_long(length: usize, longest: usize) -> String {
    format!(
        "a message of {length} bytes; the expected one has at most {longest}, however it is encoded"
    )
}
