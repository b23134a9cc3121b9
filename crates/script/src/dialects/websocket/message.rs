//! The bytes of messages. A payload is a JSON string of 40 digits, and a message of ours always 73 bytes:
//! what is sent has the same length whatever it is, and what comes is compared without parsing JSON where
//! the server writes as the contract does.

use regatta_proto::websocket::Frame;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Bytes of a message that is sent.
const MESSAGE: usize = 73;
/// Bytes of its frame: two, a mask, and the message.
pub(super) const FRAME: usize = 2 + 4 + MESSAGE;
/// Bytes of a payload, with its quotes.
const PAYLOAD: usize = 2 + Payload::DIGITS;

const BROADCAST: &str = r#"{"type":"broadcast","payload":"#;
const RESULT: &str = r#"{"type":"broadcastResult","payload":"#;
const ECHO: &str = r#"{"type":"echo","payload":"#;

/// What a message says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    /// The number of the connection that sent it.
    pub sender: u32,
    /// Of a broadcast, its number among those of all members; of an echo, among those of its sender.
    pub id: u64,
    /// When it was to be sent, in nanoseconds of the load's clock.
    pub at: u64,
}

impl Payload {
    /// How many it has.
    pub const DIGITS: usize = 8 + 16 + 16;

    /// 8, 16 and 16 hexadecimal digits.
    pub fn digits(self) -> [u8; Self::DIGITS] {
        let mut digits = [0; Self::DIGITS];
        hex(u64::from(self.sender), &mut digits[..8]);
        hex(self.id, &mut digits[8..24]);
        hex(self.at, &mut digits[24..]);
        digits
    }

    /// The digits between quotes.
    fn write(self, out: &mut [u8; PAYLOAD]) {
        out[0] = b'"';
        out[1..=Self::DIGITS].copy_from_slice(&self.digits());
        out[PAYLOAD - 1] = b'"';
    }

    /// Of the digits between quotes; `None`: no payload is written so.
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

/// The lowest digits of a number.
fn hex(mut number: u64, digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
    }
}

/// Lower case only, so that each number has one form.
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

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// What this member has sent, for itself alone.
    Echo(Payload),
    /// What a member has sent to all.
    Broadcast(Payload),
    /// A broadcast of this member is queued, for so many members if the server says so.
    Result(Payload, Option<u64>),
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
    /// Older servers of the article call it `listenCount`.
    #[serde(rename = "listenerCount", alias = "listenCount")]
    listeners: Option<u64>,
}

impl Message {
    /// `None`: nobody asked for anything like it.
    #[inline]
    pub fn read(text: &[u8]) -> Option<Message> {
        if let Some(payload) = text.strip_prefix(BROADCAST.as_bytes())
            && let Some(payload) = payload.strip_suffix(b"}").and_then(Payload::read)
        {
            return Some(Message::Broadcast(payload));
        }
        // Other spaces, another order of keys.
        let raw: Raw<'_> = serde_json::from_slice(text).ok()?;
        let payload = Payload::read(raw.payload.get().as_bytes())?;
        match &*raw.kind {
            "echo" => Some(Message::Echo(payload)),
            "broadcast" => Some(Message::Broadcast(payload)),
            "broadcastResult" => Some(Message::Result(payload, raw.listeners)),
            _ => None,
        }
    }

    /// Its text, as the contract has it.
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

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// To be sent back. Through an adapter: to subscribe, which is the first request of each member, too.
    Echo(Payload),
    /// To be sent to all.
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
        // An echo is shorter: spaces stand before its last brace.
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
        fn what_is_sent_is_read_back_and_always_as_long(payload in payloads(), mask: [u8; 4]) {
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
        fn each_message_is_read_however_it_is_written(payload in payloads(), n: Option<u64>) {
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
        fn another_byte_is_another_message_or_none(payload in payloads(), at in 0..73_usize, bit in 0..8_u8) {
            let message = Message::Broadcast(payload);
            let mut text = message.text().into_bytes();
            text[at] ^= 1 << bit;
            prop_assert_ne!(Message::read(&text), Some(message));
        }
    }

    #[test]
    fn what_nobody_asked_for_is_no_message() {
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
