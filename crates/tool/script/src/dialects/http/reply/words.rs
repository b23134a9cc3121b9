//! Describes expected replies in words, for readers of a disqualification.

use super::expected::{Content, Expected, Field, Is, Lines, Member, Parts, Status, Value};
use crate::{text::printable, workload::regex::as_written};

impl Expected {
    /// Describes the expected reply; `text` is the expected text of the exchange.
    pub(in crate::dialects) fn in_words(&self, text: &[u8]) -> String {
        let mut parts = vec![match self.status {
            Status::Is(status) => format!("status {status}"),
            Status::Class(class) => format!("a status from {class}00 to {class}99"),
            Status::Any => "an HTTP reply".to_owned(),
        }];
        let Parts { mut fields, mut members, content: text } = self.parts(text);
        parts.extend(self.fields.iter().map(|field| field.in_words(&mut fields)));
        match &self.content {
            Content::Any => {}
            Content::Text if text.is_empty() => parts.push("no content".into()),
            Content::Text => parts.push(format!("the content {}", printable(text))),
            Content::Prefix => parts.push(format!("a content starting with {}", printable(text))),
            Content::Matches(regex) => {
                parts.push(format!("a content matching {}", as_written(regex)));
            }
            Content::Digest => parts.push("a SHA-256 in lower-case hex as the content".into()),
            Content::Json(wanted) => {
                parts.push("a content in JSON".to_owned());
                parts.extend(wanted.iter().map(|member| member.in_words(&mut members)));
            }
            Content::Clock { within } => parts.push(format!(
                "the content \"Hello. The time is S\", where S is within {within} \
                 seconds of this machine's clock"
            )),
        }
        parts.join(", ")
    }
}

impl Field {
    fn in_words(&self, given: &mut Lines<'_>) -> String {
        let name = &self.name;
        match &self.value {
            Value::Any => format!("the field {name}"),
            Value::Is(text) => format!("the field {name}: {text}"),
            Value::Given => format!("the field {name}: {}", next(given)),
            Value::Matches(regex) => {
                format!("the field {name} matching {}", as_written(regex))
            }
        }
    }
}

impl Member {
    fn in_words(&self, given: &mut Lines<'_>) -> String {
        let place = if self.pointer.is_empty() { "the whole value" } else { &self.pointer };
        match &self.is {
            Is::Any => format!("{place} present"),
            Is::Value(value) => format!("{place} = {value}"),
            Is::Given => format!("{place} = {}", next(given)),
        }
    }
}

fn next(given: &mut Lines<'_>) -> String {
    String::from_utf8_lossy(given.next().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests;
