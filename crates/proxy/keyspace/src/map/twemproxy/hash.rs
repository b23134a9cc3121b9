//! The hash functions of twemproxy, bit for bit as its builds for x86-64 compute them.
//!
//! Several treat the key as signed characters: a byte above 127 is sign-extended. This changes
//! their results for keys beyond ASCII.

use crate::map::error::MapError;
use crc::{CRC_16_XMODEM, Crc};
use md5::{Digest, Md5};
use std::str::FromStr;

static XMODEM: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// A hash function of twemproxy (its setting `hash`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// Bob Jenkins' one-at-a-time, with signed characters.
    OneAtATime,
    /// The first four bytes of the MD5 digest.
    Md5,
    /// CRC-16 (XMODEM) in a 32-bit register that is never truncated to 16 bits.
    Crc16,
    /// Bits 16 to 30 of the CRC-32, as in libmemcached.
    Crc32,
    /// CRC-32 as in zlib.
    Crc32a,
    /// The lower half of 64-bit FNV-1, with signed characters.
    Fnv1_64,
    /// The lower half of 64-bit FNV-1a, with signed characters. The default of twemproxy.
    Fnv1a64,
    /// 32-bit FNV-1, with signed characters.
    Fnv1_32,
    /// 32-bit FNV-1a, with signed characters.
    Fnv1a32,
    /// Paul Hsieh's SuperFastHash. The third of three remaining bytes is a signed character.
    Hsieh,
    /// MurmurHash2 with a seed that depends on the length.
    Murmur,
    /// Bob Jenkins' lookup3 with the initial value 13.
    Jenkins,
}

impl Hash {
    /// All hash functions, in the order of twemproxy.
    pub const ALL: [Hash; 12] = [
        Hash::OneAtATime,
        Hash::Md5,
        Hash::Crc16,
        Hash::Crc32,
        Hash::Crc32a,
        Hash::Fnv1_64,
        Hash::Fnv1a64,
        Hash::Fnv1_32,
        Hash::Fnv1a32,
        Hash::Hsieh,
        Hash::Murmur,
        Hash::Jenkins,
    ];

    /// The name in twemproxy's configuration.
    pub fn name(self) -> &'static str {
        match self {
            Hash::OneAtATime => "one_at_a_time",
            Hash::Md5 => "md5",
            Hash::Crc16 => "crc16",
            Hash::Crc32 => "crc32",
            Hash::Crc32a => "crc32a",
            Hash::Fnv1_64 => "fnv1_64",
            Hash::Fnv1a64 => "fnv1a_64",
            Hash::Fnv1_32 => "fnv1_32",
            Hash::Fnv1a32 => "fnv1a_32",
            Hash::Hsieh => "hsieh",
            Hash::Murmur => "murmur",
            Hash::Jenkins => "jenkins",
        }
    }

    /// Returns the hash of these bytes.
    pub fn of(self, key: &[u8]) -> u32 {
        match self {
            Hash::OneAtATime => one_at_a_time(key),
            Hash::Md5 => {
                let digest = Md5::digest(key);
                word(&digest)
            }
            Hash::Crc16 => crc16(key),
            Hash::Crc32 => (crc32fast::hash(key) >> 16) & 0x7fff,
            Hash::Crc32a => crc32fast::hash(key),
            // The lower half of a 64-bit product depends only on the lower halves of its factors.
            Hash::Fnv1_64 => fnv1(key, 0x8422_2325, 0x1b3),
            Hash::Fnv1a64 => fnv1a(key, 0x8422_2325, 0x1b3),
            Hash::Fnv1_32 => fnv1(key, 0x811c_9dc5, 0x0100_0193),
            Hash::Fnv1a32 => fnv1a(key, 0x811c_9dc5, 0x0100_0193),
            Hash::Hsieh => hsieh(key),
            Hash::Murmur => murmur(key),
            Hash::Jenkins => jenkins(key),
        }
    }
}

impl FromStr for Hash {
    type Err = MapError;

    fn from_str(name: &str) -> Result<Self, MapError> {
        let found = Hash::ALL.into_iter().find(|hash| hash.name() == name);
        found.ok_or_else(|| MapError::Hash(name.to_owned()))
    }
}

/// Sign-extends a byte to 32 bits, like C's `char` on x86-64.
fn signed(byte: u8) -> u32 {
    i32::from(byte.cast_signed()).cast_unsigned()
}

