//! Incremental UTF-8 validation: errors are found as early as possible.

use std::str;

/// Validates text in pieces, which may be split anywhere, even inside a character.
#[derive(Clone, Debug, Default)]
pub(super) struct Utf8 {
    /// The start of a character whose rest is missing.
    partial: [u8; 4],
    length: usize,
}

impl Utf8 {
    /// Checks the next piece. Returns `false` if the text so far cannot become valid UTF-8.
    pub(super) fn push(&mut self, mut piece: &[u8]) -> bool {
        while self.length > 0 {
            let Some((&byte, rest)) = piece.split_first() else { return true };
            self.partial[self.length] = byte;
            self.length += 1;
            piece = rest;
            match str::from_utf8(&self.partial[..self.length]) {
                Ok(_) => self.length = 0,
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return false,
            }
        }
        match str::from_utf8(piece) {
            Ok(_) => true,
            Err(error) if error.error_len().is_none() => {
                let partial = &piece[error.valid_up_to()..];
                self.partial[..partial.len()].copy_from_slice(partial);
                self.length = partial.len();
                true
            }
            Err(_) => false,
        }
    }

    /// Ends the text. Returns `false` if it ends inside a character. The next text can follow.
    pub(super) fn end(&mut self) -> bool {
        std::mem::take(&mut self.length) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regatta_testkit::pieces::pieces;

    fn checked(pieces: &[&[u8]]) -> bool {
        let mut utf8 = Utf8::default();
        pieces.iter().all(|piece| utf8.push(piece)) && utf8.end()
    }

    #[test]
    fn invalid_utf8_is_found_at_once() {
        // The start of a surrogate, a code point that is too large, and bytes that never occur.
        for wrong in [&b"\xed\xa0"[..], b"\xf4\x90", b"\xc0", b"\xff", b"\x80", b"\xf8"] {
            let mut utf8 = Utf8::default();
            let (last, start) = wrong.split_last().unwrap();
            assert!(utf8.push(start));
            assert!(!utf8.push(&[*last]), "{wrong:x?}");
        }
    }

    #[test]
    fn an_end_inside_a_character_is_refused_and_the_next_text_is_not() {
        let mut utf8 = Utf8::default();
        assert!(utf8.push("aé".as_bytes()) && utf8.push(&"€".as_bytes()[..2]));
        assert!(!utf8.end());
        assert!(utf8.push(b"a") && utf8.end());
    }

    proptest! {
        #[test]
        fn pieces_are_checked_like_the_whole_text(
            text in prop_oneof![
                any::<String>().prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..20),
                proptest::collection::vec(prop::sample::select(&b"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98"[..]), 0..12),
            ],
            cuts in proptest::collection::vec(1usize..5, 1..10),
        ) {
            let pieces: Vec<_> = pieces(&text, &cuts).collect();
            prop_assert_eq!(checked(&pieces), str::from_utf8(&text).is_ok());
        }
    }
}
