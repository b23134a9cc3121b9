//! The last right reply of each kind, to be compared as memory with what comes next: most replies are
//! the same bytes again, but for a Date that changes once a second. What is not the same is read and
//! looked at like the first one, so a memo never decides that a reply is wrong.

use super::{
    check,
    due::Due,
    expected::{Content, Expected},
};
use crate::time::Nanos;

/// A reply that came whole and was right. An empty one knows nothing.
#[derive(Debug, Default)]
pub(super) struct Memo {
    /// What must come again: the reply, or its head where nobody looks at its content.
    bytes: Vec<u8>,
    /// Bytes of the reply in all; 0: there is none.
    length: usize,
    /// Bytes of its head, where the head tells the length of the content; else 0.
    head: usize,
    /// What its content was compared with.
    text: Vec<u8>,
    /// Until when it stays right.
    until: Nanos,
    /// The connection ends with it.
    ends: bool,
    /// Its status.
    status: u16,
}

/// What is told of a reply that was right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Right<'a> {
    /// The reply, as it came.
    pub bytes: &'a [u8],
    /// See [`Memo::head`].
    pub head: usize,
    pub text: &'a [u8],
    pub until: Nanos,
    pub ends: bool,
    pub status: u16,
}

impl Memo {
    /// If `input` begins with a reply that is known to be right: its length, and whether the
    /// connection ends with it.
    #[inline]
    pub fn recognise(&mut self, input: &[u8], due: Due<'_>) -> Option<(usize, bool)> {
        if input.len() < self.length || self.length == 0 {
            return None;
        }
        if input.starts_with(&self.bytes) && due.now < self.until && self.is_for(due.text) {
            return Some((self.length, self.ends));
        }
        self.recognise_head(input, due)
    }

    /// Whether its content was compared with `text`. Comparing nothing with nothing is not left to
    /// `memcmp`: an empty vector points nowhere, and with masked loads from there (AVX-512) that costs
    /// more than a hundred nanoseconds.
    #[inline]
    fn is_for(&self, text: &[u8]) -> bool {
        self.text.len() == text.len() && (text.is_empty() || self.text == text)
    }

    /// The second chance: the same head, and so a content of the same length; only that is looked at.
    fn recognise_head(&mut self, input: &[u8], due: Due<'_>) -> Option<(usize, bool)> {
        if self.head == 0 || input[..self.head] != self.bytes[..self.head] {
            return None;
        }
        let content = &input[self.head..self.length];
        self.until = check::content(due, content)?;
        if !matches!(due.expected.content, Content::Any) {
            self.bytes.truncate(self.head);
            self.bytes.extend_from_slice(content);
        }
        self.text.clear();
        self.text.extend_from_slice(due.text);
        Some((self.length, self.ends))
    }

    /// This one was right.
    pub fn learn(&mut self, right: Right<'_>, expected: &Expected) {
        let unseen = matches!(expected.content, Content::Any) && right.head > 0;
        let bytes = if unseen { &right.bytes[..right.head] } else { right.bytes };
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.text.clear();
        self.text.extend_from_slice(right.text);
        // A head that is to be another for each request says nothing of the next one.
        let head = if expected.given_fields() > 0 { 0 } else { right.head };
        (self.length, self.head) = (right.bytes.len(), head);
        (self.until, self.ends, self.status) = (right.until, right.ends, right.status);
    }

    /// The status of the reply that was recognised.
    #[inline]
    pub fn status(&self) -> u16 {
        self.status
    }
}

#[cfg(test)]
mod tests;
