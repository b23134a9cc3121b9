//! Replies and pushes: each is a text frame with one line of JSON.

use super::codes::{Failure, Unsubscribed};
use crate::hub::{
    api::Publication,
    broadcast::Broadcast,
    message::{Change, Note},
};
use regatta_engine::Push;
use regatta_proto::websocket::Frame;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The frame of a ping.
pub(super) const PING: &[u8] = b"\x81\x02{}";

/// The result of a command.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Connect(Connected),
    Subscribe(Subscribed),
    Unsubscribe {},
    Publish {},
    Presence { presence: BTreeMap<String, Box<RawValue>> },
    PresenceStats { num_clients: usize, num_users: usize },
    History { publications: Vec<Publication>, offset: u64, epoch: String },
    Refresh(Connected),
    SubRefresh(Expiry),
}

/// When a token expires.
#[derive(Debug, Default, Serialize)]
pub(super) struct Expiry {
    #[serde(skip_serializing_if = "is_false")]
    expires: bool,
    /// In so many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u64>,
}

impl Expiry {
    /// In so many seconds, if at all.
    pub fn in_s(ttl: Option<u64>) -> Expiry {
        Expiry { expires: ttl.is_some(), ttl }
    }
}

/// The connection of a client.
#[derive(Debug, Serialize)]
pub(super) struct Connected {
    /// Its number.
    pub client: String,
    pub version: &'static str,
    #[serde(flatten)]
    pub expiry: Expiry,
    /// How often the hub pings, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ping: Option<u64>,
    /// The client should answer.
    #[serde(skip_serializing_if = "is_false")]
    pub pong: bool,
}

/// What a client gets when it subscribes.
#[derive(Debug, Default, Serialize)]
pub(super) struct Subscribed {
    #[serde(flatten)]
    pub expiry: Expiry,
    /// The room has a history.
    #[serde(skip_serializing_if = "is_false")]
    pub recoverable: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub positioned: bool,
    /// Its position, behind the messages of this reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What it has missed, from the oldest on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub publications: Vec<Publication>,
    /// It has named a position, and gets everything behind it.
    #[serde(skip_serializing_if = "is_false")]
    pub recovered: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub was_recovering: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Serialize)]
struct ErrorReply<'a> {
    id: u32,
    error: &'a Failure,
}

