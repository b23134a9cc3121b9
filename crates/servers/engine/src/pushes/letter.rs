//! Letters between the engines of a server's cores, and their encoding for cores that are
//! processes. Those have no uplink, so the letters about one have no encoding.
//!
//! An encoded letter is the length of its body (u32), then the body: its kind (one byte), the
//! fields of that kind, and the bytes of the push, if any. A room is the length of its name (u32),
//! then the name; the lobby has the empty name. Numbers are little-endian. Both sides are the same
//! program, so the format has no version.

use crate::{Posted, Push, RemoteOutcome, RoomName};

/// A message from the sessions of one core to those of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Letter<P> {
    /// A push to all members of this room.
    Push(RoomName, P),
    /// Like [`Letter::Push`], but the sending core waits for [`Letter::Queued`].
    Counted {
        /// The room that receives it.
        room: RoomName,
        /// The push.
        push: P,
        /// The core that waits.
        from: u32,
        /// The number of this count on that core.
        count: u64,
    },
    /// The answer to [`Letter::Counted`].
    Queued {
        /// The core that waits for it; others ignore it.
        to: u32,
        /// The number of the count.
        count: u64,
        /// Number of members of the answering core that it was queued for.
        members: u32,
    },
    /// A push to all members of all rooms.
    All(P),
    /// A push for another server, from the core that waits for [`Letter::Sent`] to the one with the connection.
    Remote {
        /// The room that it is for.
        room: RoomName,
        /// The push.
        push: P,
        /// The core that waits.
        from: u32,
        /// The number of this post on that core.
        count: u64,
    },
    /// The answer to [`Letter::Remote`].
    Sent {
        /// The core that waits for it.
        to: u32,
        /// The number of the post.
        count: u64,
        /// What became of it.
        outcome: RemoteOutcome,
    },
}

/// A push that can be encoded as bytes, for cores that share no memory.
pub trait Wire: Push {
    /// Appends the encoded push.
    fn write(&self, out: &mut Vec<u8>);

    /// Decodes what [`Wire::write`] has appended. Returns `None` if the bytes are invalid.
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// Bytes from a sibling core that are not a valid letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("received an invalid letter of {0} bytes from another core")]
pub struct MalformedLetter(usize);

const PUSH: u8 = 0;
const COUNTED: u8 = 1;
const QUEUED: u8 = 2;
/// Bytes of the length field before a body.
const LENGTH: usize = 4;

impl<P: Push> Posted for Letter<P> {
    fn to(&self) -> Option<u32> {
        match self {
            Letter::Push(..) | Letter::Counted { .. } | Letter::All(_) => None,
            Letter::Queued { to, .. } | Letter::Sent { to, .. } => Some(*to),
            Letter::Remote { .. } => Some(0),
        }
    }

