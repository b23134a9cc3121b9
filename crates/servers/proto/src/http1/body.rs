//! The content of a request: a view of the input buffer.

use super::chunked::{Chunked, Piece};

/// A request's content, complete and checked.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// The content as sent, including the chunk framing.
    raw: &'a [u8],
    chunked: bool,
}

impl<'a> Body<'a> {
    pub(super) fn new(raw: &'a [u8], chunked: bool) -> Self {
        Body { raw, chunked }
    }

    /// The content in order: one piece, or one per chunk. No piece is empty.
    pub fn pieces(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.raw;
        let mut chunked = self.chunked.then(Chunked::default);
        std::iter::from_fn(move || {
            let Some(chunked) = &mut chunked else {
                let piece = std::mem::take(&mut rest);
                return (!piece.is_empty()).then_some(piece);
            };
            // It was decoded before, so there is no fault, and the end is reached.
            while let Ok(Some((piece, length))) = chunked.next(rest) {
                rest = &rest[length..];
                if let Piece::Data(data) = piece {
                    return Some(data);
                }
            }
            None
        })
    }

    /// The number of bytes of content.
    pub fn len(self) -> usize {
        self.pieces().map(<[u8]>::len).sum()
    }

    /// Returns whether there is no content.
    pub fn is_empty(self) -> bool {
        self.pieces().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_content_without_its_framing() {
        let pieces = |body: Body<'static>| body.pieces().collect::<Vec<_>>();
        assert!(Body::new(b"", false).is_empty());
        assert_eq!(pieces(Body::new(b"abc", false)), [b"abc"]);
        let chunked = Body::new(b"2\r\nab\r\n1;x\r\nc\r\n0\r\nA: b\r\n\r\n", true);
        assert_eq!(pieces(chunked), [&b"ab"[..], b"c"]);
        assert!(chunked.len() == 3 && !chunked.is_empty());
        assert!(Body::new(b"0\r\n\r\n", true).is_empty());
    }
}
