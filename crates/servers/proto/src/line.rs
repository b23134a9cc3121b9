//! Lines of decimal integers: the framing and the numbers of the `double` workload.
//!
//! A line ends with `\n`; one `\r` directly before it is dropped. A line has at most [`MAX_LINE`]
//! bytes, excluding its line end.

use crate::block::Block;
use std::ops::Neg;

/// Maximum length of a line in bytes, excluding its line end.
pub const MAX_LINE: usize = 1024;

/// Maximum length of a line with its `\r\n`: a buffer of this size always makes progress.
pub const MAX_FRAME: usize = MAX_LINE + 2;

/// What is at the front of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Split<'a> {
    /// A complete line, and the number of bytes to consume.
    Line {
        /// The line, without `\n` or `\r\n`.
        line: &'a [u8],
        /// Bytes to drop from the front of the buffer.
        consumed: usize,
    },
    /// The line end is missing, but can still arrive within the limit.
    Incomplete,
    /// The line is longer than [`MAX_LINE`].
    TooLong,
}

/// Splits the first line off a buffer.
///
/// Keeps no state between calls: repeated searches are bounded by [`MAX_FRAME`].
#[inline]
pub fn split(input: &[u8]) -> Split<'_> {
    let window = &input[..input.len().min(MAX_FRAME)];
    match end_of_line(window) {
        Some(end) => {
            let line = &window[..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.len() > MAX_LINE {
                return Split::TooLong;
            }
            Split::Line { line, consumed: end + 1 }
        }
        // The byte after the limit may be the `\r` of the line end.
        None if window.len() <= MAX_LINE => Split::Incomplete,
        None if window.len() == MAX_LINE + 1 && window[MAX_LINE] == b'\r' => Split::Incomplete,
        None => Split::TooLong,
    }
}

/// Returns the position of the first `\n`. Most lines end within two blocks, where a call of `memchr`
/// would cost more than it saves.
#[inline]
fn end_of_line(window: &[u8]) -> Option<usize> {
    let mut rest = window;
    for _ in 0..2 {
        let Some((block, behind)) = rest.split_first_chunk() else { break };
        let found = Block::new(block).equal_to(b'\n');
        if found != 0 {
            return Some(window.len() - rest.len() + found.trailing_zeros() as usize);
        }
        rest = behind;
    }
    memchr::memchr(b'\n', rest).map(|end| window.len() - rest.len() + end)
}

/// Parses eight digits. Returns `None` if a byte is not a digit.
///
/// All digits are combined at once: into pairs, then pairs of pairs (D. Lemire, "Quickly parsing
/// eight digits", 2018).
#[inline]
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    let text = u64::from_le_bytes(text);
    // A digit is 0x30 to 0x39: its upper half is 3, and so is that of the byte plus 6.
    let halves = (text & 0xf0f0_f0f0_f0f0_f0f0)
        | ((text.wrapping_add(0x0606_0606_0606_0606) & 0xf0f0_f0f0_f0f0_f0f0) >> 4);
    if halves != 0x3333_3333_3333_3333 {
        return None;
    }
    let digits = text & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (digits.wrapping_mul(2561) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(6_553_601) >> 16) & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(42_949_672_960_001) >> 32)
}

/// A 64-bit integer, signed or unsigned: −2⁶³ to 2⁶⁴ − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer {
    negative: bool,
    magnitude: u64,
}

impl Integer {
    /// Parses `[+-]?[0-9]+`, all of `text`, with leading zeros allowed. Returns `None` for anything
    /// else and for numbers that do not fit in 64 bits.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (negative, digits) = match text {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        if digits.is_empty() {
            return None;
        }
        let mut magnitude = 0u64;
        // Nineteen digits always fit, so only later digits pay for the overflow check.
        let (mut sure, rest) = digits.split_at(digits.len().min(19));
        while let Some((eight, behind)) = sure.split_first_chunk() {
            magnitude = magnitude * 100_000_000 + eight_digits(*eight)?;
            sure = behind;
        }
        for byte in sure {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            magnitude = magnitude * 10 + u64::from(digit);
        }
        for byte in rest {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(digit))?;
        }
        (!negative || magnitude <= 1 << 63).then_some(Integer { negative, magnitude })
    }

    /// Appends the exact double, up to 65 bits, in decimal, without a line end.
    #[inline]
    pub fn write_doubled(self, out: &mut Vec<u8>) {
        let mut buffer = itoa::Buffer::new();
        if self.negative && self.magnitude != 0 {
            out.push(b'-');
        }
        let text = match self.magnitude.checked_mul(2) {
            Some(double) => buffer.format(double),
            None => buffer.format(u128::from(self.magnitude) * 2),
        };
        out.extend_from_slice(text.as_bytes());
    }
}

impl From<u64> for Integer {
    fn from(magnitude: u64) -> Self {
        Integer { negative: false, magnitude }
    }
}

impl From<i64> for Integer {
    fn from(value: i64) -> Self {
        Integer { negative: value < 0, magnitude: value.unsigned_abs() }
    }
}

impl From<Integer> for i128 {
    fn from(value: Integer) -> Self {
        let magnitude = i128::from(value.magnitude);
        if value.negative { magnitude.neg() } else { magnitude }
    }
}

