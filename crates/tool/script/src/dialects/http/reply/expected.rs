//! What replies must be. Workloads define it (`requests`, `file`), and `check` compares replies with
//! it.

use regatta_proto::http1::Method;
use regex::bytes::Regex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What one reply must be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Expected {
    /// The method of the request: the reply to HEAD has no content.
    #[serde(with = "crate::dialects::http::rules::by_name")]
    pub method: Method,
    /// Its status.
    pub status: Status,
    /// Fields that the reply must have.
    pub fields: Vec<Field>,
    /// Its content, after removing any chunked encoding.
    pub content: Content,
}

/// Which statuses are correct.
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
    /// What one of its values must be.
    pub value: Value,
}

/// What a field's value must be.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Any value; the field must exist.
    Any,
    /// This text.
    Is(String),
    /// The next line of the exchange's expected text.
    Given,
    /// A value that this regular expression matches.
    Matches(#[serde(with = "crate::sent::pattern")] Regex),
}

/// What a content must be. Unchecked content may have any length. Of other contents, at most the
/// expected length is kept; if it is matched by a regular expression or parsed as JSON, at most 16 MiB.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Anything; it is skipped and not kept.
    Any,
    /// The exchange's expected text after the given lines.
    Text,
    /// A content that starts with that text.
    Prefix,
    /// A content that this regular expression matches.
    Matches(#[serde(with = "crate::sent::pattern")] Regex),
    /// A SHA-256 in lower-case hex. Whether it is the right one is verified after the load has ended
    /// (`salted`).
    Digest,
    /// JSON that has these values.
    Json(Vec<Member>),
    /// `Hello. The time is S`, where S is within `within` seconds of this machine's clock. A fraction
    /// is permitted.
    Clock {
        /// Maximum difference in seconds.
        within: u64,
    },
}

/// A SHA-256.
pub(in crate::dialects) type Digest = [u8; 32];

/// A value inside a JSON text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    /// The place of the value, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// What the value must be.
    pub is: Is,
}

/// What a value inside a JSON text must be.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Is {
    /// Any value; it must exist.
    Any,
    /// This value, as JSON.
    Value(#[serde(with = "super::json::as_text")] Box<RawValue>),
    /// The JSON in the next line of the exchange's expected text.
    Given,
}

/// The expected text of an exchange, split into its parts.
#[derive(Clone, Debug)]
pub(in crate::dialects) struct Parts<'t> {
    /// A line for each field whose value is [`Value::Given`].
    pub fields: Lines<'t>,
    /// A line for each member that is [`Is::Given`].
    pub members: Lines<'t>,
    /// What the content is compared with.
    pub content: &'t [u8],
}

/// Lines that each end with a newline.
#[derive(Clone, Debug)]
pub(in crate::dialects) struct Lines<'t>(&'t [u8]);

impl Content {
    /// Maximum length in bytes of content for a regular expression or JSON.
    const LONGEST: usize = 16 << 20;
    /// Maximum length of [`Content::Clock`]: several times the length of a time.
    const LONGEST_CLOCK: usize = 100;
    /// Length of [`Content::Digest`].
    const DIGEST: usize = 64;

    /// Maximum number of bytes of correct content; `text` is the text it is compared with.
    pub(crate) fn longest(&self, text: &[u8]) -> usize {
        match self {
            Content::Any | Content::Prefix => usize::MAX,
            Content::Text => text.len(),
            Content::Clock { .. } => Self::LONGEST_CLOCK,
            Content::Digest => Self::DIGEST,
            Content::Matches(_) | Content::Json(_) => Self::LONGEST,
        }
    }

    /// Number of leading bytes that decide whether the content is correct.
    pub(crate) fn checked_bytes(&self, text: &[u8]) -> usize {
        match self {
            Content::Any => 0,
            Content::Prefix => text.len(),
            content => content.longest(text),
        }
    }
}

impl Expected {
    /// Splits the expected text of an exchange.
    #[inline]
    pub(in crate::dialects) fn parts<'t>(&self, text: &'t [u8]) -> Parts<'t> {
        let fields = Lines(text);
        let members = fields.clone().after(self.given_fields());
        let content = members.clone().after(match &self.content {
            Content::Json(members) => members.iter().filter(|m| matches!(m.is, Is::Given)).count(),
            _ => 0,
        });
        Parts { fields, members, content: content.0 }
    }

    /// Number of fields whose value is given per exchange.
    #[inline]
    pub(in crate::dialects) fn given_fields(&self) -> usize {
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
