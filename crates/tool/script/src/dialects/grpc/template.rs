//! The bytes of each message of a stream, with its number. They are compared part by part, so none of them is built.

use super::{hex::from_hex, placeholder, rules};
use std::ops::ControlFlow;

/// Maximum number of bytes of an encoded number.
const LONGEST_NUMBER: usize = 20;

/// The bytes of a message, in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// These bytes.
    Bytes(Vec<u8>),
    Number(Number),
    /// The key of a field and a number; nothing if the number is 0.
    UnlessZero(Vec<u8>, Number),
    /// The number of bytes of these parts as a varint, and the parts.
    Delimited(Vec<Part>),
}

/// The number of the message in its stream, counted from 1, plus `plus`, which is at least -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub plus: i64,
    pub form: Form,
}

/// How a number is encoded (Protocol Buffers, "Encoding").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// 7 bits in each byte, the lowest first: 1 to 10 bytes.
    Varint,
    /// Twice the number, as a varint.
    Zigzag,
    /// 4 bytes, the lowest first: the number modulo 2³².
    Fixed32,
    /// 8 bytes, the lowest first.
    Fixed64,
    /// A floating-point number of 4 bytes.
    Float,
    /// A floating-point number of 8 bytes.
    Double,
    /// Decimal digits.
    Digits,
}

/// An encoded number.
struct Encoded {
    bytes: [u8; LONGEST_NUMBER],
    length: usize,
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
            let number = number(placeholder)
                .ok_or_else(|| format!("{{{placeholder}}} is unknown; {}", expected()))?;
            parts.push(Part::Number(number));
            numbers += 1;
            rest = behind;
        }
        placeholder::check_count(numbers)?;
        parts.push(Part::Bytes(from_hex(rest)?));
        Template::new(parts)
    }

    /// Creates a template.
    ///
    /// # Errors
    /// Messages that are too long.
    pub(super) fn new(parts: Vec<Part>) -> Result<Template, String> {
        let template = Template { parts: joined(parts) };
        rules::check_length(template.length(u64::MAX) as usize)?;
        Ok(template)
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
        length(&self.parts, number)
    }

    /// Compares a part of a message, which begins `at` bytes behind the start of it and is inside it.
    /// Returns the offset of the first byte that differs, from the start of the message.
    #[inline]
    pub(super) fn difference(&self, number: u64, at: usize, part: &[u8]) -> Option<usize> {
        let mut start = 0;
        let compared = walk(&self.parts, number, &mut |bytes| {
            let end = start + bytes.len();
            let (from, until) = (start.max(at), end.min(at + part.len()));
            if from < until {
                let (came, bytes) =
                    (&part[from - at..until - at], &bytes[from - start..until - start]);
                if came != bytes {
                    let same = came.iter().zip(bytes).take_while(|(came, bytes)| came == bytes);
                    return ControlFlow::Break(from + same.count());
                }
            }
            start = end;
            ControlFlow::Continue(())
        });
        compared.break_value()
    }

    /// Appends the first `length` bytes of a message; all of them if it is shorter.
    pub(super) fn write(&self, number: u64, length: usize, out: &mut Vec<u8>) {
        let end = out.len().saturating_add(length);
        let _ = walk(&self.parts, number, &mut |bytes| {
            let missing = end - out.len();
            out.extend_from_slice(&bytes[..missing.min(bytes.len())]);
            if missing > bytes.len() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }
}

/// Joins bytes that follow each other, and leaves out empty ones.
fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        match (all.last_mut(), part) {
            (Some(Part::Bytes(before)), Part::Bytes(bytes)) => before.extend(bytes),
            (_, Part::Bytes(bytes)) if bytes.is_empty() => {}
            (_, Part::Delimited(parts)) => all.push(Part::Delimited(joined(parts))),
            (_, part) => all.push(part),
        }
    }
    all
}