/// Appends the reply to the command with this number.
pub(super) fn write_answer(id: u32, answer: &Answer, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let (id, answer) = (digits.format(id), json(answer));
    // Its name and the result are the only key and value of an object.
    frame(&[br#"{"id":"#, id.as_bytes(), b",", &answer[1..]], out);
}

/// Appends the error of the command with this number.
pub(super) fn write_failure(id: u32, error: &Failure, out: &mut Vec<u8>) {
    frame(&[&json(&ErrorReply { id, error })], out);
}

/// The start of the pushes of a channel.
#[derive(Debug)]
pub(super) struct Pushes(Box<[u8]>);

impl Pushes {
    /// Those of this channel.
    pub fn of(channel: &str) -> Pushes {
        let mut start = br#"{"push":{"channel":"#.to_vec();
        start.extend_from_slice(&json(&channel));
        start.push(b',');
        Pushes(start.into())
    }

    /// About the length of a push with so much data, in bytes.
    pub fn length(&self, data: usize) -> usize {
        self.0.len() + data + 64
    }

    /// At most how many bytes it is to write this.
    pub fn length_of(&self, push: &Broadcast) -> usize {
        push.all_notes().len().max(1) * self.length(0) + push.size() + push.infos()
    }

    /// Appends a message, or that some have joined or left.
    pub fn write(&self, push: &Broadcast, out: &mut Vec<u8>) {
        let notes = push.all_notes();
        if !notes.is_empty() {
            return notes.iter().for_each(|note| self.write_note(note, out));
        }
        let mut digits = itoa::Buffer::new();
        let (name, number) = match push.position() {
            Some(position) => (OFFSET, digits.format(position.offset)),
            None => (&b""[..], ""),
        };
        let end = b"}}}";
        frame(&[&self.0, br#""pub":{"data":"#, push.payload(), name, number.as_bytes(), end], out);
    }

    fn write_note(&self, note: &Note, out: &mut Vec<u8>) {
        // Nothing is known of some members at other hubs.
        let Some(info) = note.info.as_deref() else { return };
        let event: &[u8] = match note.change {
            Change::Joined => br#""join":{"info":"#,
            Change::Left => br#""leave":{"info":"#,
        };
        frame(&[&self.0, event, info.as_bytes(), b"}}}"], out);
    }

    /// Appends that the hub has ended the subscription.
    pub fn write_end(&self, why: Unsubscribed, out: &mut Vec<u8>) {
        frame(&[&self.0, br#""unsubscribe":"#, &json(&why), b"}}"], out);
    }
}

/// What stands before an offset.
const OFFSET: &[u8] = br#","offset":"#;

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("it has a form in JSON")
}

/// Appends a text frame of one line. A newline in JSON of others is white space, because strings have none (RFC 8259, 7).
fn frame(parts: &[&[u8]], out: &mut Vec<u8>) {
    Frame::write_text_header(parts.iter().map(|part| part.len()).sum(), out);
    let start = out.len();
    parts.iter().for_each(|part| out.extend_from_slice(part));
    for byte in &mut out[start..] {
        if *byte == b'\n' {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::history::{Epoch, Position};
    use serde_json::{Value, json};
    use std::sync::Arc;

    /// The JSON of the only frame, which is one line.
    fn read(out: &[u8]) -> Value {
        let text = match out[1] {
            126 => &out[4..],
            length => {
                assert_eq!(usize::from(length), out.len() - 2);
                &out[2..]
            }
        };
        assert!(!text.contains(&b'\n'), "{text:?}");
        serde_json::from_slice(text).unwrap()
    }

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Value {
        let mut out = Vec::new();
        write(&mut out);
        read(&out)
    }

    #[test]
    fn replies_have_the_number_and_the_name_of_their_command() {
        let reply = |answer: Answer| written(|out| write_answer(7, &answer, out));
        assert_eq!(reply(Answer::Publish {}), json!({"id": 7, "publish": {}}));
        let connected = Connected {
            client: "9".to_owned(),
            version: "v",
            expiry: Expiry::in_s(Some(3)),
            ping: Some(25),
            pong: true,
        };
        let expected = json!({"client": "9", "version": "v", "expires": true, "ttl": 3, "ping": 25, "pong": true});
        assert_eq!(reply(Answer::Connect(connected)), json!({"id": 7, "connect": expected}));
        assert_eq!(
            reply(Answer::Subscribe(Subscribed::default())),
            json!({"id": 7, "subscribe": {}})
        );
        let stats = Answer::PresenceStats { num_clients: 2, num_users: 1 };
        assert_eq!(
            reply(stats),
            json!({"id": 7, "presence_stats": {"num_clients": 2, "num_users": 1}})
        );
        let failure = |failure: Failure| written(|out| write_failure(7, &failure, out));
        let expected = json!({"code": 111, "message": "too many requests", "temporary": true});
        assert_eq!(failure(Failure::TOO_MANY_REQUESTS), json!({"id": 7, "error": expected}));
        assert_eq!(failure(Failure::bad("x"))["error"], json!({"code": 107, "message": "x"}));
    }

    #[test]
    fn a_push_has_its_channel_and_its_data_in_one_line() {
        let (memory, pushes) = (Arc::default(), Pushes::of("a\"\n"));
        let plain = Broadcast::new("{\"n\":\n1}", false, &memory);
        let push = |event: Value| {
            let mut push = json!({"channel": "a\"\n"});
            push.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
            json!({"push": push})
        };
        assert_eq!(
            written(|out| pushes.write(&plain, out)),
            push(json!({"pub": {"data": {"n": 1}}}))
        );
        for (data, offset) in
            [("\"x\"".to_owned(), 1), (format!("\"{}\"", "y".repeat(300)), 12_345)]
        {
            let position = Position { epoch: Epoch(1), offset };
            let kept = Broadcast::kept(&data, position, false, false, &memory);
            let expected: Value = serde_json::from_str(&data).unwrap();
            let expected = push(json!({"pub": {"data": expected, "offset": offset}}));
            assert_eq!(written(|out| pushes.write(&kept, out)), expected);
        }
        let note = |change| Note {
            change,
            number: 3,
            name: None,
            info: Some("{\"client\":\"3\",\n\"user\":\"u\"}".into()),
        };
        for (change, name) in [(Change::Joined, "join"), (Change::Left, "leave")] {
            let note = Broadcast::presence(note(change), 2, &memory);
            let expected = push(json!({name: {"info": {"client": "3", "user": "u"}}}));
            assert_eq!(written(|out| pushes.write(&note, out)), expected);
        }
        let unknown = Note { info: None, ..note(Change::Left) };
        let several =
            Broadcast::notes(vec![note(Change::Left), unknown, note(Change::Joined)], &memory);
        let mut out = Vec::new();
        pushes.write(&several, &mut out);
        let one = out.len() / 2 + 1;
        assert!(read(&out[..one])["push"]["leave"].is_object());
        assert!(read(&out[one..])["push"]["join"].is_object());
        assert!(out.len() <= pushes.length_of(&several), "{}", out.len());
        let end = json!({"unsubscribe": {"code": 2500, "reason": "insufficient state"}});
        assert_eq!(written(|out| pushes.write_end(Unsubscribed::GAP, out)), push(end));
        assert_eq!(read(PING), json!({}));
    }
}
