//! Masking (RFC 6455, 5.3): each byte of a client's payload is XORed with one of four bytes.

/// Masks or unmasks `bytes` in place. They start `offset` bytes into the payload.
///
/// Processes eight bytes at a time, which the compiler turns into vector instructions.
#[inline]
pub fn apply(mask: [u8; 4], offset: usize, bytes: &mut [u8]) {
    let mask: [u8; 8] = std::array::from_fn(|n| mask[(offset + n) % 4]);
    let word = u64::from_ne_bytes(mask);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for bytes in words {
        *bytes = (u64::from_ne_bytes(*bytes) ^ word).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn masking_in_parts_matches_the_definition(
            mask: [u8; 4],
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
            cut: prop::sample::Index,
        ) {
            let expected: Vec<u8> =
                bytes.iter().enumerate().map(|(n, byte)| byte ^ mask[n % 4]).collect();
            let mut masked = bytes;
            let cut = cut.index(masked.len() + 1);
            let (first, second) = masked.split_at_mut(cut);
            apply(mask, 0, first);
            apply(mask, cut, second);
            prop_assert_eq!(masked, expected);
        }
    }
}
