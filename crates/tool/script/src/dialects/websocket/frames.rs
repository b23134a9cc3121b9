//! A fast path for complete messages in a single frame, which servers usually send; it needs no codec.

/// First byte of a text message in a single frame.
pub(super) const TEXT: u8 = 0x81;
/// First byte of a binary message in a single frame.
pub(super) const BINARY: u8 = 0x82;

/// Returns the payload of the complete unmasked message at the front of `bytes` and the number of bytes
/// it takes. Returns `None` if the first byte is not `first`, or the message is incomplete, masked, or
/// has 64 KiB or more.
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

/// Whether more bytes may complete such a message, of less than 64 KiB.
pub(super) fn may_become_whole(first: u8, bytes: &[u8]) -> bool {
    match *bytes {
        [kind] => kind == first,
        [kind, length, ..] => kind == first && length <= 126,
        _ => true,
    }
}
