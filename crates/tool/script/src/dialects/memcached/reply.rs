//! Incremental parser of replies to `get`: a value of the requested key, or none.

use crate::text::printable;

/// Maximum number of bytes of a line: a key has at most 250, and numbers follow it.
const LONGEST_LINE: usize = 512;

/// State of a partially received reply.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// The partial line.
    line: Vec<u8>,
    /// Number of missing bytes of the value, including its newline.
    left: u64,
    /// Whether the line before a value has been received.
    has_value: bool,
}

/// The received bytes are not a reply to `get`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidReply;

impl Reply {
    /// Returns the partial line received before, for messages.
    pub fn partial_line(&self) -> &[u8] {
        &self.line
    }

    /// Returns what was received of an incomplete reply, for messages; `None` if nothing was. The bytes of a
    /// value are not kept.
    pub fn received(&self) -> Option<String> {
        match (self.has_value, self.left) {
            (true, 0) => Some("a value, without the END after it".into()),
            (true, left) => Some(format!("part of a value; bytes missing, with its CR LF: {left}")),
            (false, _) => (!self.line.is_empty()).then(|| printable(&self.line)),
        }
    }

    /// Consumes the reply's bytes from the front of `input`. Returns whether the reply is complete; if
    /// so, this is ready for the next reply. On `Err`, only the bytes of a wrong line that were received
    /// before are kept.
    pub fn take(&mut self, input: &mut &[u8], key: &[u8]) -> Result<bool, InvalidReply> {
        while !input.is_empty() {
            if self.left > 0 {
                self.take_value(input)?;
                continue;
            }
            let end = memchr::memchr(b'\n', input).map(|at| at + 1);
            let here = end.unwrap_or(input.len());
            let before = self.line.len();
            if before + here > LONGEST_LINE {
                return Err(InvalidReply);
            }
            if end.is_none() || !self.line.is_empty() {
                self.line.extend_from_slice(&input[..here]);
            }
            let line = if self.line.is_empty() { &input[..here] } else { &self.line };
            let is_end = line == b"END\r\n";
            if end.is_some() && !is_end {
                let Some(length) = length_of(line, key).filter(|_| !self.has_value) else {
                    self.line.truncate(before);
                    return Err(InvalidReply);
                };
                (self.left, self.has_value) = (length + 2, true);
            }
            *input = &input[here..];
            if end.is_some() {
                self.line.clear();
            }
            if is_end {
                self.has_value = false;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Skips the value, and checks the newline after it.
    fn take_value(&mut self, input: &mut &[u8]) -> Result<(), InvalidReply> {
        let here = self.left.min(input.len() as u64) as usize;
        let (value, rest) = input.split_at(here);
        for (i, byte) in value.iter().enumerate().skip(here.saturating_sub(2)) {
            let wanted = match self.left - i as u64 {
                2 => b'\r',
                1 => b'\n',
                _ => continue,
            };
            if *byte != wanted {
                return Err(InvalidReply);
            }
        }
        (self.left, *input) = (self.left - here as u64, rest);
        Ok(())
    }
}

/// Parses the length in `VALUE KEY FLAGS LENGTH`.
fn length_of(line: &[u8], key: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"VALUE ")?.strip_prefix(key)?.strip_prefix(b" ")?;
    let text = std::str::from_utf8(rest.strip_suffix(b"\r\n")?).ok()?;
    let (flags, length) = text.split_once(' ')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_right = is_number(length) && is_number(flags) && flags.parse::<u32>().is_ok();
    let length = length.parse().ok().filter(|length| *length <= u64::from(u32::MAX));
    length.filter(|_| is_right)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads in pieces of this size. Returns whether the reply is complete, and how many bytes remain.
    fn read(bytes: &[u8], pieces: usize) -> Result<(bool, usize), InvalidReply> {
        let (mut reply, mut taken) = (Reply::default(), 0);
        for piece in bytes.chunks(pieces) {
            let mut input = piece;
            let whole = reply.take(&mut input, b"k")?;
            taken += piece.len() - input.len();
            if whole {
                return Ok((true, bytes.len() - taken));
            }
        }
        Ok((false, bytes.len() - taken))
    }

    #[test]
    fn reads_a_value_or_none_however_it_is_split() {
        for pieces in [1, 2, 3, 5, 100] {
            for right in [
                "END\r\n",
                "VALUE k 0 0\r\n\r\nEND\r\n",
                "VALUE k 4294967295 6\r\nEND\r\n\n\r\nEND\r\n",
            ] {
                assert_eq!(read(right.as_bytes(), pieces), Ok((true, 0)), "{right:?}");
                let more = format!("{right}EN");
                assert!(matches!(read(more.as_bytes(), pieces), Ok((true, 1..=2))), "{right:?}");
                for cut in 0..right.len() {
                    assert_eq!(read(&right.as_bytes()[..cut], pieces), Ok((false, 0)), "{right:?}");
                }
            }
        }
    }

    #[test]
    fn rejects_invalid_replies() {
        let long = format!("VALUE k 0 {}\r\n", "1".repeat(LONGEST_LINE));
        for pieces in [1, 2, 3, 5, 1_000] {
            for wrong in [
                "END\n",
                "end\r\n",
                "ERROR\r\n",
                "SERVER_ERROR out of memory\r\n",
                "VALUE other 0 1\r\nx\r\nEND\r\n",
                "VALUE k1 0 1\r\nx\r\nEND\r\n",
                "VALUE k 0 1\r\nxy\r\nEND\r\n",
                "VALUE k 0 1\r\nx\n\nEND\r\n",
                "VALUE k 0 +1\r\nx\r\nEND\r\n",
                "VALUE k 4294967296 1\r\nx\r\nEND\r\n",
                "VALUE k 0 1 7\r\nx\r\nEND\r\n",
                "VALUE k 0 1\r\nx\r\nVALUE k 0 1\r\nx\r\nEND\r\n",
                "VALUE k 0 4294967296\r\n",
                &long,
            ] {
                assert_eq!(
                    read(wrong.as_bytes(), pieces),
                    Err(InvalidReply),
                    "{wrong:?} by {pieces}"
                );
            }
        }
    }
}