    fn size(&self) -> usize {
        let push = match self {
            Letter::Push(_, push)
            | Letter::Counted { push, .. }
            | Letter::All(push)
            | Letter::Remote { push, .. } => push.size(),
            Letter::Queued { .. } | Letter::Sent { .. } => 0,
        };
        size_of::<Self>() + push
    }
}

impl<P: Wire> Letter<P> {
    /// Appends the encoded letter.
    ///
    /// # Panics
    /// Panics if only servers with an [`Uplink`](crate::Uplink) post this letter: their cores share memory.
    pub fn write(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&[0; LENGTH]);
        match self {
            Letter::Push(room, push) => {
                out.push(PUSH);
                write_room(room, out);
                push.write(out);
            }
            Letter::Counted { room, push, from, count } => {
                out.push(COUNTED);
                out.extend_from_slice(&from.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
                write_room(room, out);
                push.write(out);
            }
            Letter::Queued { to, count, members } => {
                out.push(QUEUED);
                out.extend_from_slice(&to.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
                out.extend_from_slice(&members.to_le_bytes());
            }
            Letter::All(_) | Letter::Remote { .. } | Letter::Sent { .. } => {
                unreachable!("a server whose cores are processes has no uplink")
            }
        }
        let body = u32::try_from(out.len() - begin - LENGTH).expect("a letter is below 4 GiB");
        out[begin..begin + LENGTH].copy_from_slice(&body.to_le_bytes());
    }

    fn read(body: &[u8]) -> Option<Self> {
        let mut body = Fields(body);
        match body.byte()? {
            PUSH => {
                let room = body.room()?;
                Some(Letter::Push(room, P::read(body.0)?))
            }
            COUNTED => {
                let (from, count, room) = (body.u32()?, body.u64()?, body.room()?);
                Some(Letter::Counted { room, push: P::read(body.0)?, from, count })
            }
            QUEUED => {
                let (to, count, members) = (body.u32()?, body.u64()?, body.u32()?);
                body.0.is_empty().then_some(Letter::Queued { to, count, members })
            }
            _ => None,
        }
    }
}

fn write_room(room: &RoomName, out: &mut Vec<u8>) {
    let name = room.as_str();
    let length = u32::try_from(name.len()).expect("a name is below 4 GiB");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(name.as_bytes());
}

/// The part of a body that has not been read yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(front)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|byte| byte[0])
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = self.bytes(4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        let bytes = self.bytes(8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    fn room(&mut self) -> Option<RoomName> {
        let length = self.u32()? as usize;
        let name = str::from_utf8(self.bytes(length)?).ok()?;
        Some(RoomName::of(name))
    }
}

/// Decodes letters from bytes that arrive in pieces of any size.
#[derive(Debug, Default)]
pub struct LetterDecoder {
    /// The first bytes of an incomplete letter.
    held: Vec<u8>,
}

impl LetterDecoder {
    /// Takes the next bytes and appends the letters that are complete to `letters`.
    ///
    /// # Errors
    /// Fails if a body is not a valid letter. The bytes after it cannot be decoded.
    pub fn decode<P: Wire>(
        &mut self,
        mut bytes: &[u8],
        letters: &mut Vec<Letter<P>>,
    ) -> Result<(), MalformedLetter> {
        while !self.held.is_empty() {
            let wanted = whole(&self.held).unwrap_or(LENGTH);
            let missing = bytes.len().min(wanted - self.held.len());
            let (front, rest) = bytes.split_at(missing);
            self.held.extend_from_slice(front);
            bytes = rest;
            match whole(&self.held) {
                Some(whole) if whole == self.held.len() => {
                    letters.push(body(&self.held)?);
                    // The memory of a long letter is freed.
                    self.held = Vec::new();
                }
                _ if bytes.is_empty() => return Ok(()),
                _ => {}
            }
        }
        while let Some((letter, rest)) =
            whole(bytes).and_then(|whole| bytes.split_at_checked(whole))
        {
            letters.push(body(letter)?);
            bytes = rest;
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }
}

/// The size of a letter including its length field, once that field is complete.
fn whole(bytes: &[u8]) -> Option<usize> {
    let (length, _) = bytes.split_first_chunk::<LENGTH>()?;
    Some(LENGTH + u32::from_le_bytes(*length) as usize)
}

/// Decodes the letter in these bytes, which are exactly as long as the letter.
fn body<P: Wire>(whole: &[u8]) -> Result<Letter<P>, MalformedLetter> {
    Letter::read(&whole[LENGTH..]).ok_or(MalformedLetter(whole.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Text(String);

    impl Push for Text {}

    impl Wire for Text {
        fn write(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(self.0.as_bytes());
        }

        fn read(bytes: &[u8]) -> Option<Self> {
            String::from_utf8(bytes.to_vec()).ok().map(Text)
        }
    }

    fn bytes(letters: &[Letter<Text>]) -> Vec<u8> {
        let mut out = Vec::new();
        letters.iter().for_each(|letter| letter.write(&mut out));
        out
    }

    fn decoded<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<Letter<Text>>, MalformedLetter> {
        let (mut decoder, mut letters) = (LetterDecoder::default(), Vec::new());
        for piece in pieces {
            decoder.decode(piece, &mut letters)?;
        }
        Ok(letters)
    }

    #[test]
    fn letters_have_their_documented_encoding() {
        let text = Text("hi".into());
        assert_eq!(
            bytes(&[Letter::Push(RoomName::of("red"), text.clone())]),
            b"\x0a\0\0\0\x00\x03\0\0\0redhi"
        );
        let room = RoomName::LOBBY;
        assert_eq!(
            bytes(&[Letter::Counted { room, push: text, from: 2, count: 258 }]),
            b"\x13\0\0\0\x01\x02\0\0\0\x02\x01\0\0\0\0\0\0\0\0\0\0hi"
        );
        assert_eq!(
            bytes(&[Letter::Queued { to: 1, count: 3, members: 500 }]),
            b"\x11\0\0\0\x02\x01\0\0\0\x03\0\0\0\0\0\0\0\xf4\x01\0\0"
        );
    }

    #[test]
    fn answers_are_for_one_core_and_pushes_for_all() {
        let text = Text("hi".into());
        let counted =
            Letter::Counted { room: RoomName::LOBBY, push: text.clone(), from: 2, count: 1 };
        assert_eq!(counted.to(), None);
        assert_eq!(Letter::Push(RoomName::LOBBY, text).to(), None);
        assert_eq!(Letter::<Text>::Queued { to: 1, count: 3, members: 5 }.to(), Some(1));
        let outcome = RemoteOutcome::Unknown;
        assert_eq!(Letter::<Text>::Sent { to: 2, count: 3, outcome }.to(), Some(2));
        let (room, push) = (RoomName::LOBBY, Text("hi".into()));
        assert_eq!(Letter::Remote { room, push, from: 1, count: 3 }.to(), Some(0));
    }

    #[test]
    fn invalid_letters_are_errors() {
        for (what, bytes) in [
            ("an empty body", &b"\0\0\0\0"[..]),
            ("an unknown kind", b"\x01\0\0\0\x03"),
            ("an answer that is too short", b"\x02\0\0\0\x02\x01"),
            (
                "an answer with trailing bytes",
                b"\x12\0\0\0\x02\x01\0\0\0\x03\0\0\0\0\0\0\0\x01\0\0\0!",
            ),
            ("a room that is longer than its letter", b"\x07\0\0\0\x00\xff\0\0\0hi"),
            ("a name that is not UTF-8", b"\x06\0\0\0\x00\x01\0\0\0\xff"),
            ("an invalid push", b"\x06\0\0\0\x00\0\0\0\0\xff"),
        ] {
            assert!(decoded([bytes]).is_err(), "{what}");
            assert!(decoded(bytes.chunks(1)).is_err(), "{what}, byte by byte");
        }
    }

    #[test]
    fn a_decoder_between_letters_holds_no_memory() {
        let bytes = bytes(&[Letter::Push(RoomName::LOBBY, Text("x".repeat(100_000)))]);
        let (mut decoder, mut letters) = (LetterDecoder::default(), Vec::<Letter<Text>>::new());
        for piece in bytes.chunks(1000) {
            decoder.decode(piece, &mut letters).unwrap();
        }
        assert_eq!((letters.len(), decoder.held.capacity()), (1, 0));
    }

    fn letter() -> impl Strategy<Value = Letter<Text>> {
        let text = || ".{0,40}".prop_map(Text);
        let room =
            || prop_oneof![Just(RoomName::LOBBY), ".{1,9}".prop_map(|name| RoomName::of(&name))];
        prop_oneof![
            (room(), text()).prop_map(|(room, push)| Letter::Push(room, push)),
            (room(), text(), any::<u32>(), any::<u64>())
                .prop_map(|(room, push, from, count)| Letter::Counted { room, push, from, count }),
            (any::<u32>(), any::<u64>(), any::<u32>())
                .prop_map(|(to, count, members)| Letter::Queued { to, count, members }),
        ]
    }

    proptest! {
        /// In one piece, in two cut anywhere, byte by byte, and in pieces of random sizes.
        #[test]
        fn letters_decode_however_their_bytes_are_cut(
            letters in prop::collection::vec(letter(), 1..5),
            sizes in prop::collection::vec(1_usize..30, 1..20),
        ) {
            let bytes = bytes(&letters);
            for cut in 0..=bytes.len() {
                let (front, rest) = bytes.split_at(cut);
                prop_assert_eq!(decoded([front, rest]), Ok(letters.clone()), "cut at {}", cut);
            }
            prop_assert_eq!(decoded(bytes.chunks(1)), Ok(letters.clone()));
            let (mut rest, mut pieces) = (&bytes[..], Vec::new());
            for size in sizes.iter().cycle() {
                let (piece, more) = rest.split_at(rest.len().min(*size));
                pieces.push(piece);
                rest = more;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(decoded(pieces), Ok(letters));
        }

        /// Cutting changes nothing for arbitrary bytes: the same letters, or an error in both
        /// cases.
        #[test]
        fn arbitrary_bytes_decode_alike_however_they_are_cut(
            mut bytes in prop::collection::vec(any::<u8>(), 0..60),
            short: bool,
        ) {
            if short && let Some(length) = bytes.first_chunk_mut::<4>() {
                *length = [length[0] % 30, 0, 0, 0];
            }
            let whole = decoded([&bytes[..]]);
            prop_assert_eq!(decoded(bytes.chunks(1)), whole.clone());
            for cut in 0..=bytes.len() {
                let (front, rest) = bytes.split_at(cut);
                prop_assert_eq!(decoded([front, rest]), whole.clone());
            }
        }
    }
}
