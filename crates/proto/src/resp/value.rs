//! One whole reply, read where somebody wants to know what it says.

use super::line::{integer, line};
use std::borrow::Cow;

/// What a reply says. Aggregates lend their elements one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing: `$-1`, `*-1` or `_`.
    Null,
    /// A simple string, e.g. OK.
    Simple(&'a [u8]),
    /// An error, its kind first.
    Error(&'a [u8]),
    /// A number.
    Integer(i64),
    /// A string of any bytes.
    Bulk(&'a [u8]),
    /// A truth value (RESP3).
    Boolean(bool),
    /// A double, or a number of any size, as it is written (RESP3).
    Number(&'a [u8]),
    /// A list, a set, a map (keys and values in turn) or a push: its type, how many elements, and
    /// their bytes, to be read by [`Value::read`] one after the other.
    Elements(u8, usize, &'a [u8]),
}

impl<'a> Value<'a> {
    /// The value at the front of `bytes`, in which it lies whole ([`super::Replies`] finds that), and
    /// how many bytes it takes, but for an aggregate: then those of its first line. Attributes in
    /// front of it are skipped. `None` if it is malformed.
    pub fn read(bytes: &'a [u8]) -> Option<(Value<'a>, usize)> {
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
                    // A format of three letters and a colon comes first.
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
            b'|' => {
                let mut behind = at;
                for _ in 0..2 * integer(text)?.max(0) {
                    behind += whole(bytes.get(behind..)?)?;
                }
                let (value, taken) = Value::read(bytes.get(behind..)?)?;
                return Some((value, behind + taken));
            }
            _ => return None,
        };
        Some((value, at))
    }

    /// For people: as `redis-cli` would show the first of it.
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

/// The length of the value at the front of `bytes`, its elements included.
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
    fn values_of_every_kind() {
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
    fn elements_one_after_the_other() {
        let (value, _) = read("%1\r\n+k\r\n*2\r\n:1\r\n:2\r\n").unwrap();
        let Value::Elements(b'%', 2, rest) = value else { panic!("{value:?}") };
        let (key, at) = Value::read(rest).unwrap();
        assert_eq!(key, Value::Simple(b"k"));
        assert!(matches!(Value::read(&rest[at..]), Some((Value::Elements(b'*', 2, _), 4))));
    }

    #[test]
    fn what_is_not_whole_or_no_value() {
        for wrong in ["", "+OK", "$5\r\nab\r\n", "x\r\n", ":x\r\n", "=2\r\nab\r\n", "|1\r\n+a\r\n"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn values_as_people_read_them() {
        assert_eq!(Value::Null.text(), "(nil)");
        assert_eq!(Value::Bulk(b"a").text(), "a");
        assert_eq!(read("*2\r\n:1\r\n:2\r\n").unwrap().0.text(), "(2 elements)");
    }
}
