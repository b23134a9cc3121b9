//! The last correct reply of each kind, to be compared as memory with the next bytes. Most replies have
//! the same bytes again, except for a Date that changes once a second. If only the content differs and
//! is correct, the reply is recognised too. Any other reply is parsed and checked like the first one, so
//! a memo never decides that a reply is wrong.

use super::{
    check,
    criteria::Criteria,
    expected::{Content, Expected},
};
use crate::time::Nanos;

/// A complete, correct reply; or none, if it is empty.
#[derive(Debug, Default)]
pub(super) struct Memo {
    /// Bytes that must match: the whole reply, or its head if the content is not checked.
    bytes: Vec<u8>,
    /// Length of the whole reply in bytes; 0 if there is none.
    length: usize,
    /// Length of its head in bytes if the head determines the length of the content and has no values
    /// given per request; otherwise 0.
    head: usize,
    /// The text that its content was compared with.
    text: Vec<u8>,
    /// Until when it stays correct.
    until: Nanos,
    /// Whether the connection closes after it.
    ends: bool,
    /// Its status.
    status: u16,
}

/// A correct reply to remember.
#[derive(Clone, Copy, Debug)]
pub(super) struct Right<'a> {
    /// The bytes of the reply.
    pub bytes: &'a [u8],
    /// Length of its head in bytes if the head determines the length of the content; otherwise 0.
    pub head: usize,
    pub text: &'a [u8],
    pub until: Nanos,
    pub ends: bool,
    pub status: u16,
}

impl Memo {
    /// If `input` starts with a reply that is known to be correct, returns its length and whether the
    /// connection closes after it.
    #[inline]
    pub fn recognise(&mut self, input: &[u8], criteria: Criteria<'_>) -> Option<(usize, bool)> {
        if input.len() < self.length || self.length == 0 {
            return None;
        }
        if input.starts_with(&self.bytes) && criteria.now < self.until && self.is_for(criteria.text)
        {
            return Some((self.length, self.ends));
        }
        self.recognise_head(input, criteria)
    }

    /// Whether its content was compared with `text`. Two empty texts are not compared with `memcmp`:
    /// the pointer of an empty vector is dangling, and masked loads from it (AVX-512) cost more than a
    /// hundred nanoseconds.
    #[inline]
    fn is_for(&self, text: &[u8]) -> bool {
        self.text.len() == text.len() && (text.is_empty() || self.text == text)
    }

    /// Recognises a reply with the same head, and therefore content of the same length. Checks only the
    /// content.
    fn recognise_head(&mut self, input: &[u8], criteria: Criteria<'_>) -> Option<(usize, bool)> {
        if self.head == 0 || input[..self.head] != self.bytes[..self.head] {
            return None;
        }
        let content = &input[self.head..self.length];
        self.until = check::content(criteria, content)?;
        if !matches!(criteria.expected.content, Content::Any) {
            self.bytes.truncate(self.head);
            self.bytes.extend_from_slice(content);
        }
        self.text.clear();
        self.text.extend_from_slice(criteria.text);
        Some((self.length, self.ends))
    }

    /// Remembers a correct reply.
    pub fn learn(&mut self, right: Right<'_>, expected: &Expected) {
        let unseen = matches!(expected.content, Content::Any) && right.head > 0;
        let bytes = if unseen { &right.bytes[..right.head] } else { right.bytes };
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.text.clear();
        self.text.extend_from_slice(right.text);
        // A head with values given per request cannot be reused for the next request.
        let head = if expected.given_fields() > 0 { 0 } else { right.head };
        (self.length, self.head) = (right.bytes.len(), head);
        (self.until, self.ends, self.status) = (right.until, right.ends, right.status);
    }

    /// The status of the remembered reply.
    #[inline]
    pub fn status(&self) -> u16 {
        self.status
    }
}

#[cfg(test)]
mod tests;