/// The first four bytes, in little-endian order.
fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn one_at_a_time(key: &[u8]) -> u32 {
    let mut hash = 0_u32;
    for byte in key {
        hash = hash.wrapping_add(signed(*byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// twemproxy keeps the CRC in 32 bits and never truncates it to 16. So the two upper bytes come
/// from the CRCs of the key without its last byte, and without its last two.
fn crc16(key: &[u8]) -> u32 {
    let without = |last: usize| {
        key.len().checked_sub(last).map_or(0, |length| u32::from(XMODEM.checksum(&key[..length])))
    };
    without(0) | (without(1) >> 8) << 16 | (without(2) >> 8) << 24
}

fn fnv1(key: &[u8], basis: u32, prime: u32) -> u32 {
    key.iter().fold(basis, |hash, byte| hash.wrapping_mul(prime) ^ signed(*byte))
}

fn fnv1a(key: &[u8], basis: u32, prime: u32) -> u32 {
    key.iter().fold(basis, |hash, byte| (hash ^ signed(*byte)).wrapping_mul(prime))
}

fn hsieh(key: &[u8]) -> u32 {
    if key.is_empty() {
        return 0;
    }
    let pair = |bytes: &[u8]| u32::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    let words = key.chunks_exact(4);
    let rest = words.remainder();
    let mut hash = 0_u32;
    for word in words {
        hash = hash.wrapping_add(pair(word));
        hash = (hash << 16) ^ (pair(&word[2..]) << 11) ^ hash;
        hash = hash.wrapping_add(hash >> 11);
    }
    match rest {
        [_, _, third] => {
            hash = hash.wrapping_add(pair(rest));
            hash ^= hash << 16;
            hash ^= signed(*third) << 18;
            hash = hash.wrapping_add(hash >> 11);
        }
        [_, _] => {
            hash = hash.wrapping_add(pair(rest));
            hash ^= hash << 11;
            hash = hash.wrapping_add(hash >> 17);
        }
        [last] => {
            hash = hash.wrapping_add(u32::from(*last));
            hash ^= hash << 10;
            hash = hash.wrapping_add(hash >> 1);
        }
        _ => {}
    }
    hash ^= hash << 3;
    hash = hash.wrapping_add(hash >> 5);
    hash ^= hash << 4;
    hash = hash.wrapping_add(hash >> 17);
    hash ^= hash << 25;
    hash.wrapping_add(hash >> 6)
}

fn murmur(key: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let length = key.len() as u32;
    let mut hash = 0xdead_beef_u32.wrapping_mul(length) ^ length;
    let words = key.chunks_exact(4);
    let rest = words.remainder();
    for bytes in words {
        let mut mixed = word(bytes).wrapping_mul(M);
        mixed ^= mixed >> 24;
        hash = hash.wrapping_mul(M) ^ mixed.wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ word(&last)).wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

fn jenkins(key: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(key.len() as u32).wrapping_add(13);
    if key.is_empty() {
        return start;
    }
    let (mut a, mut b, mut c) = (start, start, start);
    let add = |a: &mut u32, b: &mut u32, c: &mut u32, block: &[u8]| {
        *a = a.wrapping_add(word(block));
        *b = b.wrapping_add(word(&block[4..]));
        *c = c.wrapping_add(word(&block[8..]));
    };
    // The last block, of 1 to 12 bytes, is mixed differently.
    let (blocks, rest) = key.split_at((key.len() - 1) / 12 * 12);
    for block in blocks.chunks_exact(12) {
        add(&mut a, &mut b, &mut c, block);
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
    }
    let mut last = [0; 12];
    last[..rest.len()].copy_from_slice(rest);
    add(&mut a, &mut b, &mut c, &last);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_errors_list_them() {
        for hash in Hash::ALL {
            assert_eq!(hash.name().parse(), Ok(hash));
            let error = "md4".parse::<Hash>().unwrap_err().to_string();
            assert!(error.contains(hash.name()), "{error}");
        }
    }

    /// Values from the publications of the functions. `tests/it/twemproxy` compares with the variants
    /// of a real nutcracker.
    #[test]
    fn functions_return_their_published_values() {
        assert_eq!(Hash::Crc32a.of(b"123456789"), 0xcbf4_3926);
        assert_eq!(Hash::Crc32.of(b"123456789"), 0x4bf4);
        assert_eq!(Hash::Crc16.of(b"123456789") & 0xffff, 0x31c3);
        assert_eq!(Hash::Fnv1a32.of(b"a"), 0xe40c_292c);
        assert_eq!(Hash::Fnv1a32.of(b"foobar"), 0xbf9c_f968);
        assert_eq!(Hash::Fnv1_32.of(b"a"), 0x050c_5d7e);
        assert_eq!(Hash::Fnv1a64.of(b"foobar"), 0x8594_4171_f739_67e8_u64 as u32);
        assert_eq!(Hash::Fnv1_64.of(b"foobar"), 0x340d_8765_a4dd_a9c2_u64 as u32);
        assert_eq!(Hash::OneAtATime.of(b"a"), 0xca2e_9442);
        assert_eq!(
            Hash::OneAtATime.of(b"The quick brown fox jumps over the lazy dog"),
            0x519e_91f5
        );
        // d41d8cd9 8f00b204… is the digest of the empty text.
        assert_eq!(Hash::Md5.of(b""), u32::from_le_bytes([0xd4, 0x1d, 0x8c, 0xd9]));
    }

    /// The loop of twemproxy, byte by byte.
    #[test]
    fn crc16_keeps_the_bits_shifted_up() {
        for key in [&b""[..], b"a", b"ab", b"abc", b"\xff\xfe\x80 and some more"] {
            let mut register = 0_u32;
            for byte in key {
                let index = (register >> 8) as u8 ^ byte;
                register = (register << 8) ^ u32::from(XMODEM.checksum(&[index]));
            }
            assert_eq!(crc16(key), register, "{}", key.escape_ascii());
        }
    }

    #[test]
    fn bytes_above_127_are_signed() {
        assert_eq!(signed(0x7f), 0x7f);
        assert_eq!(signed(0x80), 0xffff_ff80);
        assert_eq!(
            Hash::Fnv1_32.of(b"\x80"),
            0x811c_9dc5_u32.wrapping_mul(0x0100_0193) ^ 0xffff_ff80
        );
    }
}
