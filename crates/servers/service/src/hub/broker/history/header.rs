//! A message with a place in the history of its room, as the broker passes it on: a header before the message as hubs
//! publish it.
//!
//! The header is the version (one byte: 2) and, in ASCII, each with a space behind it: the offset, the epoch (16
//! hexadecimal digits), the number of messages that the room keeps, and how long, in seconds. The script that publishes
//! writes it. If the room has no history there, all of them are 0.

use crate::hub::history::{Epoch, HistoryLimits, Position};
use std::time::Duration;

const VERSION: u8 = 2;

/// A message with a place in the history of its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Placed<'a> {
    /// `None`: the room has no history at the broker.
    pub position: Option<Position>,
    /// What the hub that has published it keeps.
    pub limits: HistoryLimits,
    /// The message, without this header.
    pub message: &'a [u8],
}

impl<'a> Placed<'a> {
    /// Reads it. `None`: it has not this form.
    pub(in super::super) fn read(bytes: &'a [u8]) -> Option<Placed<'a>> {
        let (_, rest) = bytes.split_first().filter(|(version, _)| **version == VERSION)?;
        let mut parts = rest.splitn(5, |byte| *byte == b' ');
        let mut word = || str::from_utf8(parts.next()?).ok();
        let (offset, epoch) = (word()?.parse().ok()?, read_epoch(word()?)?);
        let (messages, seconds) = (word()?.parse().ok()?, word()?.parse().ok()?);
        let limits = HistoryLimits { messages, time: Duration::from_secs(seconds) };
        let position = (offset > 0).then_some(Position { epoch, offset });
        Some(Placed { position, limits, message: parts.next()? })
    }
}

/// An epoch, in its form as a text.
pub(super) fn read_epoch(text: &str) -> Option<Epoch> {
    let epoch = u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16)?;
    Some(Epoch(epoch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_has_its_place_before_it() {
        let placed = Placed::read(b"\x0217 00000000000000ff 100 300 \x01 a b").unwrap();
        let position = Some(Position { epoch: Epoch(255), offset: 17 });
        let limits = HistoryLimits { messages: 100, time: Duration::from_secs(300) };
        assert_eq!(placed, Placed { position, limits, message: b"\x01 a b" });
        let none = Placed::read(b"\x020 0000000000000000 0 0 x").unwrap();
        assert_eq!((none.position, none.message), (None, &b"x"[..]));
        for wrong in [
            &b"\x0117 00000000000000ff 100 300 x"[..],
            b"\x0217 ff 100 300 x",
            b"\x0217 00000000000000ff 100 x",
            b"\x02",
            b"",
        ] {
            assert_eq!(Placed::read(wrong), None);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            Placed::read(&bytes);
        }
    }
}
