//! The bytes of keys and values. A value names the client, key and request that wrote it, and is padded
//! with letters and digits that depend on these.

use rand::{Rng, SeedableRng, distr::Alphanumeric, rngs::StdRng};

/// Hexadecimal digits of an owner, of the number of a key, and of a version.
const OWNER: usize = 10;
const NUMBER: usize = 4;
const VERSION: usize = 12;
/// Bytes of a value that identify it: `OWNER.NUMBER.VERSION.`
const IDENTITY: usize = OWNER + NUMBER + VERSION + 3;
/// Minimum number of bytes of a value.
pub(super) const SHORTEST_VALUE: usize = 32;
/// Number of places at which the padding of a value may start; a power of two.
const PADDINGS: usize = 4096;

/// A client as named in keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    number: u64,
    digits: [u8; OWNER],
}

impl Owner {
    /// Returns the client of a connection's slot. It differs for each `generation`, modulo 65,536.
    pub fn new(slot: u32, generation: u32) -> Owner {
        Owner::numbered(u64::from(slot) << 16 | u64::from(generation & 0xffff))
    }

    /// Returns the owner with this number, of which 40 bits are kept.
    pub fn numbered(number: u64) -> Owner {
        let number = number & ((1 << (4 * OWNER)) - 1);
        Owner { number, digits: hex(number) }
    }

    /// Returns the slot of the client.
    pub fn slot(self) -> u64 {
        self.number >> 16
    }

    fn read(digits: &[u8]) -> Option<Owner> {
        Some(Owner::numbered(number(digits)?))
    }
}

/// The origin of a value, as named in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// The client that wrote it.
    pub author: Owner,
    /// The number of the key.
    pub key: u16,
    /// The number of the request that wrote it, counted from 1 over all connections of the author's
    /// slot; 0 if it was stored before the first request.
    pub version: u64,
}

impl Identity {
    fn bytes(&self) -> [u8; IDENTITY] {
        let mut bytes = [b'.'; IDENTITY];
        bytes[..OWNER].copy_from_slice(&self.author.digits);
        bytes[OWNER + 1..][..NUMBER].copy_from_slice(&hex::<NUMBER>(self.key.into()));
        bytes[OWNER + NUMBER + 2..][..VERSION].copy_from_slice(&hex::<VERSION>(self.version));
        bytes
    }
}

/// The kind of content of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Values.
    Value,
    /// A number that is incremented.
    Counter,
}

/// The bytes of keys and values, framed as bulk strings.
#[derive(Debug)]
pub(super) struct Names {
    /// The start of a framed key, before its owner: for values, and for counters.
    keys: [Vec<u8>; 2],
    /// The start of a framed value.
    value: Vec<u8>,
    padding: Box<[u8]>,
    /// Number of padding bytes in a value.
    padding_bytes: usize,
}

/// The end of a bulk string.
const END: &[u8] = b"\r\n";

impl Names {
    /// Creates names with values of `value_bytes` bytes, at least [`SHORTEST_VALUE`].
    pub fn new(seed: u64, value_bytes: usize) -> Names {
        assert!(value_bytes >= SHORTEST_VALUE, "a value of {value_bytes} bytes");
        let key = |kind: char| {
            let prefix = format!("{kind}:{seed:x}:");
            let length = prefix.len() + OWNER + 1 + NUMBER;
            format!("${length}\r\n{prefix}").into_bytes()
        };
        let padding_bytes = value_bytes - IDENTITY;
        let random = StdRng::seed_from_u64(seed);
        let padding = random.sample_iter(Alphanumeric).take(PADDINGS + padding_bytes).collect();
        let value = format!("${value_bytes}\r\n").into_bytes();
        Names { keys: [key('k'), key('n')], value, padding, padding_bytes }
    }

