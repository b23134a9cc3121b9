//! The fields of a head, parsed on access.

use memchr::memchr;

/// The fields of an accepted message, in order, as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields<'a> {
    /// Complete lines, all of them checked.
    lines: &'a [u8],
}

impl<'a> Fields<'a> {
    /// `lines` are checked field lines, each with its CR LF.
    pub(super) fn new(lines: &'a [u8]) -> Self {
        Fields { lines }
    }

    /// Returns the value of the first field named `name`, ignoring case.
    pub fn get(self, name: &str) -> Option<&'a [u8]> {
        self.iter().find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// All fields: name and value, without the white space around the value.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut rest = self.lines;
        std::iter::from_fn(move || {
            let end = memchr(b'\n', rest)?;
            let (line, later) = rest.split_at(end + 1);
            rest = later;
            let colon = memchr(b':', line)?;
            Some((&line[..colon], trim(&line[colon + 1..])))
        })
    }
}

/// Removes spaces, tabs, CR and LF from both ends of `text`: optional white space (RFC 9110, 5.6.3)
/// and the line end.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let Some(start) = text.iter().position(|b| !blank(b)) else { return &[] };
    let end = text.iter().rposition(|b| !blank(b)).unwrap_or(start);
    &text[start..=end]
}

/// Returns whether `text` is a token (RFC 9110, 5.6.2).
pub(super) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token_byte(byte))
}

/// Returns whether `byte` is allowed in a token.
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_order_and_by_name() {
        let fields = Fields::new(b"Host: a\r\nX:\t b c \t\r\nEmpty:\r\nx: second\r\n");
        let all: Vec<_> = fields.iter().collect();
        assert_eq!(
            all,
            [(&b"Host"[..], &b"a"[..]), (b"X", b"b c"), (b"Empty", b""), (b"x", b"second")]
        );
        assert_eq!(fields.get("HOST"), Some(&b"a"[..]));
        assert_eq!(fields.get("x"), Some(&b"b c"[..]));
        assert_eq!(fields.get("none"), None);
        assert_eq!(Fields::new(b"").iter().count(), 0);
    }

    #[test]
    fn tokens_are_recognised() {
        for token in ["GET", "a", "x-1", "!#$%&'*+-.^_`|~"] {
            assert!(is_token(token.as_bytes()), "{token}");
        }
        for other in ["", "a b", "a:", "\"a\"", "a\x0b", "\u{e9}", "a,b", "(a)"] {
            assert!(!is_token(other.as_bytes()), "{other}");
        }
    }
}
