//! The replies of the API.

use crate::hub::{broadcast::Broadcast, history::Position};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap};

/// Why a method was not carried out, with the codes of Centrifugo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    code: u16,
    message: Cow<'static, str>,
}

impl Failure {
    pub const METHOD_NOT_FOUND: Failure = Failure::of(104, "method not found");
    pub const NOT_AVAILABLE: Failure = Failure::of(108, "not available");
    pub const UNRECOVERABLE: Failure = Failure::of(112, "unrecoverable position");
    pub const TOO_MANY: Failure = Failure::of(111, "too many requests");
    /// The broker has not answered.
    pub const NO_HISTORY: Failure =
        Failure::of(100, "not available: the broker does not answer for the history now");

    const fn of(code: u16, message: &'static str) -> Failure {
        Failure { code, message: Cow::Borrowed(message) }
    }

    /// The broker has not published a message, or may not have.
    pub fn of_broker(why: &'static str) -> Failure {
        Failure::of(100, why)
    }

    /// The request is wrong: what was expected.
    pub fn bad(why: impl Into<Cow<'static, str>>) -> Failure {
        Failure { code: 107, message: why.into() }
    }
}

/// The result of a method.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Answer {
    /// Nothing more than that it is done.
    Done {},
    Published {
        offset: u64,
        epoch: String,
    },
    History {
        publications: Vec<Publication>,
        /// The position of the newest message.
        offset: u64,
        epoch: String,
    },
    Broadcast {
        responses: Vec<Response>,
    },
    Presence {
        presence: BTreeMap<String, Client>,
    },
    PresenceStats {
        num_clients: usize,
        num_users: usize,
    },
    Channels {
        channels: BTreeMap<String, Channel>,
    },
    Info {
        nodes: [Node; 1],
    },
}

impl Answer {
    /// A message is at this position in the history of its room.
    pub fn published(Position { epoch, offset }: Position) -> Answer {
        Answer::Published { offset, epoch: epoch.to_string() }
    }
}

/// A message of a history.
#[derive(Debug, Serialize)]
pub(in super::super) struct Publication {
    pub offset: u64,
    pub data: Box<RawValue>,
}

impl Publication {
    /// That of a message that is kept.
    pub fn of(message: &Broadcast) -> Option<Publication> {
        let payload = str::from_utf8(message.payload()).ok()?;
        let data = RawValue::from_string(payload.to_owned()).ok()?;
        Some(Publication { offset: message.position()?.offset, data })
    }
}

/// A result or an error.
#[derive(Debug)]
pub(super) struct Response(pub Result<Answer, Failure>);

impl Serialize for Response {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(result) => BTreeMap::from([("result", result)]).serialize(serializer),
            Err(error) => BTreeMap::from([("error", error)]).serialize(serializer),
        }
    }
}

/// A member, to backends.
#[derive(Debug, Serialize)]
pub(super) struct Client {
    pub client: String,
    pub user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conn_info: Option<Box<RawValue>>,
    /// The name that it chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chan_info: Option<Named>,
}

#[derive(Debug, Serialize)]
pub(super) struct Named {
    pub name: String,
}

/// A room, to backends.
#[derive(Debug, Serialize)]
pub(super) struct Channel {
    pub num_clients: usize,
}

/// The hub itself, to backends.
#[derive(Debug, Serialize)]
pub(super) struct Node {
    pub uid: &'static str,
    pub name: &'static str,
    pub version: &'static str,
    pub num_clients: usize,
    pub num_subs: usize,
    pub num_users: usize,
    pub num_channels: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(response: Result<Answer, Failure>) -> String {
        serde_json::to_string(&Response(response)).unwrap()
    }

    #[test]
    fn a_reply_has_a_result_or_an_error() {
        assert_eq!(json(Ok(Answer::Done {})), r#"{"result":{}}"#);
        assert_eq!(
            json(Err(Failure::NOT_AVAILABLE)),
            r#"{"error":{"code":108,"message":"not available"}}"#
        );
        let responses = vec![Response(Ok(Answer::Done {})), Response(Err(Failure::bad("x")))];
        assert_eq!(
            json(Ok(Answer::Broadcast { responses })),
            r#"{"result":{"responses":[{"result":{}},{"error":{"code":107,"message":"x"}}]}}"#
        );
    }

    #[test]
    fn a_client_has_what_is_known_of_it() {
        let client = |conn_info: Option<&str>, name: Option<&str>| Client {
            client: "7".to_owned(),
            user: "ann".to_owned(),
            conn_info: conn_info.map(|json| RawValue::from_string(json.to_owned()).unwrap()),
            chan_info: name.map(|name| Named { name: name.to_owned() }),
        };
        let json = |client| serde_json::to_string(&client).unwrap();
        assert_eq!(json(client(None, None)), r#"{"client":"7","user":"ann"}"#);
        assert_eq!(
            json(client(Some("[1.0]"), Some("a"))),
            r#"{"client":"7","user":"ann","conn_info":[1.0],"chan_info":{"name":"a"}}"#
        );
    }
}
