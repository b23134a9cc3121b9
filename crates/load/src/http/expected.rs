//! What replies of an HTTP load are to be like. Who asks for it is a workload (`http::workload`); who
//! looks at what came is `http::check`, for the connection's cursor.

use regatta_proto::http1::Method;
use regex::{Regex, bytes::Regex as BytesRegex};

/// What the replies of a script are to be like.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    /// The different expectations; few.
    pub kinds: Vec<Expected>,
    /// Of each exchange of the script, its repeated tail included: which of them.
    pub of: Vec<u16>,
}

/// What one reply is to be like.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The method of the request: the reply to HEAD has no content.
    pub method: Method,
    /// Its status.
    pub status: Status,
    /// Fields that it must have.
    pub fields: Vec<Field>,
    /// Its content, chunks put together.
    pub content: Content,
}

/// Which statuses are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// This one.
    Is(u16),
    /// Any of a class: 2 for 200 to 299.
    Class(u16),
    /// Any.
    Any,
}

/// A field that a reply must have.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name, in lower case.
    pub name: String,
    /// One of its values must be like this.
    pub value: Value,
}

/// What a field's value is to be like.
#[derive(Clone, Debug)]
pub enum Value {
    /// Anything: it must be there.
    Any,
    /// This text.
    Is(String),
    /// This matches it whole.
    Matches(Regex),
}

/// What a content is to be like. One that is looked at may have 16 MiB; one that is not, any length.
#[derive(Clone, Debug)]
pub enum Content {
    /// Anything; it is read over and not kept.
    Any,
    /// The text that the request has for its reply.
    Text,
    /// It begins with that text.
    Prefix,
    /// This matches it whole.
    Matches(BytesRegex),
    /// It is JSON, and has these values.
    Json(Vec<Member>),
    /// `Hello. The time is S`, S being within so many seconds of this machine's clock; a fraction is
    /// tolerated.
    Clock {
        /// Seconds.
        within: u64,
    },
}

/// A value inside a JSON text.
#[derive(Clone, Debug)]
pub struct Member {
    /// Where: a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// What must be there; `None`: anything.
    pub is: Option<serde_json::Value>,
}
