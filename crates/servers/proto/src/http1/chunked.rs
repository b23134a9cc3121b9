//! The chunked transfer coding (RFC 9112, section 7), decoded piece by piece. Used by client and
//! server.
//!
//! Every byte of the framing is checked: lenient line ends around chunks allow a request to be
//! hidden in another request's content.

use super::{
    Fault, MAX_TRAILERS, Status,
    head::{LINE_END, check_trailers},
    scan::{Broken, Limits, Scan},
    size_line,
};

/// Decodes chunked content from its first size line to the end of its trailers.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunked {
    state: State,
}

/// What is expected next.
#[derive(Clone, Debug, Default)]
enum State {
    /// A chunk's size line.
    #[default]
    Size,
    /// This many bytes of a chunk, at least one.
    Data(u64),
    /// The CR LF after a chunk.
    DataEnd,
    /// Trailer fields and the empty line.
    Trailers(Scan),
    /// Nothing.
    End,
}

/// What was at the front of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Content, at least one byte.
    Data(&'a [u8]),
    /// Something around the content.
    Framing,
    /// The end of the message.
    End,
}

impl Chunked {
    /// Returns the next piece and its length in bytes; `None` if more bytes must arrive, and after
    /// [`Piece::End`].
    #[inline]
    pub(super) fn next<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<Option<(Piece<'a>, usize)>, Fault> {
        match &mut self.state {
            State::Size => {
                let Some((size, length)) = size_line::read(input)? else { return Ok(None) };
                self.state = match size {
                    0 => State::Trailers(Scan::default()),
                    size => State::Data(size),
                };
                Ok(Some((Piece::Framing, length)))
            }
            State::Data(left) => {
                let length = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                if length == 0 {
                    return Ok(None);
                }
                *left -= length as u64;
                if *left == 0 {
                    self.state = State::DataEnd;
                }
                Ok(Some((Piece::Data(&input[..length]), length)))
            }
            State::DataEnd => match input {
                [b'\r', b'\n', ..] => {
                    self.state = State::Size;
                    Ok(Some((Piece::Framing, 2)))
                }
                [] | [b'\r'] => Ok(None),
                _ => Err(Fault::bad("A chunk's content does not have the announced size.")),
            },
            State::Trailers(scan) => match scan.end(input, TRAILER_LIMITS) {
                Ok(None) => Ok(None),
                Ok(Some(end)) => {
                    if end > b"\r\n".len() {
                        check_trailers(&input[..end], belongs_in_head)?;
                    }
                    self.state = State::End;
                    Ok(Some((Piece::End, end)))
                }
                Err(Broken::BareLf) => Err(LINE_END),
                Err(Broken::FirstLineTooLong | Broken::BlockTooLong) => Err(Fault::new(
                    Status::FieldsTooLarge,
                    "The trailers are longer than 4096 bytes.",
                )),
            },
            State::End => Ok(None),
        }
    }

    /// Bytes of the current chunk that are still missing.
    pub(super) fn left(&self) -> u64 {
        if let State::Data(left) = self.state { left } else { 0 }
    }
}

const TRAILER_LIMITS: Limits = Limits { first_line: MAX_TRAILERS, block: MAX_TRAILERS };

/// Returns whether a trailer must not contain this field (RFC 9110, 6.5.1): fields that frame the
/// message, route it, authenticate the client, control the connection, or describe the content.
fn belongs_in_head(name: &str) -> bool {
    const NAMES: [&str; 16] = [
        "Authorization",
        "Connection",
        "Content-Encoding",
        "Content-Length",
        "Content-Range",
        "Content-Type",
        "Cookie",
        "Expect",
        "Host",
        "Keep-Alive",
        "Proxy-Authorization",
        "Set-Cookie",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
    ];
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the content and its encoded length; `None` if it is incomplete.
    fn read(input: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Fault> {
        let (mut chunked, mut content, mut at) = (Chunked::default(), Vec::new(), 0);
        while let Some((piece, length)) = chunked.next(&input[at..])? {
            at += length;
            match piece {
                Piece::Data(data) => content.extend_from_slice(data),
                Piece::Framing => {}
                Piece::End => return Ok(Some((content, at))),
            }
        }
        Ok(None)
    }

    #[test]
    fn content_ends_with_a_chunk_of_size_zero() {
        for (input, content) in [
            (&b"0\r\n\r\n"[..], &b""[..]),
            (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
            (b"5\r\nhello\r\n6\r\n world\r\n000\r\n\r\n", b"hello world"),
            (b"0000000000000000000a\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
            (b"A\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n", b"\r\n\r\n\r\n\r\n\r\n"),
            (b"1 ; a = b\r\nx\r\n0\r\nExpires: never\r\nX-Sum:1\r\n\r\n", b"x"),
            (b"1;a=\"b;\\\"c\xff\"\r\nx\r\n0;d\r\n\r\n", b"x"),
        ] {
            let after = [input, b"GET"].concat();
            assert_eq!(read(&after), Ok(Some((content.to_vec(), input.len()))));
            for cut in 0..input.len() {
                assert_eq!(read(&input[..cut]), Ok(None), "{}", input[..cut].escape_ascii());
            }
        }
    }

    #[test]
    fn trailers_are_checked_and_ignored() {
        let read = |trailers: &str| read(format!("0\r\n{trailers}\r\n").as_bytes());
        assert_eq!(read("A: b\r\nC:\r\n").map(|r| r.is_some()), Ok(true));
        for bad in ["A : b\r\n", " A: b\r\n", "A: b\r\n c\r\n", "A\r\n", "A: \0\r\n", "A: b\rc\r\n"]
        {
            let status = read(bad).map_err(|fault| fault.status);
            assert_eq!(status, Err(Status::BadRequest), "{}", bad.escape_default());
        }
        for name in ["content-length", "TRANSFER-ENCODING", "Host", "trailer"] {
            let fault = read(&format!("A: b\r\n{name}: 1\r\n")).unwrap_err();
            assert_eq!(fault.status, Status::BadRequest, "{name}");
        }
        let long = format!("A: {}\r\n", "b".repeat(MAX_TRAILERS));
        assert_eq!(read(&long).unwrap_err().status, Status::FieldsTooLarge);
    }
}
