//! What replies are to be like. Who asks for it is a workload (`requests`, `file`); who looks at what
//! came is `check`.

use regatta_proto::http1::Method;
use regex::bytes::Regex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What one reply is to be like.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Expected {
    /// The method of the request: the reply to HEAD has no content.
    #[serde(with = "super::rules::by_name")]
    pub method: Method,
    /// Its status.
    pub status: Status,
    /// Fields that it must have.
    pub fields: Vec<Field>,
    /// Its content, chunks put together.
    pub content: Content,
}

/// Which statuses are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// This one.
    Is(u16),
    /// Any of a class: 2 for 200 to 299.
    Class(u16),
    /// Any.
    Any,
}

/// A field that a reply must have.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Field {
    /// Its name, in lower case.
    pub name: String,
    /// One of its values must be like this.
    pub value: Value,
}

/// What a field's value is to be like.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Anything: it must be there.
    Any,
    /// This text.
    Is(String),
    /// The next line of the text that the request has for its reply.
    Given,
    /// This matches it.
    Matches(#[serde(with = "crate::sent::pattern")] Regex),
}

/// What a content is to be like. One that is not looked at may have any length; of the others no more
/// is kept than what is expected may have, and of those that a regular expression or values in JSON
/// are looked for in, 16 MiB.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Anything; it is read over and not kept.
    Any,
    /// The text that the request has for its reply, but for given lines.
    Text,
    /// It begins with that text.
    Prefix,
    /// This matches it.
    Matches(#[serde(with = "crate::sent::pattern")] Regex),
    /// A SHA-256 in lower-case hex. Which one is right is verified when the load has ended (`salted`).
    Digest,
    /// It is JSON, and has these values.
    Json(Vec<Member>),
    /// `Hello. The time is S`, S being within so many seconds of this machine's clock; a fraction is
    /// tolerated.
    Clock {
        /// Seconds.
        within: u64,
    },
}

/// A SHA-256.
pub(super) type Digest = [u8; 32];

/// A value inside a JSON text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Where: a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// What must be there.
    pub is: Is,
}

/// What a value inside a JSON text is to be.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Is {
    /// Anything: it must be there.
    Any,
    /// This, as JSON.
    Value(#[serde(with = "super::json::as_text")] Box<RawValue>),
    /// The JSON in the next line of the text that the request has for its reply.
    Given,
}

/// The text that a request has for its reply, taken apart.
#[derive(Clone, Debug)]
pub(super) struct Parts<'t> {
    /// A line for each field that is given.
    pub fields: Lines<'t>,
    /// A line for each member that is given.
    pub members: Lines<'t>,
    /// What the content is compared with.
    pub content: &'t [u8],
}

/// Lines, each ended by a newline.
#[derive(Clone, Debug)]
pub(super) struct Lines<'t>(&'t [u8]);

impl Content {
    /// Longest content that an expression or JSON may have, in bytes.
    const LONGEST: usize = 16 << 20;
    /// The same of [`Content::Clock`]: some times what a time needs.
    const LONGEST_CLOCK: usize = 100;
    /// That of [`Content::Digest`].
    const DIGEST: usize = 64;

    /// Most bytes that a right content can have; `text` is what it is compared with.
    pub(crate) fn longest(&self, text: &[u8]) -> usize {
        match self {
            Content::Any | Content::Prefix => usize::MAX,
            Content::Text => text.len(),
            Content::Clock { .. } => Self::LONGEST_CLOCK,
            Content::Digest => Self::DIGEST,
            Content::Matches(_) | Content::Json(_) => Self::LONGEST,
        }
    }

    /// How many of its bytes, from its beginning on, decide whether it is right.
    pub(crate) fn looked_at(&self, text: &[u8]) -> usize {
        match self {
            Content::Any => 0,
            Content::Prefix => text.len(),
            content => content.longest(text),
        }
    }
}

impl Expected {
    /// Takes the text of a request apart.
    #[inline]
    pub(super) fn parts<'t>(&self, text: &'t [u8]) -> Parts<'t> {
        let fields = Lines(text);
        let members = fields.clone().after(self.given_fields());
        let content = members.clone().after(match &self.content {
            Content::Json(members) => members.iter().filter(|m| matches!(m.is, Is::Given)).count(),
            _ => 0,
        });
        Parts { fields, members, content: content.0 }
    }

    /// How many fields have a value that is given for each request.
    #[inline]
    pub(super) fn given_fields(&self) -> usize {
        self.fields.iter().filter(|field| matches!(field.value, Value::Given)).count()
    }
}

impl Lines<'_> {
    #[inline]
    fn after(mut self, lines: usize) -> Self {
        for _ in 0..lines {
            self.next();
        }
        self
    }
}

impl<'t> Iterator for Lines<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        let end = memchr::memchr(b'\n', self.0)?;
        let line = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(line)
    }
}
