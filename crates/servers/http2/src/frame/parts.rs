//! Parts of payloads.

use super::header::{Header, flag};
use crate::rule::Rule;

/// The length of the priority fields of a HEADERS frame, in bytes (RFC 9113, 6.2).
const PRIORITY_LENGTH: usize = 5;

/// The field block fragment in the payload of a HEADERS frame. Padding and priority are left out.
pub(crate) fn fragment(header: Header, mut payload: &[u8]) -> Result<&[u8], Rule> {
    if header.has(flag::PADDED) {
        let (&padding, rest) = payload.split_first().ok_or(Rule::FrameTooShort)?;
        let length = split_padding(rest.len(), padding)?;
        payload = &rest[..length];
    }
    if header.has(flag::PRIORITY) {
        payload = payload.get(PRIORITY_LENGTH..).ok_or(Rule::FrameTooShort)?;
    }
    Ok(payload)
}

/// The length of the content, when `rest` bytes follow the length of the padding.
pub(crate) fn split_padding(rest: usize, padding: u8) -> Result<usize, Rule> {
    rest.checked_sub(usize::from(padding)).ok_or(Rule::PaddingTooLong)
}

/// The 32 bits at a position of a payload whose length was checked; 0 behind its end.
pub(crate) fn word(payload: &[u8], at: usize) -> u32 {
    let bytes = payload.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
