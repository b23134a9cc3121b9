//! Slots as in Redis Cluster: CRC-16 of the key or its tag, modulo 16,384.
//!
//! Source: the Redis Cluster specification, "Key distribution model" and "Hash tags".

use super::error::{MapError, check};
use crc::{CRC_16_XMODEM, Crc};

/// The number of slots.
pub const SLOTS: u16 = 16_384;

static XMODEM: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// Returns the slot of a key, below [`SLOTS`]. `CLUSTER KEYSLOT` gives the same number.
///
/// It is compiled here, where the parameters of the checksum are constants.
#[inline(never)]
pub fn slot(key: &[u8]) -> u16 {
    XMODEM.checksum(tag(key)) % SLOTS
}

/// Returns the part of a key that is hashed: the text between the first `{` and the first `}` after
/// it, if it is not empty. Otherwise the whole key.
#[inline]
fn tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|byte| *byte == b'}') {
        None | Some(0) => key,
        Some(close) => &rest[..close],
    }
}

/// Ranges of slots, assigned to separate nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The first slot of each node, ascending.
    firsts: Box<[u16]>,
}

impl Slots {
    /// Creates ranges of nearly equal length, the same as `redis-cli --cluster create` for this
    /// number of masters. It uses single precision, and so does this.
    pub fn even(nodes: usize) -> Result<Self, MapError> {
        let each = f32::from(SLOTS) / check(nodes)? as f32;
        let (mut firsts, mut first, mut cursor) = (Vec::with_capacity(nodes), 0, 0.0_f32);
        for _ in 0..nodes {
            firsts.push(first);
            let last = ((cursor + each - 1.0).round() as u16).min(SLOTS - 1).max(first);
            first = last + 1;
            cursor += each;
        }
        Ok(Slots { firsts: firsts.into() })
    }

    /// Returns the node of a slot.
    #[inline]
    pub fn node_of(&self, slot: u16) -> usize {
        self.firsts.partition_point(|first| *first <= slot) - 1
    }

    pub(super) fn nodes(&self) -> usize {
        self.firsts.len()
    }

    #[inline]
    pub(super) fn node(&self, key: &[u8]) -> usize {
        if self.firsts.len() == 1 {
            return 0;
        }
        self.node_of(slot(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::MAX_NODES;

    #[test]
    fn slots_match_the_specification() {
        assert_eq!(XMODEM.checksum(b"123456789"), 0x31c3);
        // `CLUSTER KEYSLOT` of these keys.
        for (key, expected) in [("foo", 12182), ("bar", 5061), ("somekey", 11058), ("", 0)] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
    }

    #[test]
    fn a_tag_is_in_the_first_braces_unless_they_are_empty() {
        for (key, expected) in [
            ("{user1000}.following", "user1000"),
            ("{user1000}.followers", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
            ("foo{bar", "foo{bar"),
            ("foo}bar{", "foo}bar{"),
            ("}{a}", "a"),
        ] {
            assert_eq!(tag(key.as_bytes()), expected.as_bytes(), "{key}");
        }
    }

    #[test]
    fn ranges_match_those_of_redis_cli() {
        // The output of `redis-cli --cluster create` for three and six masters.
        let firsts = |nodes| Slots::even(nodes).unwrap().firsts.to_vec();
        assert_eq!(firsts(3), [0, 5461, 10923]);
        assert_eq!(firsts(6), [0, 2731, 5461, 8192, 10923, 13653]);
        assert_eq!(firsts(1), [0]);
    }

    #[test]
    fn every_slot_has_a_node_and_every_node_has_slots() {
        for nodes in 1..=MAX_NODES {
            let slots = Slots::even(nodes).unwrap();
            let mut owned = vec![0_usize; nodes];
            (0..SLOTS).for_each(|slot| owned[slots.node_of(slot)] += 1);
            let (least, most) = (owned.iter().min().unwrap(), owned.iter().max().unwrap());
            assert!(*least > 0 && most - least <= 1, "{nodes}: {least} to {most}");
        }
    }

    #[test]
    fn the_number_of_nodes_has_limits() {
        assert_eq!(Slots::even(0), Err(MapError::NoNodes));
        assert_eq!(Slots::even(MAX_NODES + 1), Err(MapError::TooManyNodes(MAX_NODES + 1)));
    }
}