/// Calls `visit` with the bytes of each part, until it breaks.
#[inline]
fn walk<B>(
    parts: &[Part],
    number: u64,
    visit: &mut impl FnMut(&[u8]) -> ControlFlow<B>,
) -> ControlFlow<B> {
    for part in parts {
        match part {
            Part::Bytes(bytes) => visit(bytes)?,
            Part::Number(placed) => visit(placed.encode(number).as_bytes())?,
            Part::UnlessZero(_, placed) if placed.value(number) == 0 => {}
            Part::UnlessZero(key, placed) => {
                visit(key)?;
                visit(placed.encode(number).as_bytes())?;
            }
            Part::Delimited(parts) => {
                visit(Encoded::varint(length(parts, number)).as_bytes())?;
                walk(parts, number, visit)?;
            }
        }
    }
    ControlFlow::Continue(())
}

fn length(parts: &[Part], number: u64) -> u64 {
    let length = |part: &Part| match part {
        Part::Bytes(bytes) => bytes.len() as u64,
        Part::Number(placed) => placed.encode(number).length as u64,
        Part::UnlessZero(_, placed) if placed.value(number) == 0 => 0,
        Part::UnlessZero(key, placed) => (key.len() + placed.encode(number).length) as u64,
        Part::Delimited(parts) => {
            let inner = length(parts, number);
            Encoded::varint(inner).length as u64 + inner
        }
    };
    parts.iter().map(length).sum()
}

impl Number {
    fn value(self, number: u64) -> u64 {
        number.saturating_add_signed(self.plus)
    }

    /// Encodes it in the message with this number.
    #[inline]
    fn encode(self, number: u64) -> Encoded {
        let value = self.value(number);
        match self.form {
            Form::Varint => Encoded::varint(value),
            Form::Zigzag => Encoded::varint(value.wrapping_mul(2)),
            Form::Fixed32 => Encoded::new((value as u32).to_le_bytes()),
            Form::Fixed64 => Encoded::new(value.to_le_bytes()),
            Form::Float => Encoded::new((value as f32).to_le_bytes()),
            Form::Double => Encoded::new((value as f64).to_le_bytes()),
            Form::Digits => Encoded::digits(value),
        }
    }
}

impl Form {
    /// The forms that hex digits may name.
    const NAMED: [(&str, Form); 3] =
        [("varint", Form::Varint), ("fixed32", Form::Fixed32), ("fixed64", Form::Fixed64)];
}

impl Encoded {
    #[inline]
    fn new<const N: usize>(of: [u8; N]) -> Encoded {
        let mut bytes = [0; LONGEST_NUMBER];
        bytes[..N].copy_from_slice(&of);
        Encoded { bytes, length: N }
    }

    #[inline]
    fn varint(mut left: u64) -> Encoded {
        let (mut bytes, mut length) = ([0; LONGEST_NUMBER], 0);
        while left >= 0x80 {
            bytes[length] = left as u8 | 0x80;
            left >>= 7;
            length += 1;
        }
        bytes[length] = left as u8;
        Encoded { bytes, length: length + 1 }
    }

    #[inline]
    fn digits(value: u64) -> Encoded {
        let length = value.checked_ilog10().map_or(1, |log| log as usize + 1);
        let (mut bytes, mut left) = ([0; LONGEST_NUMBER], value);
        for digit in bytes[..length].iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        Encoded { bytes, length }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Parses the inside of a placeholder in hex digits.
fn number(text: &str) -> Option<Number> {
    let (number, form) = text.split_once(':')?;
    let (_, form) = Form::NAMED.into_iter().find(|(name, _)| *name == form)?;
    Some(Number { plus: placeholder::plus(number)?, form })
}

fn expected() -> &'static str {
    "expected {n:varint}, {n:fixed32} or {n:fixed64}: the number of the message in its stream, counted \
     from 1. It may be {n-1:…} or {n+K:…}, with a number K up to 4294967295"
}