    /// Appends a key, framed.
    pub fn write_key(&self, kind: Kind, owner: &Owner, key: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.keys[kind as usize]);
        out.extend_from_slice(&owner.digits);
        out.push(b':');
        out.extend_from_slice(&hex::<NUMBER>(key.into()));
        out.extend_from_slice(END);
    }

    /// Appends a value, framed.
    pub fn write_value(&self, identity: Identity, out: &mut Vec<u8>) {
        self.with_value(identity, |parts| {
            parts.iter().for_each(|part| out.extend_from_slice(part))
        });
    }

    /// Passes a framed value to `to`, in parts.
    #[inline]
    pub fn with_value<T>(&self, identity: Identity, to: impl FnOnce(&[&[u8]]) -> T) -> T {
        to(&[&self.value[..], &identity.bytes()[..], self.padding(identity), END])
    }

    fn padding(&self, Identity { author, key, version }: Identity) -> &[u8] {
        let mixed = author.number ^ u64::from(key) << 44 ^ version.rotate_left(22);
        let at = (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % PADDINGS;
        &self.padding[at..at + self.padding_bytes]
    }

    /// Returns a key in readable form.
    pub fn key(&self, kind: Kind, owner: &Owner, key: u16) -> String {
        let mut framed = Vec::new();
        self.write_key(kind, owner, key, &mut framed);
        let text = String::from_utf8_lossy(&framed);
        text.lines().nth(1).unwrap_or_default().to_owned()
    }

    /// Returns the origin of a value, or `None` if [`Names::write_value`] did not write these bytes.
    pub fn read(&self, value: &[u8]) -> Option<Identity> {
        let (bytes, padding) = value.split_at_checked(IDENTITY)?;
        let identity = Identity {
            author: Owner::read(&bytes[..OWNER])?,
            key: number(&bytes[OWNER + 1..][..NUMBER])? as u16,
            version: number(&bytes[OWNER + NUMBER + 2..][..VERSION])?,
        };
        (identity.bytes() == bytes && self.padding(identity) == padding).then_some(identity)
    }
}

/// Formats the last `N` hexadecimal digits of a number.
#[inline]
fn hex<const N: usize>(number: u64) -> [u8; N] {
    std::array::from_fn(|i| b"0123456789abcdef"[(number >> (4 * (N - 1 - i)) & 15) as usize])
}

fn number(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity = Identity {
        author: Owner { number: 0x1_2345, digits: *b"0000012345" },
        key: 10,
        version: 12,
    };

    fn value(names: &Names, identity: Identity) -> Vec<u8> {
        let mut framed = Vec::new();
        names.write_value(identity, &mut framed);
        let begin = framed.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        framed[begin..framed.len() - 2].to_vec()
    }

    #[test]
    fn frames_keys_and_values() {
        let names = Names::new(0xa, 40);
        assert_eq!(Owner::new(1, 0x2345), IDENTITY.author);
        assert_eq!(IDENTITY.author.slot(), 1);
        let mut framed = Vec::new();
        names.write_key(Kind::Counter, &IDENTITY.author, 10, &mut framed);
        assert_eq!(framed, b"$19\r\nn:a:0000012345:000a\r\n");
        assert_eq!(names.key(Kind::Value, &IDENTITY.author, 0xffff), "k:a:0000012345:ffff");
        framed.clear();
        names.write_value(IDENTITY, &mut framed);
        let text = String::from_utf8(framed).unwrap();
        assert!(text.starts_with("$40\r\n0000012345.000a.00000000000c."), "{text}");
        assert_eq!(text.len(), "$40\r\n".len() + 40 + 2);
    }

    #[test]
    fn a_value_names_its_origin_and_any_changed_byte_is_found() {
        let names = Names::new(7, 100);
        let right = value(&names, IDENTITY);
        assert_eq!(names.read(&right), Some(IDENTITY));
        assert_eq!(names.read(&right[..99]), None);
        assert_eq!(names.read(&[&right[..], b"x"].concat()), None);
        for i in 0..right.len() {
            let mut wrong = right.clone();
            wrong[i] ^= 1;
            assert_ne!(names.read(&wrong), Some(IDENTITY), "byte {i}");
        }
        for other in [
            Identity { author: Owner::new(1, 0x2346), ..IDENTITY },
            Identity { key: 11, ..IDENTITY },
            Identity { version: 13, ..IDENTITY },
        ] {
            let padding = |identity| value(&names, identity)[super::IDENTITY..].to_vec();
            assert_ne!(padding(other), padding(IDENTITY), "{other:?}");
        }
    }
}
