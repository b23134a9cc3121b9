//! The messages of members: JSON objects with a `type` and a `payload`.

use regatta_proto::websocket::Frame;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What a member asks for. The payload is the JSON value as it was sent, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The payload is sent back to the sender.
    Echo(&'a str),
    /// The payload is sent to every member.
    Broadcast(&'a str),
}

/// Why a message is refused. The connection stays open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedMessage {
    /// It is not a JSON object with a string `type`, or it has a key twice.
    #[error("expected a JSON object with \"type\" and \"payload\": {0}")]
    NotJson(String),
    /// Its type is neither `echo` nor `broadcast`.
    #[error("unknown type {0:?}; expected \"echo\" or \"broadcast\"")]
    UnknownType(String),
    /// It has no payload.
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

/// A payload that is `null` is one all the same.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Message<'a> {
    /// Reads a text message. Other keys are ignored.
    ///
    /// # Errors
    /// The sentence for the sender.
    pub fn read(text: &'a str) -> Result<Self, MalformedMessage> {
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
    /// Appends the frame that tells the sender.
    pub fn write(&self, out: &mut Vec<u8>) {
        let error = json(&self.to_string());
        frame(&[br#"{"type":"error","error":"#, error.as_bytes(), b"}"], out);
    }
}

/// Appends the frame with an echo.
pub fn write_echo(payload: &str, out: &mut Vec<u8>) {
    frame(&[br#"{"type":"echo","payload":"#, payload.as_bytes(), b"}"], out);
}

/// Appends the frame with a broadcast, as every member gets it. Returns the length of its header.
pub fn write_broadcast(payload: &str, out: &mut Vec<u8>) -> usize {
    frame(&[br#"{"type":"broadcast","payload":"#, payload.as_bytes(), b"}"], out)
}

/// Appends the frame that tells a sender for how many members its broadcast was queued.
pub fn write_result(payload: &str, members: u32, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let members = digits.format(members).as_bytes();
    let begin = br#"{"type":"broadcastResult","payload":"#;
    frame(&[begin, payload.as_bytes(), br#","listenerCount":"#, members, b"}"], out);
}

/// What happened to a member of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    In,
    Out,
}

/// Appends the frame that tells the members of a room who has come or gone, and how many they are now. A
/// member has the name that it gave itself, or none.
pub fn write_presence(came: Came, name: Option<&str>, members: usize, out: &mut Vec<u8>) {
    let event = match came {
        Came::In => "join",
        Came::Out => "leave",
    };
    let name = json(&name);
    let begin = format!(r#"{{"type":"presence","event":"{event}","member":{name},"#);
    frame(&[begin.as_bytes(), format!(r#""count":{members}}}"#).as_bytes()], out);
}

/// Appends the frame that tells a member who has come in which named ones are there, and how many there are
/// in all, itself included.
pub fn write_roster(names: &[&str], members: usize, out: &mut Vec<u8>) {
    let names = json(&names);
    let text =
        format!(r#"{{"type":"presence","event":"here","members":{names},"count":{members}}}"#);
    frame(&[text.as_bytes()], out);
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("strings have a form in JSON")
}

/// Appends a text frame of several parts. Returns the length of its header.
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
    fn names_what_is_wrong() {
        let why = |text: &str| Message::read(text).unwrap_err();
        assert_eq!(why(r#"{"type":"echo"}"#), MalformedMessage::NoPayload);
        assert_eq!(why(r#"{"type":"x","payload":1}"#), MalformedMessage::UnknownType("x".into()));
        for text in ["", "1", "[]", "{", r#"{"payload":1}"#, r#"{"type":1,"payload":1}"#] {
            assert!(matches!(why(text), MalformedMessage::NotJson(_)), "{text}");
        }
        let twice = r#"{"type":"echo","payload":1,"payload":2}"#;
        assert!(matches!(why(twice), MalformedMessage::NotJson(_)));
        let mut out = Vec::new();
        why(r#"{"type":"\"","payload":1}"#).write(&mut out);
        let told: serde_json::Value = serde_json::from_slice(&out[2..]).unwrap();
        assert_eq!(told["type"], "error");
        assert!(told["error"].as_str().unwrap().starts_with("unknown type"), "{told}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_one_frame_with_that_payload(text in ".{0,300}", members: u32) {
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
