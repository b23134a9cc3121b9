//! Assembles complete replies from bytes that arrive in pieces.

use regatta_proto::resp::{Malformed, Replies};

/// State of assembling a reply.
#[derive(Debug, Default)]
pub(super) struct Framing {
    replies: Replies,
    /// Bytes received before of a reply that was split.
    held: Vec<u8>,
    /// Number of these bytes that are known to belong to the reply.
    framed: usize,
    /// Whether `held` was returned as a complete reply.
    is_whole: bool,
}

impl Framing {
    /// Consumes the bytes of a reply from the front of `input`, and returns the reply if it is
    /// complete.
    ///
    /// # Errors
    /// The bytes are not a valid reply. Nothing was consumed then.
    pub fn take<'r, 'i: 'r>(
        &'r mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<&'r [u8]>, Malformed> {
        if self.is_whole {
            self.held.clear();
            (self.is_whole, self.framed) = (false, 0);
        }
        let all: &'i [u8] = input;
        if self.held.is_empty() {
            let found = self.replies.next(all)?;
            refuse_push(found.push)?;
            if found.whole {
                let (reply, rest) = all.split_at(found.bytes);
                *input = rest;
                return Ok(Some(reply));
            }
            self.framed = found.bytes;
            self.held.extend_from_slice(all);
            *input = &[];
            return Ok(None);
        }
        let before = self.held.len();
        self.held.extend_from_slice(all);
        let found = match self.replies.next(&self.held[self.framed..]) {
            Ok(found) => found,
            Err(malformed) => {
                self.held.truncate(before);
                return Err(malformed);
            }
        };
        refuse_push(found.push)?;
        self.framed += found.bytes;
        if !found.whole {
            *input = &[];
            return Ok(None);
        }
        *input = &all[self.framed - before..];
        self.held.truncate(self.framed);
        self.is_whole = true;
        Ok(Some(&self.held))
    }

    /// Returns the bytes of an incomplete reply.
    pub fn partial(&self) -> &[u8] {
        if self.is_whole { &[] } else { &self.held }
    }
}

/// Rejects a push: no connection has subscribed to anything.
fn refuse_push(is_push: bool) -> Result<(), Malformed> {
    if is_push { Err(Malformed("an unsolicited push")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assembles_replies_however_they_are_split() {
        let all: [&[u8]; 5] =
            [b"+OK\r\n", b"*2\r\n$3\r\na\r\n\r\n$-1\r\n", b":12\r\n", b"-ERR x\r\n", b"$0\r\n\r\n"];
        let bytes = all.concat();
        for pieces in 1..=bytes.len() {
            let (mut framing, mut found) = (Framing::default(), Vec::new());
            for mut piece in bytes.chunks(pieces) {
                while !piece.is_empty() {
                    if let Some(reply) = framing.take(&mut piece).unwrap() {
                        found.push(reply.to_vec());
                    }
                }
            }
            assert_eq!(found, all, "by {pieces}");
            assert_eq!(framing.partial(), b"");
        }
    }

    #[test]
    fn does_not_consume_invalid_bytes() {
        for wrong in [&b"x\r\n"[..], b">1\r\n+a\r\n", b"$1\r\nab\r\n"] {
            let mut piece = wrong;
            assert!(Framing::default().take(&mut piece).is_err());
            assert_eq!(piece, wrong);
            let (mut framing, mut first) = (Framing::default(), &wrong[..1]);
            let begins = framing.take(&mut first);
            if begins.is_ok() {
                let mut rest = &wrong[1..];
                assert!(framing.take(&mut rest).is_err(), "{}", wrong.escape_ascii());
            }
        }
    }
}
