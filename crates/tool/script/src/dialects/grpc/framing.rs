//! A message while it arrives: a flag, a length and the message itself.

/// Length of the prefix, in bytes: the flag for compression, and the length, big-endian.
pub(super) const PREFIX: usize = 5;

/// Appends a message with its prefix, not compressed.
pub(super) fn write(message: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
}

/// How much of the message has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Framing {
    prefix: [u8; PREFIX],
    /// Number of bytes of prefix and message so far.
    came: u64,
}

/// Why the content of a response is not one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The flag is 1.
    Compressed,
    /// The flag is neither 0 nor 1.
    Flag(u8),
    /// The message has ended, and more bytes follow.
    Behind { length: u32 },
    /// There is no message.
    Missing,
    /// The prefix ends after this number of bytes.
    PrefixCut(u64),
    /// The message has fewer bytes than its prefix announces.
    Cut { length: u32, came: u64 },
}

impl Framing {
    /// Takes the next piece of a content that is only this message. Returns the part of it that is inside
    /// the message, and how many bytes of the message were before it.
    #[inline]
    pub fn take<'p>(&mut self, piece: &'p [u8]) -> Result<(usize, &'p [u8]), Fault> {
        match self.take_front(piece)? {
            (at, part, []) => Ok((at, part)),
            _ => Err(Fault::Behind { length: self.announced() }),
        }
    }

    /// Takes the front of a piece, up to the end of the message. Returns how many bytes of the message were
    /// before it, the part that is inside the message, and what is behind the message.
    #[inline]
    pub fn take_front<'p>(
        &mut self,
        piece: &'p [u8],
    ) -> Result<(usize, &'p [u8], &'p [u8]), Fault> {
        let missing = (PREFIX as u64).saturating_sub(self.came) as usize;
        let (prefix, message) = piece.split_at(missing.min(piece.len()));
        if !prefix.is_empty() {
            let at = self.came as usize;
            self.prefix[at..at + prefix.len()].copy_from_slice(prefix);
            match self.prefix[0] {
                0 => {}
                1 => return Err(Fault::Compressed),
                flag => return Err(Fault::Flag(flag)),
            }
            self.came += prefix.len() as u64;
        }
        let at = self.came.saturating_sub(PREFIX as u64);
        let Some(length) = self.length() else { return Ok((0, &[], &[])) };
        let missing = u64::from(length) - at;
        let here = missing.min(message.len() as u64) as usize;
        self.came += here as u64;
        let (part, rest) = message.split_at(here);
        Ok((at as usize, part, rest))
    }

    /// Whether the whole message has arrived.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.length().is_some_and(|length| self.came - PREFIX as u64 == u64::from(length))
    }

    /// The length of the message, once its prefix has arrived.
    #[inline]
    pub fn length(&self) -> Option<u32> {
        (self.came >= PREFIX as u64).then(|| self.announced())
    }

    /// The content is complete.
    #[inline]
    pub fn end(&self) -> Result<(), Fault> {
        let Some(length) = self.length() else {
            return Err(if self.came == 0 { Fault::Missing } else { Fault::PrefixCut(self.came) });
        };
        let came = self.came - PREFIX as u64;
        if came < u64::from(length) { Err(Fault::Cut { length, came }) } else { Ok(()) }
    }

    #[inline]
    fn announced(&self) -> u32 {
        let [_, length @ ..] = self.prefix;
        u32::from_be_bytes(length)
    }
}

impl Fault {
    /// The fault, for people.
    #[cold]
    pub fn in_words(self) -> String {
        match self {
            Fault::Compressed => {
                "a message with the flag for compression, although the request accepts none".into()
            }
            Fault::Flag(flag) => {
                format!("a message with the flag {flag}; only 0 and 1 are defined")
            }
            Fault::Behind { length } => format!(
                "more bytes behind the message of {length} bytes: the response to a unary call has \
                 one message"
            ),
            Fault::Missing => "no message".into(),
            Fault::PrefixCut(came) => {
                format!("a message that ends after {came} of the {PREFIX} bytes of its prefix")
            }
            Fault::Cut { length, came } => format!(
                "a message that ends after {came} bytes; its prefix announces {length} bytes"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message in this content, in pieces.
    fn read(pieces: &[&[u8]]) -> Result<Vec<u8>, Fault> {
        let (mut framing, mut message) = (Framing::default(), Vec::new());
        for piece in pieces {
            let (at, part) = framing.take(piece)?;
            assert_eq!(at, message.len());
            message.extend_from_slice(part);
        }
        framing.end().map(|()| message)
    }

    /// What every split of a content into three pieces gives; it must be the same for all.
    fn read_at_every_split(content: &[u8]) -> Result<Vec<u8>, Fault> {
        let whole = read(&[content]);
        for first in 0..=content.len() {
            for second in first..=content.len() {
                let pieces = [&content[..first], &content[first..second], &content[second..]];
                assert_eq!(read(&pieces), whole, "{first}, {second}");
            }
        }
        let single: Vec<&[u8]> = content.chunks(1).collect();
        assert_eq!(read(&single), whole);
        whole
    }

    #[test]
    fn a_message_is_read_at_every_split() {
        for message in [&b""[..], b"a", b"hello, world"] {
            let mut content = Vec::new();
            write(message, &mut content);
            assert_eq!(read_at_every_split(&content), Ok(message.to_vec()));
        }
    }

    #[test]
    fn every_fault_is_found_at_every_split() {
        let two = b"\0\0\0\0\x01a\0\0\0\0\x01a";
        for (content, fault) in [
            (&b""[..], Fault::Missing),
            (b"\0", Fault::PrefixCut(1)),
            (b"\0\0\0\0", Fault::PrefixCut(4)),
            (b"\0\0\0\0\x02a", Fault::Cut { length: 2, came: 1 }),
            (b"\0\0\0\0\x01", Fault::Cut { length: 1, came: 0 }),
            (b"\0\0\0\0\0a", Fault::Behind { length: 0 }),
            (b"\0\0\0\0\x01ab", Fault::Behind { length: 1 }),
            (two, Fault::Behind { length: 1 }),
            (b"\x01\0\0\0\x01a", Fault::Compressed),
            (b"\x02\0\0\0\x01a", Fault::Flag(2)),
            (b"\xff", Fault::Flag(255)),
            (b"\0\xff\xff\xff\xffabc", Fault::Cut { length: u32::MAX, came: 3 }),
        ] {
            assert_eq!(read_at_every_split(content), Err(fault), "{content:?}");
        }
    }
}
