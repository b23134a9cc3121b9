//! The fields of a head, read when somebody asks for one.

use memchr::memchr;

/// The fields of a message that was accepted, in order, as they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields<'a> {
    /// Whole lines, all of them checked.
    lines: &'a [u8],
}

impl<'a> Fields<'a> {
    /// `lines` are field lines that were checked, each with its CR LF.
    pub(super) fn new(lines: &'a [u8]) -> Self {
        Fields { lines }
    }

    /// The value of the first field named `name`, whatever its case.
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

/// `text` without spaces, tabs, CR and LF at its ends: optional white space (RFC 9110, 5.6.3) and
/// the end of the line.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let Some(start) = text.iter().position(|b| !blank(b)) else { return &[] };
    let end = text.iter().rposition(|b| !blank(b)).unwrap_or(start);
    &text[start..=end]
}

/// Is `text` a token (RFC 9110, 5.6.2)?
pub(super) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token_byte(byte))
}

/// May `byte` stand in a token?
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_in_order_and_by_name() {
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
    fn tokens() {
        for token in ["GET", "a", "x-1", "!#$%&'*+-.^_`|~"] {
            assert!(is_token(token.as_bytes()), "{token}");
        }
        for other in ["", "a b", "a:", "\"a\"", "a\x0b", "\u{e9}", "a,b", "(a)"] {
            assert!(!is_token(other.as_bytes()), "{other}");
        }
    }
}
