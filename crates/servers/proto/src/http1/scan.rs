//! The end of a block of lines: a head, or the trailers after chunked content.
//!
//! It only examines line ends. It refuses a block that exceeds its limit, and a bare LF: RFC 9112,
//! 2.2 permits to accept one as a line end, but then two recipients may disagree.

use memchr::memchr;

/// The progress of a search for the end of a block. It starts at zero and belongs to one growing
/// buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    /// Where the first line ends; zero while it is incomplete.
    first_end: usize,
    /// Where the current line starts.
    line: usize,
    /// The next byte to examine.
    at: usize,
}

/// Limits of a block in bytes, including line ends.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) first_line: usize,
    pub(super) block: usize,
}

/// Why a block can no longer have an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    BareLf,
    FirstLineTooLong,
    BlockTooLong,
}

impl Scan {
    /// Returns the end of the block, after its empty line; `None` if it is incomplete.
    #[inline]
    pub(super) fn end(&mut self, input: &[u8], limits: Limits) -> Result<Option<usize>, Broken> {
        let window = &input[..input.len().min(limits.block)];
        while let Some(found) = memchr(b'\n', &window[self.at..]) {
            let lf = self.at + found;
            if self.first_end == 0 && lf >= limits.first_line {
                return Err(Broken::FirstLineTooLong);
            }
            if lf == self.line || window[lf - 1] != b'\r' {
                return Err(Broken::BareLf);
            }
            let empty = lf == self.line + 1;
            self.line = lf + 1;
            self.at = lf + 1;
            if self.first_end == 0 {
                self.first_end = lf + 1;
            }
            if empty {
                return Ok(Some(lf + 1));
            }
        }
        self.at = window.len();
        if self.first_end == 0 && window.len() >= limits.first_line {
            return Err(Broken::FirstLineTooLong);
        }
        if window.len() == limits.block {
            return Err(Broken::BlockTooLong);
        }
        Ok(None)
    }

    /// Returns whether nothing has been searched.
    #[inline]
    pub(super) fn is_new(&self) -> bool {
        self.at == 0
    }

    /// Where the first line ends, once it is complete.
    pub(super) fn first_line(&self) -> Option<usize> {
        (self.first_end > 0).then_some(self.first_end)
    }

    /// The end of the last complete line.
    pub(super) fn whole_lines(&self) -> usize {
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { first_line: 8, block: 16 };

    /// The result of scanning `input` at once. Scanning byte by byte must give the same.
    fn end(input: &[u8]) -> Result<Option<usize>, Broken> {
        let mut scan = Scan::default();
        let growing =
            (0..=input.len()).map(|n| scan.end(&input[..n], LIMITS)).find(|r| *r != Ok(None));
        let whole = Scan::default().end(input, LIMITS);
        assert_eq!(growing.unwrap_or(Ok(None)), whole, "{}", input.escape_ascii());
        whole
    }

    #[test]
    fn a_block_ends_with_an_empty_line() {
        assert_eq!(end(b""), Ok(None));
        assert_eq!(end(b"a\r\nb\r\n"), Ok(None));
        assert_eq!(end(b"a\r\nb\r\n\r"), Ok(None));
        assert_eq!(end(b"a\r\nb\r\n\r\nc"), Ok(Some(8)));
        assert_eq!(end(b"\r\n"), Ok(Some(2)));
    }

    #[test]
    fn a_line_ends_with_cr_lf() {
        for bare in [&b"\n"[..], b"a\n", b"a\r\n\n", b"a\r\nb\n", b"a\r\n\r\r\n\n"] {
            assert_eq!(end(bare), Err(Broken::BareLf), "{}", bare.escape_ascii());
        }
    }

    #[test]
    fn limits_include_the_line_ends() {
        assert_eq!(end(b"123456\r\n\r\n"), Ok(Some(10)));
        assert_eq!(end(b"1234567\r\n"), Err(Broken::FirstLineTooLong));
        assert_eq!(end(b"12345678"), Err(Broken::FirstLineTooLong));
        assert_eq!(end(b"1\r\n456789\r\n\r\n"), Ok(Some(13)));
        assert_eq!(end(b"1\r\n456789abc\r\n\r\n"), Ok(Some(16)));
        assert_eq!(end(b"1\r\n456789abcd\r\n\r\n"), Err(Broken::BlockTooLong));
        assert_eq!(end(b"1\r\n456789abcdefg"), Err(Broken::BlockTooLong));
    }
}
