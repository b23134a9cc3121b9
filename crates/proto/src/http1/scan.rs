//! Where a block of lines ends: a head, or the trailers behind a chunked body.
//!
//! It looks at line ends only. A bare LF is refused (RFC 9112, 2.2 permits to take it for a line
//! end, but then two readers may disagree), and so is what is longer than its limit.

use memchr::memchr;

/// How far a block has been searched. Begins at zero and goes with one buffer that only grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    /// Where the first line ends, zero as long as it does not.
    first_end: usize,
    /// Where the current line begins.
    line: usize,
    /// The next byte to look at.
    at: usize,
}

/// Limits of a block in bytes, line ends counted.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) first_line: usize,
    pub(super) block: usize,
}

/// Why a block can have no end any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    BareLf,
    FirstLineTooLong,
    BlockTooLong,
}

impl Scan {
    /// The end of the block, its empty line included; `None` if that has not come.
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

    /// Has nothing been searched?
    #[inline]
    pub(super) fn is_new(&self) -> bool {
        self.at == 0
    }

    /// Where the first line ends, once it is there.
    pub(super) fn first_line(&self) -> Option<usize> {
        (self.first_end > 0).then_some(self.first_end)
    }

    /// The end of the last whole line.
    pub(super) fn whole_lines(&self) -> usize {
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { first_line: 8, block: 16 };

    /// What a scan says of all of `input` at once. Byte by byte it must say the same.
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
    fn limits_count_the_line_ends() {
        assert_eq!(end(b"123456\r\n\r\n"), Ok(Some(10)));
        assert_eq!(end(b"1234567\r\n"), Err(Broken::FirstLineTooLong));
        assert_eq!(end(b"12345678"), Err(Broken::FirstLineTooLong));
        assert_eq!(end(b"1\r\n456789\r\n\r\n"), Ok(Some(13)));
        assert_eq!(end(b"1\r\n456789abc\r\n\r\n"), Ok(Some(16)));
        assert_eq!(end(b"1\r\n456789abcd\r\n\r\n"), Err(Broken::BlockTooLong));
        assert_eq!(end(b"1\r\n456789abcdefg"), Err(Broken::BlockTooLong));
    }
}
