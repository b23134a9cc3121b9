//! Centrifuge, which Centrifugo also uses: version 2 of its client protocol, in JSON. Commands and
//! replies have ids. A frame holds one or more of them, one per line.
//!
//! A member connects and subscribes to the channel `hub` in one frame, and then publishes to it. Each
//! command has a reply with its id. The reply does not say who received the publication. It may come
//! before the sender's own copy if the broker is a separate process. An empty reply is a ping; the
//! answer is an empty command.

use super::{
    super::message::{Payload, Request},
    incoming::{Incoming, Next},
    text::{DIGITS, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The default path of a server.
pub const PATH: &str = "/connection/websocket";
/// The answer to a ping.
pub const PONG: &str = "{}";

const CHANNEL: &str = "hub";

/// The first request holds two commands, so the id of a request is its number plus one.
const CONNECT: &str = "{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"hub\"}";
const NUMBER: &str = r#"{"id":"#;
const DATA: &str = r#","publish":{"channel":"hub","data":""#;
const LENGTH: usize = NUMBER.len() + DIGITS + DATA.len() + Payload::DIGITS + r#""}}"#.len();

const COPY: &str = r#"{"push":{"channel":"hub","pub":{"data":"#;

pub fn write(request: Request, number: u64) -> Text {
    match request {
        Request::Echo(_) => Text::of(CONNECT).ended("}", LENGTH),
        Request::Broadcast(payload) => {
            let text = Text::of(NUMBER).with_number(number + 1).with(DATA).with_digits(payload);
            text.with(r#"""#).ended("}}", LENGTH)
        }
    }
}

#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(default)]
    id: u64,
    #[serde(borrow)]
    connect: Option<&'a RawValue>,
    #[serde(borrow)]
    subscribe: Option<&'a RawValue>,
    #[serde(borrow)]
    publish: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    push: Option<Push<'a>>,
}

#[derive(Deserialize)]
struct Push<'a> {
    channel: &'a str,
    #[serde(borrow, rename = "pub")]
    publication: Option<Publication<'a>>,
}

#[derive(Deserialize)]
struct Publication<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Parses the first line of a frame.
#[inline]
pub fn next(frame: &[u8]) -> Next {
    let (line, taken) = match memchr::memchr(b'\n', frame) {
        Some(at) => (&frame[..at], at + 1),
        None => (frame, frame.len()),
    };
    read(line).map_or(Next::Unknown, |incoming| Next::Incoming(incoming, taken))
}

#[inline]
fn read(line: &[u8]) -> Option<Incoming> {
    if let Some(payload) = line.strip_prefix(COPY.as_bytes())
        && let Some(payload) = payload.strip_suffix(b"}}}").and_then(Payload::read)
    {
        return Some(Incoming::Copy(payload));
    }
    if line == PONG.as_bytes() {
        return Some(Incoming::Ping);
    }
    let reply: Reply<'_> = serde_json::from_slice(line).ok()?;
    match reply {
        Reply { error: Some(_), .. } => None,
        Reply { push: Some(Push { channel: CHANNEL, publication: Some(it) }), id: 0, .. } => {
            Payload::read(it.data.get().as_bytes()).map(Incoming::Copy)
        }
        Reply { push: Some(_), .. } => None,
        Reply { id: 1, connect: Some(_), .. } => Some(Incoming::Ignored),
        Reply { id: 2, subscribe: Some(_), .. } => Some(Incoming::Subscribed),
        Reply { id: 3.., publish: Some(_), .. } => Some(Incoming::Done(Some(reply.id - 1))),
        _ => None,
    }
}
