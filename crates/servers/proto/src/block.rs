//! Byte classes in a block of sixteen bytes, as a mask. Also conversion of bytes to text, with a
//! fast path for ASCII.
//!
//! Bit *n* of a mask is set if byte *n* of the block is in the class. The upper half of a mask is
//! zero. A class takes a few SSE2 instructions on x86-64, which always has SSE2, and a loop
//! elsewhere. This is the only file of the crate that contains `unsafe`.

/// Sixteen bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a>(&'a [u8; Block::LEN]);

impl<'a> Block<'a> {
    /// Number of bytes in a block.
    pub(crate) const LEN: usize = 16;

    #[inline]
    pub(crate) fn new(bytes: &'a [u8; Block::LEN]) -> Self {
        Block(bytes)
    }

    /// Control characters: below space, and DEL.
    #[inline]
    pub(crate) fn controls(self) -> u32 {
        find::controls(self.0)
    }

    /// Letters, digits and `-`. Field names rarely contain other bytes.
    #[inline]
    pub(crate) fn name_bytes(self) -> u32 {
        find::name_bytes(self.0)
    }

    /// Letters, digits, `-` and `.`. Hosts rarely contain other bytes.
    #[inline]
    pub(crate) fn host_bytes(self) -> u32 {
        find::host_bytes(self.0)
    }

    /// Bytes above 0x7f.
    #[inline]
    pub(crate) fn above_ascii(self) -> u32 {
        find::above_ascii(self.0)
    }

    /// Digits.
    #[inline]
    pub(crate) fn digits(self) -> u32 {
        find::digits(self.0)
    }

    /// Bytes that are allowed in a path and its query, except `!`, `$`, `%` and `~`.
    #[inline]
    pub(crate) fn path_bytes(self) -> u32 {
        find::path_bytes(self.0)
    }

    /// Bytes equal to `byte`.
    #[inline]
    pub(crate) fn equal_to(self, byte: u8) -> u32 {
        find::equal_to(self.0, byte)
    }
}

/// Returns the bytes from `start` to `end` as text, or `None` if they are not UTF-8 or not all within
/// `bytes`. ASCII is fast, especially if it is short and more bytes follow, e.g. a target in a head.
#[inline]
pub(crate) fn text(bytes: &[u8], start: usize, end: usize) -> Option<&str> {
    let rest = bytes.get(start..)?;
    let text = rest.get(..end.checked_sub(start)?)?;
    let is_ascii = match rest.first_chunk() {
        Some(block) if text.len() <= Block::LEN => {
            Block::new(block).above_ascii().trailing_zeros() as usize >= text.len()
        }
        _ => text.is_ascii(),
    };
    if !is_ascii {
        return std::str::from_utf8(text).ok();
    }
    // SAFETY: no byte of `text` is above 0x7f, so it is ASCII, which is UTF-8.
    Some(unsafe { std::str::from_utf8_unchecked(text) })
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use sse2 as find;

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
use portable as find;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_loadu_si128, _mm_movemask_epi8,
        _mm_or_si128, _mm_set1_epi8,
    };

    macro_rules! masks {
        ($($name:ident($($other:ident: $type:ty)?) = $class:expr;)*) => {$(
            #[inline]
            pub(super) fn $name(bytes: &[u8; 16] $(, $other: $type)?) -> u32 {
                #[inline]
                #[target_feature(enable = "sse2")]
                fn inner(bytes: &[u8; 16] $(, $other: $type)?) -> u32 {
                    #[allow(clippy::redundant_closure_call)]
                    mask(($class)(load(bytes) $(, $other)?))
                }
                // SAFETY: this is compiled only if SSE2 is enabled for the whole crate.
                unsafe { inner(bytes $(, $other)?) }
            }
        )*};
    }
    masks! {
        controls() = |x| or(range(x, 0, 0x1f), equal(x, 0x7f));
        name_bytes() = |x| or(or(letters(x), range(x, b'0', b'9')), equal(x, b'-'));
        // `-`, `.`, `/` and the digits are adjacent.
        host_bytes() = |x| or(or(letters(x), range(x, b'0', b'9')), range(x, b'-', b'.'));
        digits() = |x| range(x, b'0', b'9');
        above_ascii() = |x| x;
        path_bytes() = |x| or(
            or(range(x, b'a', b'z'), range(x, b'&', b';')),
            or(range(x, b'?', b'Z'), or(equal(x, b'='), equal(x, b'_'))),
        );
        equal_to(byte: u8) = |x, byte| equal(x, byte);
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn load(bytes: &[u8; 16]) -> __m128i {
        // SAFETY: the reference is to sixteen readable bytes, and this load needs no alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn mask(x: __m128i) -> u32 {
        _mm_movemask_epi8(x) as u32
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn or(x: __m128i, y: __m128i) -> __m128i {
        _mm_or_si128(x, y)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn equal(x: __m128i, byte: u8) -> __m128i {
        _mm_cmpeq_epi8(x, _mm_set1_epi8(byte as i8))
    }

    /// Bytes from `first` to `last`. SSE2 compares signed bytes only, so the range is moved to the
    /// lowest signed bytes.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn range(x: __m128i, first: u8, last: u8) -> __m128i {
        let moved = _mm_add_epi8(x, _mm_set1_epi8(i8::MIN.wrapping_sub(first as i8)));
        let above = i8::MIN.wrapping_add((last - first + 1) as i8);
        _mm_cmpgt_epi8(_mm_set1_epi8(above), moved)
    }

    /// ASCII letters. Setting the bit 0x20 makes upper-case letters lower-case, and turns no other
    /// byte into a letter.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn letters(x: __m128i) -> __m128i {
        range(or(x, _mm_set1_epi8(0x20)), b'a', b'z')
    }
}

