//! Checks the head and content of a reply.

use super::{
    criteria::Criteria,
    expected::{Content, Digest, Expected, Field, Lines, Status, Value},
    json,
};
use crate::time::{Nanos, SECOND};

/// Whether the head is as expected. `fields` returns an iterator over its fields: names and values.
/// `text` is the expected text of the exchange.
pub(in crate::dialects) fn head<'f, I: Iterator<Item = (&'f [u8], &'f [u8])>>(
    expected: &Expected,
    status: u16,
    fields: impl Fn() -> I,
    text: &[u8],
) -> bool {
    let is_right = match expected.status {
        Status::Is(right) => status == right,
        Status::Class(class) => status / 100 == class,
        Status::Any => true,
    };
    let mut given = expected.parts(text).fields;
    is_right && expected.fields.iter().all(|field| has(fields(), field, &mut given))
}

fn has<'f>(
    fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    field: &Field,
    given: &mut Lines<'_>,
) -> bool {
    let given = if let Value::Given = field.value { given.next() } else { None };
    let named = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(field.name.as_bytes());
    fields.filter(named).any(|(_, value)| match &field.value {
        Value::Any => true,
        Value::Is(text) => value == text.as_bytes(),
        Value::Given => Some(value) == given,
        Value::Matches(regex) => regex.is_match(value),
    })
}

/// Returns until when the content stays correct, or `None` if it is wrong. Stores a digest in
/// `criteria.answer`.
pub(in crate::dialects) fn content(criteria: Criteria<'_>, data: &[u8]) -> Option<Nanos> {
    let Criteria { expected, text, now, waited, wall, .. } = criteria;
    let right = match &expected.content {
        Content::Any => true,
        Content::Text => data == expected.parts(text).content,
        Content::Prefix => data.starts_with(expected.parts(text).content),
        Content::Matches(regex) => regex.is_match(data),
        Content::Json(members) => json::has(data, members, expected.parts(text).members),
        Content::Clock { within } => return clock(data, *within, now, waited, wall()),
        // Each digest differs, so each is checked.
        Content::Digest => {
            return digest(data).map(|digest| criteria.answer.set(digest)).map(|()| 0);
        }
    };
    right.then_some(Nanos::MAX)
}

/// Parses a digest in lower-case hex.
fn digest(data: &[u8]) -> Option<Digest> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut digest = [0; 32];
    if data.len() != 2 * digest.len() {
        return None;
    }
    for (byte, digits) in digest.iter_mut().zip(data.chunks_exact(2)) {
        *byte = value(digits[0])? << 4 | value(digits[1])?;
    }
    Some(digest)
}

/// Checks the content of `hello`. The time in it is as old as the reply, which may have waited to be
/// read while the machine or the load was stalled.
fn clock(data: &[u8], within: u64, now: Nanos, waited: Nanos, wall: Nanos) -> Option<Nanos> {
    let seconds = data.strip_prefix(b"Hello. The time is ")?;
    let digit_or_point = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    if !seconds.first().is_some_and(u8::is_ascii_digit) || !seconds.iter().all(digit_or_point) {
        return None;
    }
    let seconds: f64 = std::str::from_utf8(seconds).ok()?.parse().ok()?;
    let ahead_s = seconds - wall as f64 / SECOND as f64;
    let within = within as f64;
    // The clock advances: correct content stays correct until it is too old.
    let stays_s = ahead_s + within;
    let waited_s = waited as f64 / SECOND as f64;
    (ahead_s <= within && stays_s + waited_s >= 0.0)
        .then(|| now + (stays_s.max(0.0) * SECOND as f64) as Nanos)
}

#[cfg(test)]
mod tests;
