//! The messages of members: JSON objects with a `type` and a `payload`.

use super::history::Position;
use regatta_proto::websocket::Frame;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::{borrow::Cow, sync::Arc};

/// A member's request. The payload is the JSON value exactly as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Sends the payload back to the sender.
    Echo(&'a str),
    /// Sends the payload to all members of the room.
    Broadcast(&'a str),
}

/// Why a message is refused. The connection stays open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedMessage {
    /// Not a JSON object with a string `type`, or one with two `type` or two `payload`.
    #[error("expected a JSON object with \"type\" and \"payload\": {0}")]
    NotJson(String),
    /// The type is neither `echo` nor `broadcast`.
    #[error("unknown type {0:?}; expected \"echo\" or \"broadcast\"")]
    UnknownType(String),
    /// The payload is missing.
    #[error("the message has no \"payload\"")]
    NoPayload,
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "present")]
    payload: Option<&'a RawValue>,
}

/// A payload of `null` counts as present.
pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Message<'a> {
    /// Parses a text message. Other keys are ignored.
    ///
    /// # Errors
    /// Returns the reason, which is sent to the sender.
    pub fn read(text: &'a str) -> Result<Self, MalformedMessage> {
        // serde would also accept an array of the two values.
        if text.trim_start().starts_with('[') {
            return Err(MalformedMessage::NotJson("this is an array".to_owned()));
        }
        let raw: Raw<'a> = serde_json::from_str(text)
            .map_err(|error| MalformedMessage::NotJson(error.to_string()))?;
        let payload = || raw.payload.map(RawValue::get).ok_or(MalformedMessage::NoPayload);
        match &*raw.kind {
            "echo" => payload().map(Message::Echo),
            "broadcast" => payload().map(Message::Broadcast),
            other => Err(MalformedMessage::UnknownType(other.to_owned())),
        }
    }
}

impl MalformedMessage {
    /// Appends the error frame for the sender.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_error(&self.to_string(), out);
    }
}

