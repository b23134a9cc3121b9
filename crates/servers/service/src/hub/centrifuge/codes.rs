//! Codes of Centrifugo (version 6): why a command fails, why a connection is closed, why a subscription ends.

use regatta_proto::websocket::CloseCode;
use serde::Serialize;
use std::borrow::Cow;

/// Why a command fails. The connection stays open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    pub code: u16,
    pub message: Cow<'static, str>,
    /// The client may try again.
    #[serde(skip_serializing_if = "is_false")]
    pub temporary: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Failure {
    pub const PERMISSION_DENIED: Failure = Failure::of(103, "permission denied");
    pub const METHOD_NOT_FOUND: Failure = Failure::of(104, "method not found");
    pub const ALREADY_SUBSCRIBED: Failure = Failure::of(105, "already subscribed");
    pub const LIMIT_EXCEEDED: Failure = Failure::of(106, "limit exceeded");
    pub const NOT_AVAILABLE: Failure = Failure::of(108, "not available");
    pub const TOKEN_EXPIRED: Failure = Failure::of(109, "token expired");
    pub const TOO_MANY_REQUESTS: Failure = Failure::of(111, "too many requests").temporary();
    pub const UNRECOVERABLE: Failure = Failure::of(112, "unrecoverable position");

    /// A command that waited when its subscription ended.
    pub const ENDED: Failure = Failure::of(100, "the subscription has ended");

    const fn of(code: u16, message: &'static str) -> Failure {
        Failure { code, message: Cow::Borrowed(message), temporary: false }
    }

    const fn temporary(mut self) -> Failure {
        self.temporary = true;
        self
    }

    /// A limit of the hub is reached: this one.
    pub fn full(why: &'static str) -> Failure {
        Failure { message: why.into(), ..Failure::LIMIT_EXCEEDED.temporary() }
    }

    /// The broker has not done it, or may not have. `temporary`: the client may try again.
    pub fn of_broker(why: &'static str, temporary: bool) -> Failure {
        Failure { temporary, ..Failure::of(100, why) }
    }

    /// The command is wrong: what was expected.
    pub fn bad(why: impl Into<Cow<'static, str>>) -> Failure {
        Failure { code: 107, message: why.into(), temporary: false }
    }
}

/// Why a connection is closed: the code and the reason of its Close frame. Clients stay away from 3500 on, and connect
/// again otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disconnect {
    pub code: CloseCode,
    pub reason: Cow<'static, str>,
}

impl Disconnect {
    pub const SHUTDOWN: Disconnect = Disconnect::of(3001, "shutdown");
    pub const EXPIRED: Disconnect = Disconnect::of(3005, "connection expired");
    pub const SLOW: Disconnect = Disconnect::of(3008, "slow");
    pub const NO_PONG: Disconnect = Disconnect::of(3012, "no pong");
    pub const INVALID_TOKEN: Disconnect = Disconnect::of(3500, "invalid token");
    pub const STALE: Disconnect = Disconnect::of(3502, "stale");

    const fn of(code: u16, reason: &'static str) -> Disconnect {
        Disconnect { code: CloseCode(code), reason: Cow::Borrowed(reason) }
    }

    /// What the client has sent is wrong: this.
    pub fn bad(why: impl Into<Cow<'static, str>>) -> Disconnect {
        Disconnect { code: CloseCode(3501), reason: why.into() }
    }
}

/// Why the hub ends a subscription. Clients subscribe again from 2500 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Unsubscribed {
    pub code: u16,
    pub reason: &'static str,
}

impl Unsubscribed {
    /// A backend has ended it.
    pub const SERVER: Unsubscribed = Unsubscribed { code: 2000, reason: "server unsubscribe" };
    /// Messages are gone that the client should have got.
    pub const GAP: Unsubscribed = Unsubscribed { code: 2500, reason: "insufficient state" };
    /// Its token has expired.
    pub const EXPIRED: Unsubscribed = Unsubscribed { code: 2501, reason: "subscription expired" };
}

/// Why a command is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It gets an error.
    Fails(Failure),
    /// The connection is closed.
    Closes(Disconnect),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal::Fails(failure)
    }
}

impl From<Disconnect> for Refusal {
    fn from(disconnect: Disconnect) -> Self {
        Refusal::Closes(disconnect)
    }
}
