//! What has arrived of the messages of a stream. Nothing is kept of them.

use super::{
    super::{
        framing::{Fault, Framing},
        hex::in_hex,
    },
    expectation::MessageStream,
    template::Template,
};
use crate::{dialect::Streamed, time::Nanos};

/// The whole messages so far, and when they came.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Progress {
    messages: u64,
    first_at: Nanos,
    last_at: Nanos,
    longest_gap: Nanos,
}

impl Progress {
    /// Takes the next piece of the content, received at `now`. `framing` is the message that has partly
    /// arrived. An error says what is wrong with which message; the rest is then not checked.
    #[inline]
    pub fn take(
        &mut self,
        framing: &mut Framing,
        mut piece: &[u8],
        expected: &MessageStream,
        now: Nanos,
    ) -> Result<(), String> {
        while !piece.is_empty() {
            let number = self.messages + 1;
            if expected.messages.is_some_and(|messages| number > u64::from(messages)) {
                return Err(one_more(number, expected));
            }
            let (at, part, rest) =
                framing.take_front(piece).map_err(|fault| of_message(number, fault))?;
            if let Some(template) = &expected.template
                && let Some(length) = framing.length()
            {
                check(template, number, length, at, part)?;
            }
            if framing.is_complete() {
                *framing = Framing::default();
                self.complete(now);
            }
            piece = rest;
        }
        Ok(())
    }

    /// Another message is complete.
    #[inline]
    fn complete(&mut self, now: Nanos) {
        match self.messages {
            0 => self.first_at = now,
            _ => self.longest_gap = self.longest_gap.max(now.saturating_sub(self.last_at)),
        }
        self.last_at = now;
        self.messages += 1;
    }

    /// The stream has ended. Returns what is wrong with its messages.
    #[inline]
    pub fn end(&self, framing: &Framing, expected: &MessageStream) -> Option<String> {
        match framing.end() {
            Ok(()) | Err(Fault::Missing) => {}
            Err(fault) => return Some(of_message(self.messages + 1, fault)),
        }
        let is_short =
            expected.messages.is_some_and(|messages| self.messages < u64::from(messages));
        is_short.then(|| self.too_few(expected))
    }

    /// The messages so far.
    #[inline]
    pub fn streamed(&self) -> Streamed {
        Streamed {
            messages: self.messages,
            first_at: (self.messages > 0).then_some(self.first_at),
            longest_gap: (self.messages > 1).then_some(self.longest_gap),
        }
    }

    #[cold]
    fn too_few(&self, expected: &MessageStream) -> String {
        let missing = self.messages + 1;
        format!(
            "no message {missing}: the stream ended after {} of {}",
            self.messages,
            of(expected)
        )
    }
}

/// Checks a part of a message.
#[inline]
fn check(
    template: &Template,
    number: u64,
    length: u32,
    at: usize,
    part: &[u8],
) -> Result<(), String> {
    if u64::from(length) != template.length(number) {
        return Err(wrong_length(number, length, template.length(number)));
    }
    match template.difference(number, at, part) {
        None => Ok(()),
        Some(from) => Err(wrong_bytes(number, from, &part[from - at..])),
    }
}

#[cold]
fn of_message(number: u64, fault: Fault) -> String {
    format!("message {number}: {}", fault.in_words())
}

#[cold]
fn one_more(number: u64, expected: &MessageStream) -> String {
    format!("bytes of message {number}; expected {}", of(expected))
}

/// The expected number of messages, for people.
#[cold]
fn of(expected: &MessageStream) -> String {
    match expected.messages {
        None => "any number of messages".into(),
        Some(1) => "1 message".into(),
        Some(messages) => format!("{messages} messages"),
    }
}

#[cold]
fn wrong_length(number: u64, length: u32, expected: u64) -> String {
    format!("message {number}: a message of {length} bytes; expected {expected} bytes")
}

#[cold]
fn wrong_bytes(number: u64, from: usize, part: &[u8]) -> String {
    format!("message {number}: a message that differs from byte {from} on: {}", in_hex(part))
}
