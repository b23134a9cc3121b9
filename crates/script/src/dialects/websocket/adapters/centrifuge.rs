//! Centrifuge, and so Centrifugo: version 2 of its client protocol, in JSON. Commands and replies have ids;
//! a frame has one or several of them, one a line.
//!
//! A member connects, subscribes to the channel `hub` in the same frame, and publishes to it. A reply by id
//! answers each command; it says nothing of who got the publication, and may come before the sender's own
//! copy where the broker is another process. An empty reply is a ping, which an empty command answers.

use super::{
    super::message::{Payload, Request},
    said::{Next, Said},
    text::{DIGITS, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Where a server is by default.
pub const PATH: &str = "/connection/websocket";
/// The answer to a ping.
pub const PONG: &str = "{}";

const CHANNEL: &str = "hub";

/// Two commands: the first request. So the id of a request is one more than its number.
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

/// The first line of a frame.
#[inline]
pub fn next(frame: &[u8]) -> Next {
    let (line, taken) = match memchr::memchr(b'\n', frame) {
        Some(at) => (&frame[..at], at + 1),
        None => (frame, frame.len()),
    };
    read(line).map_or(Next::Unknown, |said| Next::Said(said, taken))
}

#[inline]
fn read(line: &[u8]) -> Option<Said> {
    if let Some(payload) = line.strip_prefix(COPY.as_bytes())
        && let Some(payload) = payload.strip_suffix(b"}}}").and_then(Payload::read)
    {
        return Some(Said::Copy(payload));
    }
    if line == PONG.as_bytes() {
        return Some(Said::Asks);
    }
    let reply: Reply<'_> = serde_json::from_slice(line).ok()?;
    match reply {
        Reply { error: Some(_), .. } => None,
        Reply { push: Some(Push { channel: CHANNEL, publication: Some(it) }), id: 0, .. } => {
            Payload::read(it.data.get().as_bytes()).map(Said::Copy)
        }
        Reply { push: Some(_), .. } => None,
        Reply { id: 1, connect: Some(_), .. } => Some(Said::Aside),
        Reply { id: 2, subscribe: Some(_), .. } => Some(Said::Joined),
        Reply { id: 3.., publish: Some(_), .. } => Some(Said::Done(Some(reply.id - 1))),
        _ => None,
    }
}
