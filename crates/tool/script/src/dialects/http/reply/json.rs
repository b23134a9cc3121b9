//! Compares values inside JSON texts (RFC 8259) as written. Numbers are compared to the last digit,
//! however many they have, because floating point would make different numbers equal.

use super::expected::{Is, Lines, Member};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Maximum nesting depth at which values are compared.
const DEEPEST: usize = 128;

/// Whether `data` is JSON and has these values; `given` are the JSON lines of the exchange's expected
/// text.
pub(super) fn has(data: &[u8], members: &[Member], mut given: Lines<'_>) -> bool {
    let Ok(whole) = serde_json::from_slice::<&RawValue>(data) else { return false };
    members.iter().all(|member| {
        let Some(there) = find(whole, &member.pointer) else { return false };
        match &member.is {
            Is::Any => true,
            Is::Value(is) => same(there, is, DEEPEST),
            Is::Given => given
                .next()
                .and_then(|line| serde_json::from_slice(line).ok())
                .is_some_and(|is| same(there, is, DEEPEST)),
        }
    })
}

/// Returns the value at a JSON Pointer (RFC 6901).
fn find<'j>(whole: &'j RawValue, pointer: &str) -> Option<&'j RawValue> {
    pointer.split('/').skip(1).try_fold(whole, |value, token| match value.get().as_bytes()[0] {
        b'{' => object(value)?.remove(&token.replace("~1", "/").replace("~0", "~")),
        b'[' => {
            let is_index = token == "0" || !token.starts_with(['0', '+']);
            let index: usize = token.parse().ok().filter(|_| is_index)?;
            list(value)?.get(index).copied()
        }
        _ => None,
    })
}

fn object(value: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(value.get()).ok()
}

fn list(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// Whether two values are equal, regardless of the order of members and the notation of numbers.
fn same(a: &RawValue, b: &RawValue, deepest: usize) -> bool {
    let (a_text, b_text) = (a.get(), b.get());
    match (a_text.as_bytes()[0], b_text.as_bytes()[0]) {
        _ if deepest == 0 => false,
        (b'{', b'{') => object(a).zip(object(b)).is_some_and(|(a, b)| {
            let has = |(name, b): (&String, &&RawValue)| {
                a.get(name).is_some_and(|a| same(a, b, deepest - 1))
            };
            a.len() == b.len() && b.iter().all(has)
        }),
        (b'[', b'[') => list(a).zip(list(b)).is_some_and(|(a, b)| {
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| same(a, b, deepest - 1))
        }),
        (b'"', b'"') => text(a).is_some_and(|a| Some(a) == text(b)),
        _ => a_text == b_text || numeral(a_text).is_some_and(|a| Some(a) == numeral(b_text)),
    }
}

fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// Normalises a number for comparison: its sign, its digits without leading and trailing zeros, and the
/// power of ten of the last digit. Returns `None` if it is not a number, or its exponent exceeds 64
/// bits.
fn numeral(text: &str) -> Option<(bool, String, i64)> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let significant = digits.trim_end_matches('0');
    let power = exponent
        .parse::<i64>()
        .ok()?
        .checked_sub(fraction.len() as i64)?
        .checked_add((digits.len() - significant.len()) as i64)?;
    match significant.trim_start_matches('0') {
        "" => Some((false, String::new(), 0)),
        significant => Some((negative, significant.to_owned(), power)),
    }
}

/// JSON within a message, as a text, because not every parser keeps the bytes of a value.
pub(super) mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use serde_json::value::RawValue;

    pub fn serialize<S: Serializer>(value: &RawValue, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value.get())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Box<RawValue>, D::Error> {
        RawValue::from_string(String::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
