//! A message as hubs publish it: a header, then its payload in JSON.
//!
//! The header is the version (one byte: 1), flags (one byte; 1: of a backend), the number of the hub (u64), the
//! number of the message on that hub (u64), the length of the room's name (one byte), and that name. Numbers are
//! little-endian.

const VERSION: u8 = 1;
const OF_BACKEND: u8 = 1;
/// The length of a header before the name of the room.
const FIXED: usize = 19;

/// A message as hubs publish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope<'a> {
    /// The hub that has published it.
    pub node: u64,
    /// Its number on that hub.
    pub number: u64,
    pub is_of_backend: bool,
    /// The name of its room, of at most 255 bytes.
    pub room: &'a str,
    /// Its payload, in JSON.
    pub payload: &'a str,
}

impl<'a> Envelope<'a> {
    /// The length in bytes.
    pub(super) fn len(&self) -> usize {
        FIXED + self.room.len() + self.payload.len()
    }

    /// Appends it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let flags = if self.is_of_backend { OF_BACKEND } else { 0 };
        out.extend_from_slice(&[VERSION, flags]);
        out.extend_from_slice(&self.node.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        debug_assert!(self.room.len() <= 255);
        out.push(self.room.len() as u8);
        out.extend_from_slice(self.room.as_bytes());
        out.extend_from_slice(self.payload.as_bytes());
    }

    /// Reads it. `None`: this is not what a hub of this version publishes.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Envelope<'a>> {
        let (fixed, rest) = bytes.split_at_checked(FIXED)?;
        let number = |at: usize| fixed[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let (room, payload) = rest.split_at_checked(usize::from(fixed[FIXED - 1]))?;
        let is_known = fixed[0] == VERSION && fixed[1] & !OF_BACKEND == 0 && !payload.is_empty();
        is_known.then_some(Envelope {
            node: number(2)?,
            number: number(10)?,
            is_of_backend: fixed[1] == OF_BACKEND,
            room: str::from_utf8(room).ok()?,
            payload: str::from_utf8(payload).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_has_its_documented_form() {
        let one = Envelope { node: 258, number: 3, is_of_backend: true, room: "a", payload: "1" };
        let mut bytes = Vec::new();
        one.write(&mut bytes);
        assert_eq!(bytes, b"\x01\x01\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01a1");
        assert_eq!(bytes.len(), one.len());
    }

    #[test]
    fn what_no_hub_has_published_is_refused() {
        let good = b"\x01\x00\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01a1";
        assert!(Envelope::read(good).is_some());
        for (at, byte) in [(0, 2), (1, 2), (18, 2), (18, 9), (19, 0xff), (20, 0xff)] {
            let mut bad = *good;
            bad[at] = byte;
            assert_eq!(Envelope::read(&bad), None, "{at}");
        }
        assert_eq!(Envelope::read(&good[..20]), None, "it has no payload");
        assert_eq!(Envelope::read(b"hello"), None);
    }

    proptest! {
        #[test]
        fn messages_come_back_as_they_were(
            node: u64, number: u64, is_of_backend: bool, room in ".{0,40}", payload in ".{1,90}",
        ) {
            let one = Envelope { node, number, is_of_backend, room: &room, payload: &payload };
            let mut bytes = Vec::new();
            one.write(&mut bytes);
            prop_assert_eq!(Envelope::read(&bytes), Some(one));
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            Envelope::read(&bytes);
        }
    }
}
