//! Whole messages in one frame each, as all servers write them that need no more: they are found without
//! the codec.

/// The first byte of a whole text in one frame.
pub(super) const TEXT: u8 = 0x81;
/// The first byte of a whole binary message in one frame.
pub(super) const BINARY: u8 = 0x82;

/// A whole message in one frame at the front of `bytes`, as a server sends it, of this first byte: its
/// payload and the bytes that it takes. `None`: it is something else, or not whole.
#[inline]
pub(super) fn whole(first: u8, bytes: &[u8]) -> Option<(&[u8], usize)> {
    let [kind, length, ..] = *bytes else { return None };
    if kind != first {
        return None;
    }
    let (begin, length) = match length {
        0..126 => (2, usize::from(length)),
        126 => (4, usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]))),
        _ => return None,
    };
    Some((bytes.get(begin..begin + length)?, begin + length))
}

/// Whether more bytes may make such a message of this, of less than 64 KiB.
pub(super) fn may_become_whole(first: u8, bytes: &[u8]) -> bool {
    match *bytes {
        [kind] => kind == first,
        [kind, length, ..] => kind == first && length <= 126,
        _ => true,
    }
}