/// Appends the frame of an error.
pub fn write_error(why: &str, out: &mut Vec<u8>) {
    frame(&[br#"{"type":"error","error":"#, json(&why).as_bytes(), b"}"], out);
}

/// Appends the frame of an echo.
pub fn write_echo(payload: &str, out: &mut Vec<u8>) {
    frame(&[br#"{"type":"echo","payload":"#, payload.as_bytes(), b"}"], out);
}

/// Appends the frame of a broadcast. Returns the length of its header.
pub fn write_broadcast(payload: &str, out: &mut Vec<u8>) -> usize {
    frame(&[br#"{"type":"broadcast","payload":"#, payload.as_bytes(), b"}"], out)
}

/// Appends the frame of a broadcast whose message is kept, with its number. Returns the length of its header.
pub fn write_kept(payload: &str, offset: u64, out: &mut Vec<u8>) -> usize {
    let mut digits = itoa::Buffer::new();
    let offset = digits.format(offset).as_bytes();
    frame(&[KEPT, payload.as_bytes(), OFFSET, offset, b"}"], out)
}

/// The start of the text of a kept message, and what follows its payload.
const KEPT: &[u8] = br#"{"type":"broadcast","payload":"#;
const OFFSET: &[u8] = br#","offset":"#;

/// Returns the payload in the text of [`write_kept`] with this offset, or of [`write_broadcast`].
pub fn payload_of(text: &[u8], offset: Option<u64>) -> &[u8] {
    let mut digits = itoa::Buffer::new();
    let behind = offset.map_or(0, |offset| OFFSET.len() + digits.format(offset).len());
    &text[KEPT.len()..text.len() - behind - 1]
}

/// Appends the frame that says which position a member has: what follows is behind it. `is_recovered`: it has asked for
/// what is behind a position, and gets all of it.
pub fn write_position(position: Position, is_recovered: bool, out: &mut Vec<u8>) {
    let Position { epoch, offset } = position;
    let recovered = if is_recovered { r#","recovered":true"# } else { "" };
    let text = format!(r#"{{"type":"position","epoch":"{epoch}","offset":{offset}{recovered}}}"#);
    frame(&[text.as_bytes()], out);
}

/// Appends the frame that says that a member misses messages up to this position; `None`: its room has no history.
pub fn write_gap(position: Option<Position>, out: &mut Vec<u8>) {
    let position = position.map_or(String::new(), |Position { epoch, offset }| {
        format!(r#","epoch":"{epoch}","offset":{offset}"#)
    });
    let text = format!(r#"{{"type":"gap","recovered":false{position}}}"#);
    frame(&[text.as_bytes()], out);
}

/// Appends the frame with the number of members that a broadcast was queued for.
pub fn write_result(payload: &str, members: u32, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let members = digits.format(members).as_bytes();
    let start = br#"{"type":"broadcastResult","payload":"#;
    frame(&[start, payload.as_bytes(), br#","listenerCount":"#, members, b"}"], out);
}

/// Appends the frame with the outcome of a broadcast that was sent to the broker. `error`: why it is not published, or may
/// not be.
pub fn write_remote(payload: &str, error: Option<&str>, out: &mut Vec<u8>) {
    let Some(error) = error else {
        frame(&[br#"{"type":"broadcastResult","payload":"#, payload.as_bytes(), b"}"], out);
        return;
    };
    let error = json(&error);
    frame(
        &[
            br#"{"type":"error","error":"#,
            error.as_bytes(),
            br#","payload":"#,
            payload.as_bytes(),
            b"}",
        ],
        out,
    );
}

/// Appends the frame that asks a client to reconnect this long after its connection is closed.
pub fn write_reconnect(after_ms: u16, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let after_ms = digits.format(after_ms).as_bytes();
    frame(&[br#"{"type":"reconnect","after_ms":"#, after_ms, b"}"], out);
}

/// What happened to a member of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Joined,
    Left,
}

/// A note for other processes: a member joined or left a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub change: Change,
    /// Unique among the members of all processes.
    pub number: usize,
    pub name: Option<Arc<str>>,
    /// Who it is, in JSON, if members of this process may ask.
    pub info: Option<Arc<str>>,
}

/// Appends the frame that announces that a member joined or left, with the new number of members.
/// The name is the one that the member chose, if any.
pub fn write_presence(change: Change, name: Option<&str>, members: usize, out: &mut Vec<u8>) {
    let event = match change {
        Change::Joined => "join",
        Change::Left => "leave",
    };
    let name = json(&name);
    let start = format!(r#"{{"type":"presence","event":"{event}","member":{name},"#);
    frame(&[start.as_bytes(), format!(r#""count":{members}}}"#).as_bytes()], out);
}

/// Appends the frame that lists the members with a name for a new member, with the number of all
/// members, itself included.
pub fn write_roster(names: &[&str], members: usize, out: &mut Vec<u8>) {
    let names = json(&names);
    let text =
        format!(r#"{{"type":"presence","event":"here","members":{names},"count":{members}}}"#);
    frame(&[text.as_bytes()], out);
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("strings have a form in JSON")
}

/// Appends a text frame from several parts. Returns the length of its header.
fn frame(parts: &[&[u8]], out: &mut Vec<u8>) -> usize {
    let length = parts.iter().map(|part| part.len()).sum();
    let before = out.len();
    Frame::write_text_header(length, out);
    let header = out.len() - before;
    parts.iter().for_each(|part| out.extend_from_slice(part));
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_payloads_byte_for_byte() {
        for payload in ["1", "null", r#""a\u00e9""#, "{ \"a\" : [1, 2 ] }", "1.50", "-0", "1e400"] {
            let text = format!(r#"{{"type":"echo","payload":{payload}}}"#);
            assert_eq!(Message::read(&text), Ok(Message::Echo(payload)));
            let text = format!(r#" {{ "payload" : {payload} , "x":0, "type" : "broadcast" }} "#);
            assert_eq!(Message::read(&text), Ok(Message::Broadcast(payload)));
        }
        let escaped = r#"{"type":"\u0065cho","payload":1}"#;
        assert_eq!(Message::read(escaped), Ok(Message::Echo("1")));
    }

    #[test]
    fn reports_what_is_malformed() {
        let why = |text: &str| Message::read(text).unwrap_err();
        assert_eq!(why(r#"{"type":"echo"}"#), MalformedMessage::NoPayload);
        assert_eq!(why(r#"{"type":"x","payload":1}"#), MalformedMessage::UnknownType("x".into()));
        let array = r#" ["broadcast",1]"#;
        for text in ["", "1", "[]", array, "{", r#"{"payload":1}"#, r#"{"type":1,"payload":1}"#] {
            assert!(matches!(why(text), MalformedMessage::NotJson(_)), "{text}");
        }
        let twice = r#"{"type":"echo","payload":1,"payload":2}"#;
        assert!(matches!(why(twice), MalformedMessage::NotJson(_)));
        let mut out = Vec::new();
        why(r#"{"type":"\"","payload":1}"#).write(&mut out);
        let reply: serde_json::Value = serde_json::from_slice(&out[2..]).unwrap();
        assert_eq!(reply["type"], "error");
        assert!(reply["error"].as_str().unwrap().starts_with("unknown type"), "{reply}");
    }

    proptest! {
        #[test]
        fn writes_one_frame_with_the_payload(text in ".{0,300}", members: u32) {
            let payload = serde_json::to_string(&text).unwrap();
            for written in [true, false] {
                let mut out = Vec::new();
                if written { write_echo(&payload, &mut out) } else { write_result(&payload, members, &mut out) };
                let mut expected = Vec::new();
                let json = match written {
                    true => format!(r#"{{"type":"echo","payload":{payload}}}"#),
                    false => format!(
                        r#"{{"type":"broadcastResult","payload":{payload},"listenerCount":{members}}}"#
                    ),
                };
                Frame::text(json.as_bytes()).write(&mut expected);
                prop_assert_eq!(out, expected);
            }
        }
    }
}
