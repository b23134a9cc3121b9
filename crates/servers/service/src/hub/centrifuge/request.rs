//! Commands of clients: lines of JSON in a text frame.

use super::codes::Disconnect;
use crate::hub::message::present;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// One line: a command with its number, or an empty object, the answer to a ping.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line<'a> {
    id: u32,
    #[serde(borrow)]
    connect: Option<Token<'a>>,
    #[serde(borrow)]
    subscribe: Option<Subscribe<'a>>,
    #[serde(borrow)]
    unsubscribe: Option<OfChannel<'a>>,
    #[serde(borrow)]
    publish: Option<Publish<'a>>,
    #[serde(borrow)]
    presence: Option<OfChannel<'a>>,
    #[serde(borrow)]
    presence_stats: Option<OfChannel<'a>>,
    #[serde(borrow)]
    history: Option<History<'a>>,
    #[serde(borrow)]
    refresh: Option<Token<'a>>,
    #[serde(borrow)]
    sub_refresh: Option<SubRefresh<'a>>,
    send: Option<IgnoredAny>,
    rpc: Option<IgnoredAny>,
}

/// A command.
#[derive(Debug)]
pub(super) enum Command<'a> {
    /// The answer to a ping.
    Pong,
    Connect(Token<'a>),
    Subscribe(Subscribe<'a>),
    Unsubscribe(OfChannel<'a>),
    Publish(Publish<'a>),
    Presence(OfChannel<'a>),
    PresenceStats(OfChannel<'a>),
    History(History<'a>),
    Refresh(Token<'a>),
    SubRefresh(SubRefresh<'a>),
    /// One that the hub knows and does not have.
    Rpc,
    /// Any other.
    Unknown,
}

/// A token; empty without one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Token<'a> {
    #[serde(borrow)]
    pub token: Cow<'a, str>,
}

/// A channel.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OfChannel<'a> {
    #[serde(borrow)]
    pub channel: Cow<'a, str>,
}

/// To receive what is sent to a channel.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Subscribe<'a> {
    #[serde(borrow)]
    pub channel: Cow<'a, str>,
    #[serde(borrow)]
    pub token: Cow<'a, str>,
    /// It wants what is behind this position.
    pub recover: bool,
    #[serde(borrow)]
    pub epoch: Cow<'a, str>,
    pub offset: u64,
    /// It wants to be notified who joins and leaves.
    pub join_leave: bool,
    /// Bits that ask for more: only [`REJECTS_UNRECOVERED`] is known.
    pub flag: u64,
    /// Another kind of subscription.
    #[serde(rename = "type")]
    pub kind: u32,
    /// A filter by tags.
    pub tf: Option<IgnoredAny>,
}

/// Instead of a subscription that misses messages, the client wants error 112.
pub(super) const REJECTS_UNRECOVERED: u64 = 2;

/// To send data to a channel.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Publish<'a> {
    #[serde(borrow)]
    pub channel: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "present")]
    pub data: Option<&'a RawValue>,
}

/// To read what is kept of a channel.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct History<'a> {
    #[serde(borrow)]
    pub channel: Cow<'a, str>,
    /// Negative: as many as there may be.
    pub limit: i64,
    #[serde(borrow)]
    pub since: Option<Since<'a>>,
    pub reverse: bool,
}

/// A position.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Since<'a> {
    pub offset: u64,
    /// Empty: any.
    #[serde(borrow)]
    pub epoch: Cow<'a, str>,
}

/// A new token for a channel.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SubRefresh<'a> {
    #[serde(borrow)]
    pub channel: Cow<'a, str>,
    #[serde(borrow)]
    pub token: Cow<'a, str>,
}

/// The lines of a frame that are not empty.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty())
}

impl<'a> Command<'a> {
    /// Reads a line. Returns its number, 0 without one, and the command.
    ///
    /// # Errors
    /// It is not an object of this form, or a command without a number, which could not be answered.
    pub fn read(line: &'a str) -> Result<(u32, Command<'a>), Disconnect> {
        // serde would also accept an array of the values.
        if !line.starts_with('{') {
            return Err(Disconnect::bad("bad request: expected a JSON object in each line"));
        }
        if line == "{}" {
            return Ok((0, Command::Pong));
        }
        let line: Line<'a> = serde_json::from_str(line)
            .map_err(|error| Disconnect::bad(short(format!("bad request: {error}"))))?;
        let id = line.id;
        match line.command() {
            Command::Unknown if id == 0 => Ok((0, Command::Pong)),
            _ if id == 0 => Err(Disconnect::bad("bad request: a command needs an id from 1 on")),
            command => Ok((id, command)),
        }
    }
}

