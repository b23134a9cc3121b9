//! What is expected of the messages of a stream.

use super::template::Template;
use serde::{Deserialize, Serialize};

/// The messages of a right stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageStream {
    /// Their exact number. `None`: any, also 0.
    pub messages: Option<u32>,
    /// What each of them must be. `None`: any message.
    pub template: Option<Template>,
}

/// Returns what a call expects: the bytes of its only message, or a stream. `messages` and placeholders
/// need a stream.
///
/// # Errors
/// What needs a stream although there is none, in one sentence.
pub fn expect(
    is_stream: bool,
    messages: Option<u32>,
    template: Option<Template>,
) -> Result<(Option<Vec<u8>>, Option<MessageStream>), &'static str> {
    if is_stream {
        return Ok((None, Some(MessageStream { messages, template })));
    }
    if messages.is_some() {
        return Err("a number of messages needs a stream");
    }
    match template.map(Template::into_bytes) {
        None => Ok((None, None)),
        Some(Some(bytes)) => Ok((Some(bytes), None)),
        Some(None) => Err("{n} is the number of a message in a stream, and needs one"),
    }
}

impl MessageStream {
    /// The messages, for people.
    #[cold]
    pub fn in_words(&self) -> String {
        let several = match self.messages {
            None => "any number of messages".to_owned(),
            Some(0) => return "no message".into(),
            Some(1) => "1 message".into(),
            Some(messages) => format!("{messages} messages"),
        };
        match &self.template {
            None => several,
            Some(template) => format!("{several}, each {}", template.in_words()),
        }
    }
}
