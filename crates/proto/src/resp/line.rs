//! Lines that end with CR LF, and the numbers in them.

use super::Malformed;
use memchr::memchr;

/// Longest line of a number or of a type, in bytes. One that is longer is no number.
const LONGEST_NUMBER: usize = 32;

/// The line at the front of `input`, without its CR LF, and what it takes with them; `None` if more
/// must come. `most`: bytes that the line may have.
#[inline]
pub(super) fn line(input: &[u8], most: usize) -> Result<Option<(&[u8], usize)>, Malformed> {
    let window = &input[..input.len().min(most + 2)];
    match memchr(b'\r', window) {
        Some(end) if end + 1 < window.len() => match window[end + 1] {
            b'\n' => Ok(Some((&window[..end], end + 2))),
            _ => Err(Malformed("expected CR LF at the end of a line")),
        },
        None if window.len() > most => Err(Malformed("a line is too long")),
        Some(end) if end > most => Err(Malformed("a line is too long")),
        _ => Ok(None),
    }
}

/// The number in a line at the front of `input`: a length or a count. −1 stands for null.
#[inline]
pub(super) fn number(input: &[u8], wrong: &'static str) -> Result<Option<(i64, usize)>, Malformed> {
    let Some((text, taken)) = line(input, LONGEST_NUMBER).map_err(|_| Malformed(wrong))? else {
        return Ok(None);
    };
    integer(text).map(|number| Some((number, taken))).ok_or(Malformed(wrong))
}

/// A whole number of at most 18 digits, which every length and count of RESP fits into.
#[inline]
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let number = digits.iter().try_fold(0_i64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit <= 9).then(|| number * 10 + i64::from(digit))
    })?;
    Some(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_both_bytes() {
        assert_eq!(line(b"ab\r\nc", 9), Ok(Some((&b"ab"[..], 4))));
        assert_eq!(line(b"\r\n", 9), Ok(Some((&b""[..], 2))));
        for more in [&b""[..], b"ab", b"ab\r"] {
            assert_eq!(line(more, 9), Ok(None));
        }
        assert!(line(b"ab\rc", 9).is_err());
        assert_eq!(line(b"abc\r\n", 3), Ok(Some((&b"abc"[..], 5))));
        assert_eq!(line(b"abc\r", 3), Ok(None));
        assert!(line(b"abcd", 3).is_err());
        assert!(line(b"abcd\r\n", 3).is_err());
        assert_eq!(line(b"abc", 3), Ok(None));
    }

    #[test]
    fn numbers_are_whole() {
        for (text, value) in
            [("0", 0), ("-1", -1), ("007", 7), ("999999999999999999", 999_999_999_999_999_999)]
        {
            assert_eq!(integer(text.as_bytes()), Some(value));
        }
        for wrong in ["", "-", "+1", "1 ", "1.0", "0x1", "1000000000000000000", "--1"] {
            assert_eq!(integer(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
