//! The bytes of messages. A payload is a JSON string of 40 digits. Every request has 73 bytes, so its
//! length is known before its content. Copies of broadcasts are read without parsing JSON if the server
//! formats them as the contract does.

use regatta_proto::websocket::Frame;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Bytes in a request.
const MESSAGE: usize = 73;
/// Bytes in its frame: two header bytes, a mask, and the message.
pub(super) const FRAME: usize = 2 + 4 + MESSAGE;
/// Bytes in a payload, with its quotes.
const PAYLOAD: usize = 2 + Payload::DIGITS;

const BROADCAST: &str = r#"{"type":"broadcast","payload":"#;
const RESULT: &str = r#"{"type":"broadcastResult","payload":"#;
const ECHO: &str = r#"{"type":"echo","payload":"#;

/// The identity of a message, in its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    /// The number of the connection that sent it.
    pub sender: u32,
    /// For a broadcast, its number among those of all members; for an echo, its number among those of
    /// its sender.
    pub id: u64,
    /// When it was to be sent, in nanoseconds of the load's clock.
    pub at: u64,
}

impl Payload {
    /// Number of digits.
    pub const DIGITS: usize = 8 + 16 + 16;

    /// Returns 8, 16 and 16 hexadecimal digits.
    pub fn digits(self) -> [u8; Self::DIGITS] {
        let mut digits = [0; Self::DIGITS];
        hex(u64::from(self.sender), &mut digits[..8]);
        hex(self.id, &mut digits[8..24]);
        hex(self.at, &mut digits[24..]);
        digits
    }

    /// Writes the digits between quotes.
    fn write(self, out: &mut [u8; PAYLOAD]) {
        out[0] = b'"';
        out[1..=Self::DIGITS].copy_from_slice(&self.digits());
        out[PAYLOAD - 1] = b'"';
    }

    /// Parses digits between quotes; `None` if they are not a payload.
    pub fn read(text: &[u8]) -> Option<Payload> {
        let digits = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        let (sender, rest) = digits.split_at_checked(8)?;
        let (id, at) = rest.split_at_checked(16)?;
        if at.len() != 16 {
            return None;
        }
        Some(Payload { sender: number(sender)? as u32, id: number(id)?, at: number(at)? })
    }
}

/// Writes the lowest hexadecimal digits of a number.
fn hex(mut number: u64, digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
    }
}

/// Parses lower-case hexadecimal digits only, so that each number has one form.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(value))
    })
}

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A message that this member sent for itself only.
    Echo(Payload),
    /// A message that a member sent to all.
    Broadcast(Payload),
    /// The result of a broadcast of this member: it is queued, for this number of members if the server
    /// reports it.
    Result(Payload, Option<u64>),
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
    /// Older servers of the article use the name `listenCount`.
    #[serde(rename = "listenerCount", alias = "listenCount")]
    listeners: Option<u64>,
}

impl Message {
    /// Parses a message; `None` if it is not one of these.
    #[inline]
    pub fn read(text: &[u8]) -> Option<Message> {
        if let Some(payload) = text.strip_prefix(BROADCAST.as_bytes())
            && let Some(payload) = payload.strip_suffix(b"}").and_then(Payload::read)
        {
            return Some(Message::Broadcast(payload));
        }
        // Accepts other whitespace and another order of keys.
        let raw: Raw<'_> = serde_json::from_slice(text).ok()?;
        let payload = Payload::read(raw.payload.get().as_bytes())?;
        match &*raw.kind {
            "echo" => Some(Message::Echo(payload)),
            "broadcast" => Some(Message::Broadcast(payload)),
            "broadcastResult" => Some(Message::Result(payload, raw.listeners)),
            _ => None,
        }
    }

    /// Returns its text in the format of the contract.
    pub fn text(self) -> String {
        let (begin, payload, listeners) = match self {
            Message::Echo(payload) => (ECHO, payload, None),
            Message::Broadcast(payload) => (BROADCAST, payload, None),
            Message::Result(payload, listeners) => (RESULT, payload, listeners),
        };
        let mut digits = [0; PAYLOAD];
        payload.write(&mut digits);
        let digits = str::from_utf8(&digits).expect("digits are ASCII");
        let listeners = listeners.map(|n| format!(",\"listenerCount\":{n}")).unwrap_or_default();
        format!("{begin}{digits}{listeners}}}")
    }
}

/// What a hub says of messages that did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// Messages are missing that would have come before this.
    Gap,
    /// The result of a broadcast that is not published.
    NotPublished(Payload),
    /// The result of a broadcast of which the hub does not know whether it is published.
    Unknown(Payload),
}

