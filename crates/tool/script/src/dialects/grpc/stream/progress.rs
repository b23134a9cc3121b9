//! What has arrived of the messages of a stream. Nothing is kept of them.

use super::{
    super::{
        arriving::{Arriving, too_long},
        framing::{Fault, Framing},
        hex::in_hex,
        protobuf::Numbered,
        template::Template,
    },
    expectation::{Each, StreamExpectation},
};
use crate::{dialect::Streamed, time::Nanos};

/// The whole messages so far, and when they came.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Progress {
    messages: u64,
    first_at: Nanos,
    last_at: Nanos,
    longest_gap: Nanos,
    /// The message that has partly arrived has other bytes than the load writes, so its fields are compared.
    by_fields: bool,
}

impl Progress {
    /// Takes the next piece of the content, received at `now`. `message` is the one that has partly arrived. An
    /// error says what is wrong with which message; the rest is then not checked.
    #[inline]
    pub fn take(
        &mut self,
        message: &mut Arriving,
        mut piece: &[u8],
        expected: &StreamExpectation,
        now: Nanos,
    ) -> Result<(), String> {
        while !piece.is_empty() {
            let number = self.messages + 1;
            if expected.messages().is_some_and(|messages| number > u64::from(messages)) {
                return Err(one_more(number, expected));
            }
            let (at, part, rest) =
                message.framing.take_front(piece).map_err(|fault| of_message(number, fault))?;
            if let Some(length) = message.framing.length() {
                match &expected.each {
                    Each::Any => {}
                    Each::Bytes(template) => check(template, number, length, at, part)?,
                    Each::Fields(expected) => self.check_fields(message, at, part, expected)?,
                }
            }
            if message.framing.is_complete() {
                message.clear();
                self.complete(now);
            }
            piece = rest;
        }
        Ok(())
    }

    /// Checks a part of a message that is compared by its fields. As long as its bytes are those that the load
    /// writes, nothing is kept of it.
    #[inline]
    fn check_fields(
        &mut self,
        message: &mut Arriving,
        at: usize,
        part: &[u8],
        expected: &Numbered,
    ) -> Result<(), String> {
        let (number, template) = (self.messages + 1, expected.template());
        let length = message.framing.length().unwrap_or_default();
        if !self.by_fields {
            let is_same = u64::from(length) == template.length(number)
                && template.difference(number, at, part).is_none();
            if is_same && expected.is_in_range(number) {
                return Ok(());
            }
            if length as usize > expected.longest() {
                return Err(format!(
                    "message {number}: {}",
                    too_long(length as usize, expected.longest())
                ));
            }
            self.by_fields = true;
            template.write(number, at, &mut message.content);
        }
        let Some(whole) = message.whole(part, length as usize) else { return Ok(()) };
        match expected.fault(number, whole) {
            None => Ok(()),
            Some(why) => Err(format!("message {number}: {why}")),
        }
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
        self.by_fields = false;
    }

    /// The stream has ended. Returns what is wrong with its messages.
    #[inline]
    pub fn end(&self, framing: &Framing, expected: &StreamExpectation) -> Option<String> {
        match framing.end() {
            Ok(()) | Err(Fault::Missing) => {}
            Err(fault) => return Some(of_message(self.messages + 1, fault)),
        }
        let is_short =
            expected.messages().is_some_and(|messages| self.messages < u64::from(messages));
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
    fn too_few(&self, expected: &StreamExpectation) -> String {
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
fn one_more(number: u64, expected: &StreamExpectation) -> String {
    format!("bytes of message {number}; expected {}", of(expected))
}

/// The expected number of messages, for people.
#[cold]
fn of(expected: &StreamExpectation) -> String {
    match expected.messages() {
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
