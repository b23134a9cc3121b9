//! The Huffman code for strings (RFC 7541, 5.2 and appendix B).
//!
//! The code is canonical: among codes of the same length, larger symbols have larger codes, and a
//! shorter code is smaller than the start of a longer one. So the lengths define it. Codes of up to
//! [`SHORT`] bits, which nearly all text consists of, are decoded by one look-up.

use crate::rule::Rule;

/// Number of symbols: all bytes, and the end of a string (EOS).
const SYMBOLS: usize = 257;

/// The symbol EOS, which must not occur in a string.
const EOS: u16 = 256;

/// The longest code, in bits.
const LONGEST: usize = 30;

/// Codes up to this length, in bits, are decoded by one look-up.
const SHORT: usize = 10;

/// The length of each symbol's code, in bits.
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, //
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, //
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, //
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, //
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, //
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, //
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, //
    30,
];

/// The code, computed from the lengths.
struct Code {
    /// The code of each symbol.
    codes: [u32; SYMBOLS],
    /// The symbols in the order of their codes.
    sorted: [u16; SYMBOLS],
    /// For each length, the first code that is longer, aligned to the left in 32 bits.
    beyond: [u64; LONGEST + 1],
    /// For each length, the first code, and its position in `sorted`.
    first: [(u32, u32); LONGEST + 1],
    /// For the next bits of a string, the symbol and its length, if that is at most [`SHORT`].
    short: [(u8, u8); 1 << SHORT],
}

static CODE: Code = code();

const fn code() -> Code {
    let mut all = Code {
        codes: [0; SYMBOLS],
        sorted: [0; SYMBOLS],
        beyond: [0; LONGEST + 1],
        first: [(0, 0); LONGEST + 1],
        short: [(0, 0); 1 << SHORT],
    };
    let (mut next, mut position, mut length) = (0_u32, 0, 1);
    while length <= LONGEST {
        all.first[length] = (next, position as u32);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                all.codes[symbol] = next;
                all.sorted[position] = symbol as u16;
                if length <= SHORT {
                    let mut at = (next as usize) << (SHORT - length);
                    let end = (next as usize + 1) << (SHORT - length);
                    while at < end {
                        all.short[at] = (symbol as u8, length as u8);
                        at += 1;
                    }
                }
                next += 1;
                position += 1;
            }
            symbol += 1;
        }
        all.beyond[length] = (next as u64) << (32 - length);
        next <<= 1;
        length += 1;
    }
    all
}

/// Appends the decoded string.
///
/// # Errors
/// The string contains EOS, or its padding is invalid.
pub(super) fn decode(mut input: &[u8], out: &mut Vec<u8>) -> Result<(), Rule> {
    // The next bits of the string, aligned to the left, and their number. Bits behind them are 0.
    let (mut bits, mut held) = (0_u64, 0_u32);
    loop {
        while held <= 56 {
            let Some((&byte, rest)) = input.split_first() else { break };
            input = rest;
            bits |= u64::from(byte) << (56 - held);
            held += 8;
        }
        let (symbol, length) = match CODE.short[(bits >> (64 - SHORT)) as usize] {
            (_, 0) => long(bits),
            (symbol, length) => (u16::from(symbol), u32::from(length)),
        };
        if length > held {
            // All input is taken, and the remaining bits are not a whole code.
            return check_padding(bits, held);
        }
        if symbol == EOS {
            return Err(Rule::HuffmanEnd);
        }
        out.push(symbol as u8);
        bits <<= length;
        held -= length;
    }
}

/// Returns the symbol at the start of `bits`, whose code is longer than [`SHORT`], and its length.
fn long(bits: u64) -> (u16, u32) {
    let start = bits >> 32;
    let mut length = SHORT + 1;
    while length < LONGEST && start >= CODE.beyond[length] {
        length += 1;
    }
    let (code, position) = CODE.first[length];
    let nth = (start >> (32 - length)) as u32 - code;
    (CODE.sorted[(position + nth) as usize], length as u32)
}

fn check_padding(bits: u64, held: u32) -> Result<(), Rule> {
    if held > 0 && bits >> (64 - held) != (1 << held) - 1 {
        return Err(Rule::HuffmanPadding);
    }
    if held < 8 { Ok(()) } else { Err(Rule::HuffmanPaddingTooLong) }
}

/// The length of the coded string, in bytes.
pub(super) fn coded_length(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the coded string.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut held) = (0_u64, 0_u32);
    for byte in text {
        let symbol = usize::from(*byte);
        let length = u32::from(LENGTHS[symbol]);
        bits = bits << length | u64::from(CODE.codes[symbol]);
        held += length;
        while held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    if held > 0 {
        out.push((bits << (8 - held)) as u8 | 0xff >> held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, Rule> {
        let mut out = Vec::new();
        decode(input, &mut out).map(|()| out)
    }

    #[test]
    fn the_computed_codes_are_those_of_appendix_b() {
        for (symbol, code) in [
            (0, 0x1ff8),
            (10, 0x3fff_fffc),
            (13, 0x3fff_fffd),
            (22, 0x3fff_fffe),
            (48, 0x0),
            (116, 0x9),
            (32, 0x14),
            (90, 0xfd),
            (92, 0x7fff0),
            (127, 0xfff_fffc),
            (128, 0xfffe6),
            (195, 0x7_fff1),
            (249, 0xfff_fffe),
            (255, 0x3ff_ffee),
            (256, 0x3fff_ffff),
        ] {
            assert_eq!(CODE.codes[symbol], code, "{symbol}");
        }
    }

    #[test]
    fn every_pair_of_bytes_is_decoded_as_it_was_encoded() {
        for first in 0..=255 {
            for second in 0..=255 {
                let text = [first, second, first];
                let mut coded = Vec::new();
                encode(&text, &mut coded);
                assert_eq!(coded.len(), coded_length(&text));
                assert_eq!(decoded(&coded).as_deref(), Ok(&text[..]));
            }
        }
    }

    #[test]
    fn the_end_symbol_is_refused() {
        assert_eq!(decoded(&[0xff; 4]), Err(Rule::HuffmanEnd));
        assert_eq!(decoded(&[0x1f, 0xff, 0xff, 0xff, 0xff]), Err(Rule::HuffmanEnd));
    }

    #[test]
    fn padding_must_be_ones_and_shorter_than_a_byte() {
        // "0" has 5 bits.
        assert_eq!(decoded(&[0b0000_0111]).as_deref(), Ok(&b"0"[..]));
        assert_eq!(decoded(&[0b0000_0110]), Err(Rule::HuffmanPadding));
        assert_eq!(decoded(&[0b0000_0111, 0xff]), Err(Rule::HuffmanPaddingTooLong));
        assert_eq!(decoded(&[0xff]), Err(Rule::HuffmanPaddingTooLong));
        // "?" has 10 bits.
        assert_eq!(decoded(&[0xff, 0b0011_1111]).as_deref(), Ok(&b"?"[..]));
        assert_eq!(decoded(&[0xff, 0xff, 0xff]), Err(Rule::HuffmanPaddingTooLong));
        assert_eq!(decoded(&[]).as_deref(), Ok(&b""[..]));
    }
}