/// Appends the first `limit` bytes of `bytes`, printable: `\` becomes `\\`, other bytes from 0x20
/// to 0x7e stay, and all others become `\xNN`.
pub fn escape(bytes: &[u8], limit: usize, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes.iter().take(limit) {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x20..=0x7e => out.push(byte),
            _ => out.extend_from_slice(&[
                b'\\',
                b'x',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use proptest::prelude::*;
    use regatta_testkit::pieces::pieces;

    fn line(line: &[u8], consumed: usize) -> Split<'_> {
        Split::Line { line, consumed }
    }

    fn double(text: &str) -> Option<String> {
        let mut out = Vec::new();
        Integer::parse(text.as_bytes())?.write_doubled(&mut out);
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_signed_number_keeps_its_sign() {
        for value in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert_eq!(i128::from(Integer::from(value)), i128::from(value));
        }
    }

    #[test]
    fn splits_at_the_newline_and_drops_one_carriage_return() {
        assert_eq!(split(b""), Split::Incomplete);
        assert_eq!(split(b"12"), Split::Incomplete);
        assert_eq!(split(b"12\n34\n"), line(b"12", 3));
        assert_eq!(split(b"12\r\n"), line(b"12", 4));
        assert_eq!(split(b"12\r\r\n"), line(b"12\r", 5));
        assert_eq!(split(b"\n"), line(b"", 1));
        assert_eq!(split(b"\r\n"), line(b"", 2));
    }

    #[test]
    fn the_limit_excludes_the_line_end() {
        let full = [b'7'; MAX_LINE];
        let with = |end: &[u8]| [&full[..], end].concat();
        assert_eq!(split(&full), Split::Incomplete);
        assert_eq!(split(&with(b"\n")), line(&full, MAX_LINE + 1));
        assert_eq!(split(&with(b"\r")), Split::Incomplete);
        assert_eq!(split(&with(b"\r\n")), line(&full, MAX_LINE + 2));
        assert_eq!(split(&with(b"7")), Split::TooLong);
        assert_eq!(split(&with(b"7\n")), Split::TooLong);
        assert_eq!(split(&with(b"\r7")), Split::TooLong);
        assert_eq!(split(&with(b"\r\r\n")), Split::TooLong);
        assert_eq!(split(&[b'\r'; MAX_LINE + 1]), Split::Incomplete);
    }

    #[test]
    fn doubles_at_the_limits_of_64_bits() {
        for (text, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("+21", "42"),
            ("-21", "-42"),
            ("007", "14"),
            ("9223372036854775807", "18446744073709551614"),
            ("9223372036854775808", "18446744073709551616"),
            ("18446744073709551615", "36893488147419103230"),
            ("-9223372036854775808", "-18446744073709551616"),
            ("00000000000000000000000000000000000000012", "24"),
        ] {
            assert_eq!(double(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "+",
            "-",
            "+-1",
            "1 ",
            " 1",
            "1.0",
            "0x10",
            "1e3",
            "١",
            "18446744073709551616",
            "-9223372036854775809",
            "99999999999999999999999",
        ] {
            assert_eq!(double(text), None, "{text}");
        }
    }

    #[test]
    fn escapes_unprintable_bytes() {
        let mut out = Vec::new();
        escape(b"a\\b\x00\x7f\xff\t~ z", 9, &mut out);
        assert_eq!(out, b"a\\\\b\\x00\\x7f\\xff\\x09~ ");
    }

    proptest! {
        #[test]
        fn doubles_like_a_big_integer(text in "[+-]?[0-9]{1,24}") {
            let value: BigInt = text.parse().unwrap();
            let fits = value >= BigInt::from(i64::MIN) && value <= BigInt::from(u64::MAX);
            prop_assert_eq!(double(&text), fits.then(|| (value * 2i32).to_string()));
        }

        #[test]
        fn a_byte_that_is_not_a_digit_is_found_anywhere(
            text in "[0-9]{1,24}",
            at: prop::sample::Index,
            byte: u8,
        ) {
            let mut text = text.into_bytes();
            let at = at.index(text.len());
            let is_sign = at == 0 && text.len() > 1 && b"+-".contains(&byte);
            prop_assume!(!byte.is_ascii_digit() && !is_sign);
            text[at] = byte;
            prop_assert_eq!(Integer::parse(&text), None);
        }

        #[test]
        fn the_first_newline_is_found_anywhere(
            line in proptest::collection::vec(any::<u8>(), 0..100),
            behind in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut text: Vec<u8> = line.into_iter().filter(|byte| *byte != b'\n').collect();
            let end = text.len();
            prop_assert_eq!(end_of_line(&text), None);
            text.push(b'\n');
            text.extend_from_slice(&behind);
            prop_assert_eq!(end_of_line(&text), Some(end));
        }

        #[test]
        fn never_panics_or_consumes_more_than_the_input(bytes: Vec<u8>) {
            if let Split::Line { line, consumed } = split(&bytes) {
                prop_assert!(consumed <= bytes.len() && line.len() < consumed);
                prop_assert!(!line.contains(&b'\n'));
            }
            let _ = Integer::parse(&bytes);
        }

        /// Splitting a growing buffer finds the same lines as splitting all of it at once.
        #[test]
        fn lines_do_not_depend_on_how_the_input_is_split(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..400),
            cuts in proptest::collection::vec(1usize..40, 1..20),
        ) {
            let whole: Vec<Vec<u8>> = text
                .split_inclusive(|b| *b == b'\n')
                .filter(|l| l.ends_with(b"\n"))
                .map(|l| l[..l.len() - 1].to_vec())
                .map(|l| l.strip_suffix(b"\r").map(<[u8]>::to_vec).unwrap_or(l))
                .collect();
            let (mut held, mut found) = (Vec::new(), Vec::new());
            for piece in pieces(&text, &cuts) {
                held.extend_from_slice(piece);
                while let Split::Line { line, consumed } = split(&held) {
                    found.push(line.to_vec());
                    held.drain(..consumed);
                }
            }
            prop_assert_eq!(found, whole);
        }
    }
}
