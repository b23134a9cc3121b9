//! Phoenix channels, version 2 of their JSON serialization: `[join_ref, ref, topic, event, payload]`.
//!
//! A member joins the topic `room:lobby`, and pushes the event `broadcast` with the payload under
//! `body`. The server broadcasts it to the topic under the same event name; such a copy has no refs.
//! Then it answers the push with `phx_reply`. A client sends at least a heartbeat every half minute. The
//! server closes a connection that stays silent, by default after a minute.

use super::{
    super::message::{Payload, Request},
    incoming::Incoming,
    text::{DIGITS, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The path of the socket's transport, which requests version 2.
pub const PATH: &str = "/socket/websocket?vsn=2.0.0";

/// The heartbeat of a silent member.
pub const HEARTBEAT: &str = r#"[null,"0","phoenix","heartbeat",{}]"#;

/// The `join_ref` of the member's join, which is its first request.
const JOINED_AS: &str = "1";
const TOPIC: &str = "room:lobby";

const JOIN: &str = r#"["1","1","room:lobby","phx_join",{"#;
const NUMBER: &str = r#"["1",""#;
const BODY: &str = r#"","room:lobby","broadcast",{"body":""#;
const END: &str = r#""}]"#;
const LENGTH: usize = NUMBER.len() + DIGITS + BODY.len() + Payload::DIGITS + END.len();

const COPY: &str = r#"[null,null,"room:lobby","broadcast",{"body":"#;

pub fn write(request: Request, number: u64) -> Text {
    match request {
        Request::Echo(_) => Text::of(JOIN).ended("}]", LENGTH),
        Request::Broadcast(payload) => {
            let text = Text::of(NUMBER).with_number(number).with(BODY).with_digits(payload);
            // Spaces may only be outside the braces of the payload.
            text.with(r#""}"#).ended("]", LENGTH)
        }
    }
}

#[derive(Deserialize)]
struct Message<'a>(
    Option<&'a str>,
    Option<&'a str>,
    &'a str,
    &'a str,
    #[serde(borrow)] &'a RawValue,
);

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    body: &'a RawValue,
}

#[derive(Deserialize)]
struct Reply<'a> {
    status: &'a str,
}

#[inline]
pub fn read(text: &[u8]) -> Option<Incoming> {
    if let Some(payload) = text.strip_prefix(COPY.as_bytes())
        && let Some(payload) = payload.strip_suffix(b"}]").and_then(Payload::read)
    {
        return Some(Incoming::Copy(payload));
    }
    let Message(joined_as, number, topic, event, content) = serde_json::from_slice(text).ok()?;
    match (topic, event) {
        (TOPIC, "broadcast") => {
            let Body { body } = serde_json::from_str(content.get()).ok()?;
            // A copy that passed through the member's channel has its `join_ref`.
            let is_ours = joined_as.is_none_or(|joined_as| joined_as == JOINED_AS);
            let payload = Payload::read(body.get().as_bytes())?;
            (is_ours && number.is_none()).then_some(Incoming::Copy(payload))
        }
        (TOPIC | "phoenix", "phx_reply") => {
            let Reply { status } = serde_json::from_str(content.get()).ok()?;
            let done = match topic {
                TOPIC => Incoming::Done(Some(number?.parse().ok()?)),
                _ => Incoming::Ignored,
            };
            (status == "ok").then_some(done)
        }
        _ => None,
    }
}
