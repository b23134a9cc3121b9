//! Integers with a prefix (RFC 7541, 5.1).

use crate::rule::Rule;

/// Maximum number of bytes after the prefix. Values are below 2²⁸ + 255.
const MAX_BYTES: u32 = 4;

/// Takes an integer whose first byte has it in its lowest `prefix` bits.
///
/// # Errors
/// The input ends inside the integer, or it has too many bytes.
#[inline]
pub(super) fn read(input: &mut &[u8], prefix: u32) -> Result<usize, Rule> {
    let (&first, rest) = input.split_first().ok_or(Rule::BlockTruncated)?;
    *input = rest;
    let most = (1 << prefix) - 1;
    let value = usize::from(first) & most;
    if value < most { Ok(value) } else { read_rest(input, value) }
}

fn read_rest(input: &mut &[u8], mut value: usize) -> Result<usize, Rule> {
    for nth in 0..MAX_BYTES {
        let (&byte, rest) = input.split_first().ok_or(Rule::BlockTruncated)?;
        *input = rest;
        value += usize::from(byte & 0x7f) << (7 * nth);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Rule::IntegerTooLarge)
}

/// Appends an integer; `first` has the bits above the prefix.
pub(super) fn write(out: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
    let most = (1 << prefix) - 1;
    if value < most {
        return out.push(first | value as u8);
    }
    out.push(first | most as u8);
    let mut left = value - most;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(first: u8, prefix: u32, value: usize) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, first, prefix, value);
        out
    }

    #[test]
    fn the_examples_of_appendix_c_1() {
        assert_eq!(written(0, 5, 10), [0x0a]);
        assert_eq!(written(0, 5, 1337), [0x1f, 0x9a, 0x0a]);
        assert_eq!(written(0, 8, 42), [0x2a]);
        for (bytes, prefix, value) in
            [(&[0xea_u8][..], 5, 10), (&[0xff, 0x9a, 0x0a], 5, 1337), (&[0x2a], 8, 42)]
        {
            let mut rest = bytes;
            assert_eq!(read(&mut rest, prefix), Ok(value));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn every_prefix_reads_what_it_writes_at_its_limits() {
        for prefix in 1..=8 {
            let most = (1 << prefix) - 1;
            for value in [0, most - 1, most, most + 1, most + 127, most + 128, (1 << 28) - 1 + most]
            {
                let bytes = written(0, prefix, value);
                let mut rest = &bytes[..];
                assert_eq!(read(&mut rest, prefix), Ok(value), "{prefix} {value}");
                assert!(rest.is_empty());
                let mut cut = &bytes[..bytes.len() - 1];
                assert_eq!(read(&mut cut, prefix), Err(Rule::BlockTruncated));
            }
        }
    }

    #[test]
    fn a_long_integer_is_refused_even_if_it_is_zero() {
        let mut zeros: &[u8] = &[0x7f, 0x80, 0x80, 0x80, 0x80, 0x00];
        assert_eq!(read(&mut zeros, 7), Err(Rule::IntegerTooLarge));
        let mut large: &[u8] = &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(read(&mut large, 7), Err(Rule::IntegerTooLarge));
    }
}
