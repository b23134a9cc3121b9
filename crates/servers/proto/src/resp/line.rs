//! Lines that end with CR LF, and the numbers in them.

use super::Malformed;
use memchr::memchr;

/// Maximum length of a line with a number, in bytes. A longer line is not a number.
const LONGEST_NUMBER: usize = 32;

/// Returns the line at the front of `input` without its CR LF, and its length with them; `None` if
/// it is incomplete. `most`: the maximum length of the line in bytes.
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

/// Returns the number in a line at the front of `input`, and the length of the line with its CR LF, if the number is
/// canonical and has at most three digits. Nearly all lengths have: they are read without a search for the end of the line.
#[inline]
fn short_number(input: &[u8]) -> Option<(i64, usize)> {
    let mut number = 0;
    for at in 0..=3 {
        match *input.get(at)? {
            digit @ b'0'..=b'9' if at == 0 || number > 0 => {
                number = number * 10 + i64::from(digit - b'0');
            }
            b'\r' if at > 0 && input.get(at + 1) == Some(&b'\n') => return Some((number, at + 2)),
            _ => return None,
        }
    }
    None
}

/// Returns the length in a line at the front of `input`, and that of the line with its CR LF; `None` if the line is
/// incomplete.
#[inline]
pub(super) fn length(input: &[u8]) -> Result<Option<(i64, usize)>, Malformed> {
    if let Some(found) = short_number(input) {
        return Ok(Some(found));
    }
    let Some((text, taken)) = line(input, LONGEST_NUMBER)? else { return Ok(None) };
    let length = integer(text).ok_or(Malformed("a length is not a number"))?;
    Ok(Some((length, taken)))
}

/// Returns the number in a line at the front of `input`, and the length of the line with its CR LF;
/// `None` if the line is incomplete. The number must be canonical.
#[inline]
pub(super) fn number(input: &[u8], wrong: &'static str) -> Result<Option<(i64, usize)>, Malformed> {
    if let Some(found) = short_number(input) {
        return Ok(Some(found));
    }
    let Some((text, taken)) = line(input, LONGEST_NUMBER).map_err(|_| Malformed(wrong))? else {
        return Ok(None);
    };
    canonical(text).map(|number| Some((number, taken))).ok_or(Malformed(wrong))
}

/// Parses an integer in the only form that Redis accepts in commands (`string2ll` in its `util.c`): no
/// plus sign, no leading zeros, no −0.
#[inline]
fn canonical(text: &[u8]) -> Option<i64> {
    match text {
        b"0" => Some(0),
        [b'1'..=b'9', ..] | [b'-', b'1'..=b'9', ..] => {
            integer(text).or_else(|| std::str::from_utf8(text).ok()?.parse().ok())
        }
        _ => None,
    }
}

/// Parses an integer of at most 18 digits. Every length and count in a reply fits.
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
    fn lines_end_with_cr_and_lf() {
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
    fn a_short_number_is_read_like_any_other() {
        let some = [
            "", "0", "1", "9", "10", "99", "100", "999", "1000", "00", "01", "012", "-1", "a",
            "1a", "\n",
        ];
        for text in some {
            for end in ["", "\r", "\r\n", "\r\n5", "\rx", "\n"] {
                let input = [text.as_bytes(), end.as_bytes()].concat();
                let expected = match line(&input, LONGEST_NUMBER) {
                    Ok(Some((text, taken))) if text.len() <= 3 && !text.starts_with(b"-") => {
                        canonical(text).map(|number| (number, taken))
                    }
                    _ => None,
                };
                assert_eq!(short_number(&input), expected, "{}", input.escape_ascii());
            }
        }
    }

    #[test]
    fn only_whole_numbers_are_accepted() {
        for (text, value) in
            [("0", 0), ("-1", -1), ("007", 7), ("999999999999999999", 999_999_999_999_999_999)]
        {
            assert_eq!(integer(text.as_bytes()), Some(value));
        }
        for wrong in ["", "-", "+1", "1 ", "1.0", "0x1", "1000000000000000000", "--1"] {
            assert_eq!(integer(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_canonical_number_has_one_form() {
        for value in [0, 1, -1, 10, 999_999_999_999_999_999, i64::MAX, i64::MIN] {
            assert_eq!(canonical(value.to_string().as_bytes()), Some(value));
        }
        for wrong in
            ["", "-", "-0", "00", "03", "-03", "+3", " 3", "3 ", "3a", "--1", "9223372036854775808"]
        {
            assert_eq!(canonical(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