impl Notice {
    /// Parses a message; `None` if it is not one of these.
    #[cold]
    pub fn read(text: &[u8]) -> Option<Notice> {
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            payload: Option<&'a RawValue>,
            #[serde(borrow)]
            error: Option<Cow<'a, str>>,
            recovered: Option<bool>,
        }
        let raw: Raw<'_> = serde_json::from_slice(text).ok()?;
        if raw.kind == "gap" {
            return (raw.recovered == Some(false)).then_some(Notice::Gap);
        }
        let error = raw.error.filter(|_| raw.kind == "error")?;
        let payload = Payload::read(raw.payload?.get().as_bytes())?;
        match &*error {
            error if error.starts_with("not published: ") => Some(Notice::NotPublished(payload)),
            error if error.starts_with("unknown whether published: ") => {
                Some(Notice::Unknown(payload))
            }
            _ => None,
        }
    }
}

/// A request of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A message to be sent back to its sender. Also the first request of each member; through an
    /// adapter, it becomes a subscription.
    Echo(Payload),
    /// A message to be sent to all members.
    Broadcast(Payload),
}

impl Request {
    /// Appends its frame, of [`FRAME`] bytes.
    pub fn write(self, mask: [u8; 4], out: &mut Vec<u8>) {
        let (begin, payload) = match self {
            Request::Echo(payload) => (ECHO, payload),
            Request::Broadcast(payload) => (BROADCAST, payload),
        };
        let mut text = [b' '; MESSAGE];
        text[..begin.len()].copy_from_slice(begin.as_bytes());
        let mut digits = [0; PAYLOAD];
        payload.write(&mut digits);
        let rest = &mut text[begin.len()..];
        rest[..PAYLOAD].copy_from_slice(&digits);
        // An echo is shorter and is padded with spaces before its closing brace.
        text[MESSAGE - 1] = b'}';
        Frame::text(&text).write_masked(mask, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regatta_proto::websocket::{Decoder, Event, Role};

    fn payloads() -> impl Strategy<Value = Payload> {
        any::<(u32, u64, u64)>().prop_map(|(sender, id, at)| Payload { sender, id, at })
    }

    proptest! {
        #[test]
        fn requests_are_read_back_and_have_equal_length(payload in payloads(), mask: [u8; 4]) {
            for request in [Request::Echo(payload), Request::Broadcast(payload)] {
                let mut frame = Vec::new();
                request.write(mask, &mut frame);
                prop_assert_eq!(frame.len(), FRAME);
                let mut server = Decoder::new(Role::Server, 1 << 20);
                let (taken, event) = server.next(&mut frame).unwrap();
                prop_assert_eq!(taken, FRAME);
                let Some(Event::Text(text)) = event else { panic!("{event:?}") };
                let expected = match request {
                    Request::Echo(payload) => Message::Echo(payload),
                    Request::Broadcast(payload) => Message::Broadcast(payload),
                };
                prop_assert_eq!(Message::read(text.as_bytes()), Some(expected));
            }
        }

        #[test]
        fn reads_messages_with_other_whitespace_and_key_order(payload in payloads(), n: Option<u64>) {
            for message in [
                Message::Echo(payload),
                Message::Broadcast(payload),
                Message::Result(payload, n),
            ] {
                let text = message.text();
                prop_assert_eq!(Message::read(text.as_bytes()), Some(message));
                let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                let spaced = serde_json::to_string_pretty(&value).unwrap();
                prop_assert_eq!(Message::read(spaced.as_bytes()), Some(message));
                let old = text.replace("listenerCount", "listenCount");
                prop_assert_eq!(Message::read(old.as_bytes()), Some(message));
            }
        }

        #[test]
        fn a_changed_byte_never_gives_the_same_message(payload in payloads(), at in 0..73_usize, bit in 0..8_u8) {
            let message = Message::Broadcast(payload);
            let mut text = message.text().into_bytes();
            text[at] ^= 1 << bit;
            prop_assert_ne!(Message::read(&text), Some(message));
        }
    }

    #[test]
    fn rejects_invalid_messages() {
        for text in [
            "",
            "{}",
            r#"{"type":"broadcast","payload":"00"}"#,
            r#"{"type":"error","error":"x"}"#,
            r#"{"type":"broadcast","payload":"0000000A00000000000000010000000000000001"}"#,
            r#"{"type":"other","payload":"0000000a00000000000000010000000000000001"}"#,
        ] {
            assert_eq!(Message::read(text.as_bytes()), None, "{text}");
        }
    }
}