impl<'a> Line<'a> {
    fn command(self) -> Command<'a> {
        None.or(self.connect.map(Command::Connect))
            .or(self.subscribe.map(Command::Subscribe))
            .or(self.unsubscribe.map(Command::Unsubscribe))
            .or(self.publish.map(Command::Publish))
            .or(self.presence.map(Command::Presence))
            .or(self.presence_stats.map(Command::PresenceStats))
            .or(self.history.map(Command::History))
            .or(self.refresh.map(Command::Refresh))
            .or(self.sub_refresh.map(Command::SubRefresh))
            .or(self.rpc.or(self.send).map(|_| Command::Rpc))
            .unwrap_or(Command::Unknown)
    }
}

/// Cuts a text to the length that the reason of a Close frame may have (RFC 6455, 5.5).
fn short(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(123));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (u32, Command<'_>) {
        Command::read(line).unwrap()
    }

    #[test]
    fn commands_are_read_with_their_numbers() {
        let subscribe = r#"{"id":2,"subscribe":{"channel":"a","recover":true,"epoch":"ff","offset":7,
            "positioned":true,"recoverable":true,"join_leave":true,"flag":3,"new":[1]},"more":{}}"#;
        let (2, Command::Subscribe(one)) = read(subscribe) else { panic!() };
        assert_eq!((&*one.channel, &*one.epoch, one.offset, one.flag), ("a", "ff", 7, 3));
        assert!(one.recover && one.join_leave && one.token.is_empty() && one.tf.is_none());
        let (9, Command::Publish(one)) =
            read(r#"{"publish":{"channel":"\u0061","data":{ "n" : 1 }},"id":9}"#)
        else {
            panic!()
        };
        assert_eq!((&*one.channel, one.data.unwrap().get()), ("a", r#"{ "n" : 1 }"#));
        let (1, Command::Publish(one)) = read(r#"{"id":1,"publish":{"data":null}}"#) else {
            panic!()
        };
        assert_eq!(one.data.unwrap().get(), "null");
        assert!(
            matches!(read(r#"{"id":1,"publish":{}}"#).1, Command::Publish(one) if one.data.is_none())
        );
        let (3, Command::History(one)) = read(
            r#"{"id":3,"history":{"channel":"a","limit":-1,"since":{"offset":1},"reverse":true}}"#,
        ) else {
            panic!()
        };
        assert_eq!((one.limit, one.since.unwrap().offset, one.reverse), (-1, 1, true));
        assert!(
            matches!(read(r#"{"id":1,"connect":{"token":"t"}}"#).1, Command::Connect(one) if one.token == "t")
        );
        for (name, is_one) in [
            (
                "unsubscribe",
                (|one| matches!(one, Command::Unsubscribe(_))) as fn(&Command<'_>) -> bool,
            ),
            ("presence", |one| matches!(one, Command::Presence(_))),
            ("presence_stats", |one| matches!(one, Command::PresenceStats(_))),
            ("refresh", |one| matches!(one, Command::Refresh(_))),
            ("sub_refresh", |one| matches!(one, Command::SubRefresh(_))),
            ("rpc", |one| matches!(one, Command::Rpc)),
            ("send", |one| matches!(one, Command::Rpc)),
            ("map_publish", |one| matches!(one, Command::Unknown)),
        ] {
            let line = format!(r#"{{"id":1,"{name}":{{}}}}"#);
            assert!(is_one(&read(&line).1), "{name}");
        }
    }

    #[test]
    fn an_empty_object_is_a_pong() {
        for line in ["{}", "{ }", r#"{"id":0}"#] {
            assert!(matches!(read(line), (0, Command::Pong)), "{line}");
        }
    }

    #[test]
    fn what_is_no_command_closes_the_connection_with_a_reason_that_fits() {
        let long = format!(r#"{{"id":"{}"}}"#, "ü".repeat(300));
        for line in [
            "",
            "1",
            "[]",
            "[1]",
            "{",
            r#"{"id":-1}"#,
            r#"{"id":1,"connect":1}"#,
            &long,
            r#"{"publish":{}}"#,
            r#"{"send":{}}"#,
            r#"{"id":1,"id":2}"#,
            r#"{"id":1,"subscribe":{"offset":-1}}"#,
        ] {
            let why = Command::read(line).unwrap_err();
            assert_eq!(why.code.0, 3501, "{line}");
            assert!(why.reason.len() <= 123, "{line}");
        }
    }

    #[test]
    fn a_frame_has_several_lines() {
        let all: Vec<_> = lines("{}\n\n{\"id\":1}\r\n {} \n").collect();
        assert_eq!(all, ["{}", "{\"id\":1}", "{}"]);
        assert_eq!(lines("\n").count(), 0);
    }
}
