//! Input that arrives in pieces.

/// Splits bytes into pieces of these lengths, repeatedly.
pub fn pieces<'a>(mut bytes: &'a [u8], lengths: &[usize]) -> impl Iterator<Item = &'a [u8]> {
    assert!(!lengths.is_empty(), "expected a length");
    lengths.iter().cycle().map_while(move |length| {
        let (piece, rest) = bytes.split_at(bytes.len().min(*length));
        let is_over = bytes.is_empty();
        bytes = rest;
        (!is_over).then_some(piece)
    })
}
