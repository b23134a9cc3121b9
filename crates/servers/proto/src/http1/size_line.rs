//! The size line before a chunk: size and extensions (RFC 9112, 7.1 and 7.1.1).

use super::{Fault, MAX_CHUNK_LINE, fields::is_token_byte, head::LINE_END};
use memchr::memchr;

/// Parses `chunk-size [ chunk-ext ] CRLF`. Returns the size and the length of the line; `None` if it
/// is incomplete. A size that does not fit is saturated.
#[inline]
pub(super) fn read(input: &[u8]) -> Result<Option<(u64, usize)>, Fault> {
    let window = &input[..input.len().min(MAX_CHUNK_LINE)];
    if window.first().is_some_and(|byte| !byte.is_ascii_hexdigit()) {
        return Err(SIZE);
    }
    let Some(lf) = memchr(b'\n', window) else {
        return if window.len() == MAX_CHUNK_LINE { Err(TOO_LONG) } else { Ok(None) };
    };
    let Some(line) = window[..lf].strip_suffix(b"\r") else { return Err(LINE_END) };
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, extensions) = line.split_at(digits);
    match extensions.first() {
        None => {}
        Some(b';' | b' ' | b'\t') if are_extensions(extensions) => {}
        Some(b';') => return Err(EXTENSION),
        Some(_) => return Err(SIZE),
    }
    let size = digits.iter().fold(0u64, |size, &digit| {
        let digit = char::from(digit).to_digit(16).unwrap_or(0);
        size.saturating_mul(16).saturating_add(u64::from(digit))
    });
    Ok(Some((size, lf + 1)))
}

/// Checks `*( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )` (RFC 9112, 7.1.1). A
/// recipient must ignore unknown extensions.
fn are_extensions(text: &[u8]) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let Some(name) = skip_blanks(rest).strip_prefix(b";").map(skip_blanks) else {
            return false;
        };
        let Some(after) = skip_token(name) else { return false };
        rest = after;
        if let Some(value) = skip_blanks(after).strip_prefix(b"=").map(skip_blanks) {
            let Some(after) = skip_token(value).or_else(|| skip_quoted(value)) else {
                return false;
            };
            rest = after;
        }
    }
    true
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &text[blanks..]
}

fn skip_token(text: &[u8]) -> Option<&[u8]> {
    let token = text.iter().take_while(|&&byte| is_token_byte(byte)).count();
    (token > 0).then_some(&text[token..])
}

/// Skips a quoted string (RFC 9110, 5.6.4).
fn skip_quoted(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text.strip_prefix(b"\"")?;
    loop {
        rest = match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'\t' | b' '..=b'~' | 0x80.., after @ ..] => after,
            [b'\t' | b' '..=b'[' | b']'..=b'~' | 0x80.., after @ ..] => after,
            _ => return None,
        };
    }
}

const SIZE: Fault = Fault::bad("Expected a chunk size: only hexadecimal digits.");
const EXTENSION: Fault = Fault::bad("A chunk's extension is malformed.");
const TOO_LONG: Fault = Fault::bad("A chunk's size line is longer than 256 bytes.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_hexadecimal() {
        for (line, size) in [
            ("0\r\n", 0),
            ("000\r\n", 0),
            ("00000000000000000000a\r\n", 10),
            ("Ff\r\n", 255),
            ("7fffffffffffffff\r\n", i64::MAX as u64),
            ("ffffffffffffffff\r\n", u64::MAX),
            ("10000000000000000\r\n", u64::MAX),
        ] {
            assert_eq!(read(line.as_bytes()), Ok(Some((size, line.len()))), "{line}");
        }
    }

    #[test]
    fn extensions_are_checked_and_ignored() {
        for extensions in [";a", "; a", " ;\ta = b", ";a=\"b;\\\" c\u{e9}\"", ";a;b=c ; d"] {
            let line = format!("1{extensions}\r\nx");
            assert_eq!(read(line.as_bytes()), Ok(Some((1, line.len() - 1))), "{line}");
        }
    }

    #[test]
    fn lines_are_strict() {
        for (line, expected) in [
            ("\r\n", SIZE),
            (" 1\r\n", SIZE),
            ("+1\r\n", SIZE),
            ("-1\r\n", SIZE),
            ("0x1\r\n", SIZE),
            ("1 \r\n", SIZE),
            ("1\t\r\n", SIZE),
            ("1_0\r\n", SIZE),
            ("1g\r\n", SIZE),
            ("1\r\r\n", SIZE),
            ("1\n", LINE_END),
            ("1;a\n", LINE_END),
            ("1;\r\n", EXTENSION),
            ("1;a \r\n", EXTENSION),
            ("1;a=\r\n", EXTENSION),
            ("1;a=b c\r\n", EXTENSION),
            ("1;a=\"b\r\n", EXTENSION),
            ("1;a=\"b\\\r\n", EXTENSION),
            ("1;a\rb\r\n", EXTENSION),
            ("1;a\0\r\n", EXTENSION),
        ] {
            assert_eq!(read(line.as_bytes()), Err(expected), "{}", line.escape_default());
        }
        let long = |length: usize| format!("1;{}\r\n", "a".repeat(length - 4));
        assert_eq!(read(long(MAX_CHUNK_LINE).as_bytes()), Ok(Some((1, MAX_CHUNK_LINE))));
        assert_eq!(read(long(MAX_CHUNK_LINE + 1).as_bytes()), Err(TOO_LONG));
    }
}
