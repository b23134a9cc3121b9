//! Parsing of one complete reply.

use super::line::{integer, line};
use std::borrow::Cow;

/// The content of a reply. The elements of an aggregate are parsed one by one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Null: `_`, or a negative length, e.g. `$-1` or `*-1`.
    Null,
    /// A simple string, e.g. OK.
    Simple(&'a [u8]),
    /// An error, starting with its code.
    Error(&'a [u8]),
    /// A number.
    Integer(i64),
    /// A string of any bytes.
    Bulk(&'a [u8]),
    /// A truth value (RESP3).
    Boolean(bool),
    /// A double or a big number, as text (RESP3).
    Number(&'a [u8]),
    /// A list, a set, a map (keys and values in turn) or a push: its type, the number of elements,
    /// and the bytes from the first element on. Parse them with [`Value::read`], one by one.
    Elements(u8, usize, &'a [u8]),
}

impl<'a> Value<'a> {
    /// Parses the complete value at the front of `bytes` ([`super::Replies`] finds its end).
    /// Returns it with its length in bytes; for an aggregate, with the length of its first line.
    /// Attributes before it are skipped; the length includes them. Returns `None` if it is malformed
    /// or incomplete.
    pub fn read(bytes: &'a [u8]) -> Option<(Value<'a>, usize)> {
        let mut start = 0;
        loop {
            let rest = bytes.get(start..)?;
            if rest.first() != Some(&b'|') {
                let (value, taken) = Value::after_attributes(rest)?;
                return Some((value, start + taken));
            }
            let (text, taken) = line(&rest[1..], rest.len()).ok()??;
            start += 1 + taken;
            for _ in 0..2 * integer(text)?.max(0) {
                start += whole(bytes.get(start..)?)?;
            }
        }
    }

    fn after_attributes(bytes: &'a [u8]) -> Option<(Value<'a>, usize)> {
        let (&kind, rest) = bytes.split_first()?;
        let (text, taken) = line(rest, rest.len()).ok()??;
        let at = 1 + taken;
        let value = match kind {
            b'+' => Value::Simple(text),
            b'-' => Value::Error(text),
            b':' => Value::Integer(std::str::from_utf8(text).ok()?.parse().ok()?),
            b'_' => Value::Null,
            b'#' => Value::Boolean(text == b"t"),
            b',' | b'(' => Value::Number(text),
            b'$' | b'=' | b'!' => {
                let length = integer(text)?;
                if length < 0 {
                    return Some((Value::Null, at));
                }
                let end = at.checked_add(usize::try_from(length).ok()?)?;
                let text = bytes.get(at..end)?;
                let value = match kind {
                    b'!' => Value::Error(text),
                    // Starts with a format of three letters and a colon.
                    b'=' => Value::Bulk(text.get(4..)?),
                    _ => Value::Bulk(text),
                };
                return Some((value, end + 2));
            }
            b'*' | b'~' | b'>' | b'%' => {
                let count = integer(text)?;
                if count < 0 {
                    return Some((Value::Null, at));
                }
                let count = usize::try_from(count).ok()? * if kind == b'%' { 2 } else { 1 };
                Value::Elements(kind, count, &bytes[at..])
            }
            _ => return None,
        };
        Some((value, at))
    }

    /// Returns the value as text for people. Of an aggregate, it shows only the number of elements.
    pub fn text(self) -> Cow<'a, str> {
        match self {
            Value::Null => "(nil)".into(),
            Value::Integer(number) => number.to_string().into(),
            Value::Boolean(is) => is.to_string().into(),
            Value::Elements(_, count, _) => format!("({count} elements)").into(),
            Value::Simple(text) | Value::Error(text) | Value::Bulk(text) | Value::Number(text) => {
                String::from_utf8_lossy(text)
            }
        }
    }
}

/// Returns the length of the value at the front of `bytes`, including its elements.
fn whole(bytes: &[u8]) -> Option<usize> {
    let found = super::Replies::default().next(bytes).ok()?;
    found.whole.then_some(found.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Value<'_>, usize)> {
        Value::read(text.as_bytes())
    }

    #[test]
    fn parses_values_of_every_kind() {
        for (text, value) in [
            ("+OK\r\n", Value::Simple(b"OK")),
            ("-ERR no\r\n", Value::Error(b"ERR no")),
            (":-7\r\n", Value::Integer(-7)),
            ("$-1\r\n", Value::Null),
            ("*-1\r\n", Value::Null),
            ("_\r\n", Value::Null),
            ("#t\r\n", Value::Boolean(true)),
            ("#f\r\n", Value::Boolean(false)),
            (",1.5\r\n", Value::Number(b"1.5")),
            ("$3\r\na\r\n\r\n", Value::Bulk(b"a\r\n")),
            ("=7\r\ntxt:abc\r\n", Value::Bulk(b"abc")),
            ("!3\r\nERR\r\n", Value::Error(b"ERR")),
            ("|1\r\n+ttl\r\n*1\r\n:5\r\n:3\r\n", Value::Integer(3)),
        ] {
            assert_eq!(read(text), Some((value, text.len())), "{text}");
        }
    }

    #[test]
    fn a_million_attributes_do_not_overflow_the_stack() {
        let text = ["|0\r\n".repeat(1_000_000), ":7\r\n".to_string()].concat();
        assert_eq!(read(&text), Some((Value::Integer(7), text.len())));
    }

    #[test]
    fn parses_elements_one_by_one() {
        let (value, _) = read("%1\r\n+k\r\n*2\r\n:1\r\n:2\r\n").unwrap();
        let Value::Elements(b'%', 2, rest) = value else { panic!("{value:?}") };
        let (key, at) = Value::read(rest).unwrap();
        assert_eq!(key, Value::Simple(b"k"));
        assert!(matches!(Value::read(&rest[at..]), Some((Value::Elements(b'*', 2, _), 4))));
    }

    #[test]
    fn refuses_incomplete_and_malformed_values() {
        for wrong in ["", "+OK", "$5\r\nab\r\n", "x\r\n", ":x\r\n", "=2\r\nab\r\n", "|1\r\n+a\r\n"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn shows_values_as_text() {
        assert_eq!(Value::Null.text(), "(nil)");
        assert_eq!(Value::Bulk(b"a").text(), "a");
        assert_eq!(read("*2\r\n:1\r\n:2\r\n").unwrap().0.text(), "(2 elements)");
    }
}
