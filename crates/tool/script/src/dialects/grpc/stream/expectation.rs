//! What is expected of the messages of a stream.

use crate::dialects::grpc::{
    protobuf::{Numbered, Types},
    rules,
    template::Template,
};
use serde::{Deserialize, Serialize};

/// Maximum number of characters of a message that are shown.
const SHOWN: usize = 300;

/// The messages of a right stream, as they were described.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageStream {
    /// Their exact number. `None`: any, also 0.
    pub messages: Option<u32>,
    /// What each of them must be. `None`: any message.
    pub each: Option<ExpectedMessage>,
}

/// An expected message. That of a stream may have its number in place of placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedMessage {
    /// Exactly these bytes, as hex digits with placeholders ([`Template::parse`]).
    Hex(String),
    /// A message of the type that the method returns, as JSON with placeholders, in any encoding.
    Json(String),
}

/// The messages of a right stream.
#[derive(Debug)]
pub struct StreamExpectation {
    described: MessageStream,
    pub(super) each: Each,
}

/// What each message of a stream must be.
#[derive(Debug)]
pub(super) enum Each {
    Any,
    Bytes(Template),
    Fields(Box<Numbered>),
}

impl StreamExpectation {
    /// What a call of the method at this path expects. JSON needs the types of its messages.
    ///
    /// # Errors
    /// What is wrong with the messages.
    pub fn new(
        described: &MessageStream,
        path: &str,
        types: Option<&Types>,
    ) -> Result<StreamExpectation, String> {
        let each = match &described.each {
            None => Each::Any,
            Some(ExpectedMessage::Hex(text)) => Each::Bytes(Template::parse(text)?),
            Some(ExpectedMessage::Json(text)) => {
                let types = types.ok_or(rules::NEEDS_TYPES)?;
                Each::Fields(types.numbered(path, text, described.messages)?.into())
            }
        };
        Ok(StreamExpectation { described: described.clone(), each })
    }

    /// The exact number of messages; `None`: any.
    #[inline]
    pub(super) fn messages(&self) -> Option<u32> {
        self.described.messages
    }

    /// The messages, for people; a long one is cut.
    #[cold]
    pub fn in_words(&self) -> String {
        let several = match self.messages() {
            None => "any number of messages".to_owned(),
            Some(0) => return "no message".into(),
            Some(1) => "1 message".into(),
            Some(messages) => format!("{messages} messages"),
        };
        let text = match &self.described.each {
            None => return several,
            Some(ExpectedMessage::Hex(text) | ExpectedMessage::Json(text)) => text,
        };
        match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{several}, each {}...", &text[..end]),
            None if text.is_empty() => format!("{several}, each empty"),
            None => format!("{several}, each {text}"),
        }
    }
}
