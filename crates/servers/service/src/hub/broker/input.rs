//! What the broker sends: replies, and pushes of RESP3.

use regatta_proto::resp::{Malformed, Replies, Value};
use std::mem;

/// The longest reply or message, in bytes. A hub with a shorter `--longest-message` takes those of others.
const LONGEST: usize = 64 << 20;

/// Something that the broker has sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Heard<'a> {
    /// A message in a channel.
    Message { channel: &'a [u8], payload: &'a [u8] },
    /// It confirms a subscription.
    Subscribed,
    /// It has ended a subscription.
    Unsubscribed,
    /// Another push, which means nothing here.
    Other,
    /// A reply to a command: the value with what follows its first line.
    Reply(Value<'a>),
}

/// The start of a reply that is incomplete.
#[derive(Debug, Default)]
pub(super) struct Input {
    replies: Replies,
    held: Vec<u8>,
    /// So many bytes of `held` were looked at.
    scanned: usize,
}

impl Input {
    /// Takes bytes, and passes what is complete to `what`, until that returns false.
    ///
    /// # Errors
    /// The bytes are not RESP, or a message is too long.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        mut what: impl FnMut(Heard<'_>) -> bool,
    ) -> Result<(), Malformed> {
        let mut held = mem::take(&mut self.held);
        let input = if held.is_empty() {
            bytes
        } else {
            held.extend_from_slice(bytes);
            &held
        };
        let (mut start, mut at) = (0, self.scanned);
        loop {
            let found = self.replies.next(&input[at..])?;
            at += found.bytes;
            if !found.whole {
                break;
            }
            let heard = read(&input[start..at]).ok_or(Malformed("a reply cannot be parsed"))?;
            start = at;
            if !what(heard) {
                return Ok(());
            }
        }
        self.scanned = at - start;
        let rest = &input[start..];
        if rest.len() > LONGEST {
            return Err(Malformed("a message is too long"));
        }
        if held.is_empty() {
            self.held = rest.to_vec();
        } else {
            held.drain(..start);
            self.held = held;
        }
        Ok(())
    }
}

/// Parses something that is complete.
fn read(bytes: &[u8]) -> Option<Heard<'_>> {
    let (value, _) = Value::read(bytes)?;
    let Value::Elements(b'>', count, rest) = value else { return Some(Heard::Reply(value)) };
    let (kind, taken) = Value::read(rest)?;
    Some(match kind {
        Value::Bulk(b"message" | b"smessage") if count == 3 => {
            let rest = &rest[taken..];
            let (channel, taken) = Value::read(rest)?;
            let (payload, _) = Value::read(&rest[taken..])?;
            let (Value::Bulk(channel), Value::Bulk(payload)) = (channel, payload) else {
                return None;
            };
            Heard::Message { channel, payload }
        }
        Value::Bulk(b"subscribe" | b"ssubscribe") => Heard::Subscribed,
        Value::Bulk(b"unsubscribe" | b"sunsubscribe") => Heard::Unsubscribed,
        _ => Heard::Other,
    })
}

/// The text of a field of a reply to `HELLO`.
pub(super) fn field<'a>(reply: Value<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let Value::Elements(b'%', count, mut rest) = reply else { return None };
    for _ in 0..count / 2 {
        let (key, taken) = Value::read(rest)?;
        rest = &rest[taken..];
        let (value, _) = Value::read(rest)?;
        if key == Value::Bulk(name) {
            return if let Value::Bulk(text) = value { Some(text) } else { None };
        }
        rest = &rest[Replies::default().next(rest).ok()?.bytes..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: &[u8] = b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n:2\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n\
          -ERR no\r\n>2\r\n+x\r\n+y\r\n>3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n";

    fn all(cut: usize) -> Result<Vec<String>, Malformed> {
        let (mut input, mut all) = (Input::default(), Vec::new());
        for piece in BYTES.chunks(cut) {
            input.take(piece, |heard| {
                all.push(format!("{heard:?}"));
                true
            })?;
        }
        assert_eq!((input.held.len(), input.scanned), (0, 0));
        Ok(all)
    }

    #[test]
    fn replies_and_pushes_are_the_same_however_they_are_cut() {
        let whole = all(usize::MAX).unwrap();
        assert_eq!(whole.len(), 6);
        assert_eq!(
            whole[..3],
            ["Subscribed", "Reply(Integer(2))", "Message { channel: [97], payload: [104, 105] }"]
        );
        assert!(whole[3].starts_with("Reply(Error("));
        assert_eq!(whole[4..], ["Other", "Unsubscribed"]);
        (1..BYTES.len()).for_each(|cut| assert_eq!(all(cut).as_ref(), Ok(&whole), "{cut}"));
    }

    #[test]
    fn pushes_of_sharded_channels_mean_the_same() {
        let of = |bytes: &[u8]| {
            let mut all = Vec::new();
            let taken = Input::default().take(bytes, |heard| {
                all.push(format!("{heard:?}"));
                true
            });
            taken.map(|()| all)
        };
        let text = String::from_utf8(BYTES.to_vec()).unwrap();
        let text = text.replace("$9\r\nsub", "$10\r\nssub").replace("$7\r\nmess", "$8\r\nsmess");
        let text = text.replace("$11\r\nunsub", "$12\r\nsunsub");
        assert_ne!(text.as_bytes(), BYTES);
        assert_eq!(of(text.as_bytes()), of(BYTES));
    }

    #[test]
    fn fields_of_a_greeting_are_found_behind_lists() {
        let hello = b"%3\r\n$7\r\nmodules\r\n*2\r\n*1\r\n+a\r\n+b\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$5\r\nproto\r\n:3\r\n";
        let (value, _) = Value::read(hello).unwrap();
        assert_eq!(field(value, b"role"), Some(&b"master"[..]));
        assert_eq!(field(value, b"proto"), None, "it is a number");
        assert_eq!(field(value, b"mode"), None);
        assert_eq!(field(Value::Null, b"role"), None);
    }

    #[test]
    fn what_is_not_resp_is_an_error() {
        for bytes in [&b"HTTP/1.1 400\r\n"[..], b"*x\r\n", b">3\r\n$7\r\nmessage\r\n:1\r\n:2\r\n"] {
            assert!(Input::default().take(bytes, |_| true).is_err());
        }
    }
}
