//! Action Cable, the subprotocol `actioncable-v1-json`.
//!
//! The server welcomes a member. The member subscribes to `HubChannel` and performs its action
//! `broadcast` with a `payload`. The channel streams `{"payload": …}` to all subscribers. There is no
//! reply to an action: the sender's own copy is its result. The server pings every three seconds and
//! expects no answer.

use super::{
    super::message::{Payload, Request},
    incoming::Incoming,
    text::Text,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The path at which the server is mounted.
pub const PATH: &str = "/cable";
/// The subprotocol offered in the upgrade.
pub const SUBPROTOCOL: &str = "actioncable-v1-json";

const IDENTIFIER: &str = r#"{"channel":"HubChannel"}"#;
const SUBSCRIBE: &str = r#"{"command":"subscribe","identifier":"{\"channel\":\"HubChannel\"}""#;
const MESSAGE: &str = r#"{"command":"message","identifier":"{\"channel\":\"HubChannel\"}","data":"{\"action\":\"broadcast\",\"payload\":\""#;
const END: &str = r#"\"}"}"#;
const LENGTH: usize = MESSAGE.len() + Payload::DIGITS + END.len();

const COPY: &str = r#"{"identifier":"{\"channel\":\"HubChannel\"}","message":{"payload":"#;

pub fn write(request: Request) -> Text {
    match request {
        Request::Echo(_) => Text::of(SUBSCRIBE).ended("}", LENGTH),
        Request::Broadcast(payload) => Text::of(MESSAGE).with_digits(payload).ended(END, LENGTH),
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a str>,
    #[serde(borrow, default)]
    identifier: Cow<'a, str>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Streamed<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[inline]
pub fn read(text: &[u8]) -> Option<Incoming> {
    if let Some(payload) = text.strip_prefix(COPY.as_bytes())
        && let Some(payload) = payload.strip_suffix(b"}}").and_then(Payload::read)
    {
        return Some(Incoming::Copy(payload));
    }
    let Message { kind, identifier, message } = serde_json::from_slice(text).ok()?;
    match kind {
        Some("welcome") => Some(Incoming::Greeting),
        Some("ping") => Some(Incoming::Ignored),
        Some("confirm_subscription") if identifier == IDENTIFIER => Some(Incoming::Subscribed),
        None if identifier == IDENTIFIER => {
            let Streamed { payload } = serde_json::from_str(message?.get()).ok()?;
            Payload::read(payload.get().as_bytes()).map(Incoming::Copy)
        }
        _ => None,
    }
}