/// The same classes, byte by byte. The tests compare the two.
#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
mod portable {
    pub(super) fn controls(bytes: &[u8; 16]) -> u32 {
        mask(bytes, |byte| byte.is_ascii_control())
    }

    pub(super) fn name_bytes(bytes: &[u8; 16]) -> u32 {
        mask(bytes, |byte| byte.is_ascii_alphanumeric() || byte == b'-')
    }

    pub(super) fn host_bytes(bytes: &[u8; 16]) -> u32 {
        mask(bytes, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
    }

    pub(super) fn above_ascii(bytes: &[u8; 16]) -> u32 {
        mask(bytes, |byte| !byte.is_ascii())
    }

    pub(super) fn digits(bytes: &[u8; 16]) -> u32 {
        mask(bytes, |byte| byte.is_ascii_digit())
    }

    pub(super) fn path_bytes(bytes: &[u8; 16]) -> u32 {
        mask(bytes, |byte| matches!(byte, b'&'..=b';' | b'=' | b'?'..=b'Z' | b'_' | b'a'..=b'z'))
    }

    pub(super) fn equal_to(bytes: &[u8; 16], wanted: u8) -> u32 {
        mask(bytes, |byte| byte == wanted)
    }

    #[inline]
    fn mask(bytes: &[u8; 16], is_of_class: impl Fn(u8) -> bool) -> u32 {
        (0..16).fold(0, |mask, n| mask | u32::from(is_of_class(bytes[n])) << n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_match_those_of_a_loop() {
        type Class = (fn(Block<'_>) -> u32, fn(&[u8; 16]) -> u32);
        let classes: [Class; 7] = [
            (|block| block.above_ascii(), portable::above_ascii),
            (|block| block.controls(), portable::controls),
            (|block| block.name_bytes(), portable::name_bytes),
            (|block| block.host_bytes(), portable::host_bytes),
            (|block| block.digits(), portable::digits),
            (|block| block.path_bytes(), portable::path_bytes),
            (|block| block.equal_to(b'?'), |bytes| portable::equal_to(bytes, b'?')),
        ];
        for (class, (masked, looped)) in classes.into_iter().enumerate() {
            for byte in 0..=u8::MAX {
                for place in 0..16 {
                    for other in [b'a', 0, 0xff] {
                        let mut bytes = [other; 16];
                        bytes[place] = byte;
                        let shown = bytes.escape_ascii();
                        assert_eq!(masked(Block(&bytes)), looped(&bytes), "{class}: {shown}");
                    }
                }
            }
        }
    }

    #[test]
    fn text_is_returned_exactly_for_utf_8() {
        for bytes in [
            &b""[..],
            b"/",
            b"/a%20b",
            b"/aaaaaaaaaaaaaaa",
            b"/aaaaaaaaaaaaaa\xff",
            b"/aaaaaaaaaaaaaaaa\xff",
            b"/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xff",
            b"/\xc3\xa9",
            b"/\xff",
            &[b'a'; 100],
            &[0x80; 40],
        ] {
            for after in [&b""[..], b"aaaaaaaaaaaaaaaa", &[0x80; 16]] {
                let all = [b"a", bytes, after].concat();
                let expected = std::str::from_utf8(bytes).ok();
                assert_eq!(text(&all, 1, 1 + bytes.len()), expected, "{}", all.escape_ascii());
                assert_eq!(text(&all, 1, all.len() + 1), None);
            }
        }
        assert_eq!(text(b"abc", 2, 1), None);
        assert_eq!(text(b"abc", 4, 4), None);
    }

    #[test]
    fn classes_contain_their_bytes() {
        fn all(class: fn(Block<'_>) -> u32, text: &[u8; 16]) -> bool {
            class(Block(text)) == 0xffff
        }
        assert!(all(|block| block.name_bytes(), b"Azaz09-If-Match0"));
        assert!(all(|block| block.host_bytes(), b"aZ.9-127.0.0.1xy"));
        assert!(all(|block| block.path_bytes(), b"/aZ_09?&'()*+,-."));
        assert!(all(|block| block.path_bytes(), b"/:;=@?aZz&;09///"));
        assert!(all(
            |block| block.controls(),
            b"\0\x01\t\r\n\x1f\x7f\x0b\x0c\x10\x02\x03\x04\x05\x06\x07"
        ));
        assert!(all(|block| block.digits(), b"0123456789012345"));
        assert_eq!(Block(b"a?bc?fghijklmnop").equal_to(b'?'), 0b1_0010);
        assert_eq!(Block(b"GET /a b!c$d%e~f").path_bytes(), 0b1010_1010_1011_0111);
    }
}
