//! The expected bytes of each message of a stream: hex digits, with placeholders for its number.

use super::super::{
    hex::{all_in_hex, from_hex, in_hex},
    rules,
};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Maximum number of placeholders.
const MOST_PLACEHOLDERS: usize = 16;

/// Maximum number of bytes of an encoded number.
const LONGEST_NUMBER: usize = 10;

/// The bytes of a message, in parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    parts: Vec<Part>,
    /// Length of all literal parts together, in bytes.
    literal: u64,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The number of the message in its stream, counted from 1, plus `plus`, which is at least -1.
    Number { plus: i64, form: Form },
}

/// How a number is encoded (Protocol Buffers, "Encoding").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// 7 bits in each byte, the lowest first: 1 to 10 bytes.
    Varint,
    /// 4 bytes, the lowest first: the number modulo 2³².
    Fixed32,
    /// 8 bytes, the lowest first.
    Fixed64,
}

/// An encoded number.
struct Encoded {
    bytes: [u8; LONGEST_NUMBER],
    length: usize,
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Template::parse(&text)
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.as_text(all_in_hex)
    }
}

impl Template {
    /// Parses pairs of hex digits, with placeholders `{n:FORM}`, `{n+K:FORM}` or `{n-1:FORM}` between them:
    /// the number of the message in its stream, counted from 1, as FORM `varint`, `fixed32` or `fixed64`.
    ///
    /// # Errors
    /// What is wrong, and what was expected.
    pub fn parse(text: &str) -> Result<Template, String> {
        let (mut parts, mut numbers, mut rest) = (Vec::new(), 0, text);
        while let Some((before, behind)) = rest.split_once('{') {
            parts.push(Part::Bytes(from_hex(before)?));
            let (placeholder, behind) = behind
                .split_once('}')
                .ok_or_else(|| format!("{{{behind} has no end; {}", expected()))?;
            parts.push(
                number(placeholder)
                    .ok_or_else(|| format!("{{{placeholder}}} is unknown; {}", expected()))?,
            );
            numbers += 1;
            rest = behind;
        }
        if numbers > MOST_PLACEHOLDERS {
            return Err(format!("{numbers} placeholders; expected at most {MOST_PLACEHOLDERS}"));
        }
        parts.push(Part::Bytes(from_hex(rest)?));
        parts.retain(|part| !matches!(part, Part::Bytes(bytes) if bytes.is_empty()));
        let literal = parts.iter().map(Part::literal).sum();
        rules::check_length(literal)?;
        Ok(Template { parts, literal: literal as u64 })
    }

    /// The bytes, if they are the same for every message.
    pub fn into_bytes(mut self) -> Option<Vec<u8>> {
        match self.parts.pop() {
            None => Some(Vec::new()),
            Some(Part::Bytes(bytes)) if self.parts.is_empty() => Some(bytes),
            Some(_) => None,
        }
    }

    /// Length of a message, in bytes.
    #[inline]
    pub(super) fn length(&self, number: u64) -> u64 {
        let length = |part: &Part| match part {
            Part::Bytes(_) => 0,
            Part::Number { plus, form } => form.encode(number, *plus).length as u64,
        };
        self.literal + self.parts.iter().map(length).sum::<u64>()
    }

    /// Compares a part of a message, which begins `at` bytes behind the start of it and is inside it.
    /// Returns the offset of the first byte that differs, from the start of the message.
    #[inline]
    pub(super) fn difference(&self, number: u64, at: usize, part: &[u8]) -> Option<usize> {
        let mut start = 0;
        for expected in &self.parts {
            let encoded;
            let bytes = match expected {
                Part::Bytes(bytes) => bytes,
                Part::Number { plus, form } => {
                    encoded = form.encode(number, *plus);
                    &encoded.bytes[..encoded.length]
                }
            };
            let end = start + bytes.len();
            let (from, until) = (start.max(at), end.min(at + part.len()));
            if from < until {
                let (came, bytes) =
                    (&part[from - at..until - at], &bytes[from - start..until - start]);
                if came != bytes {
                    let same = came.iter().zip(bytes).take_while(|(came, bytes)| came == bytes);
                    return Some(from + same.count());
                }
            }
            start = end;
        }
        None
    }

    /// The template, for people; a long one is cut.
    #[cold]
    pub(super) fn in_words(&self) -> String {
        if self.parts.is_empty() { "empty".into() } else { self.as_text(in_hex) }
    }

    /// The template as [`Template::parse`] reads it, with `hex` for bytes.
    fn as_text(&self, hex: fn(&[u8]) -> String) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Bytes(bytes) => text.push_str(&hex(bytes)),
                Part::Number { plus: 0, form } => {
                    write!(text, "{{n:{}}}", form.name()).expect("text")
                }
                Part::Number { plus, form } => {
                    write!(text, "{{n{plus:+}:{}}}", form.name()).expect("text");
                }
            }
        }
        text
    }
}

impl Part {
    /// Number of bytes that do not depend on the number of the message.
    fn literal(&self) -> usize {
        if let Part::Bytes(bytes) = self { bytes.len() } else { 0 }
    }
}

impl Form {
    const ALL: [Form; 3] = [Form::Varint, Form::Fixed32, Form::Fixed64];

    fn name(self) -> &'static str {
        match self {
            Form::Varint => "varint",
            Form::Fixed32 => "fixed32",
            Form::Fixed64 => "fixed64",
        }
    }

    /// Encodes the number of a message plus `plus`.
    #[inline]
    fn encode(self, number: u64, plus: i64) -> Encoded {
        let mut left = number.saturating_add_signed(plus);
        let mut bytes = [0; LONGEST_NUMBER];
        let fixed = left.to_le_bytes();
        let length = match self {
            Form::Fixed32 => 4,
            Form::Fixed64 => 8,
            Form::Varint => {
                let mut length = 0;
                while left >= 0x80 {
                    bytes[length] = left as u8 | 0x80;
                    left >>= 7;
                    length += 1;
                }
                bytes[length] = left as u8;
                return Encoded { bytes, length: length + 1 };
            }
        };
        bytes[..length].copy_from_slice(&fixed[..length]);
        Encoded { bytes, length }
    }
}

/// Parses the inside of a placeholder.
fn number(text: &str) -> Option<Part> {
    let (number, form) = text.split_once(':')?;
    let form = Form::ALL.into_iter().find(|known| known.name() == form)?;
    let plus = match number.strip_prefix('n')? {
        "" => 0,
        plus if plus.starts_with(['+', '-']) => plus.parse().ok()?,
        _ => return None,
    };
    check_plus(plus).ok().map(|()| Part::Number { plus, form })
}

fn check_plus(plus: i64) -> Result<(), String> {
    match (-1..=i64::from(u32::MAX)).contains(&plus) {
        true => Ok(()),
        false => Err(format!("{{n{plus:+}}}: expected -1 to +{}", u32::MAX)),
    }
}

fn expected() -> &'static str {
    "expected {n:varint}, {n:fixed32} or {n:fixed64}: the number of the message in its stream, counted \
     from 1. It may be {n-1:…} or {n+K:…}, with a number K up to 4294967295"
}
