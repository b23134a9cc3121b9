//! The assignment of RedisSharding: CRC-32 of the key's tag, modulo the number of nodes.

use super::error::{MapError, check};

/// Nodes in the order of RedisSharding's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisSharding {
    nodes: usize,
}

impl RedisSharding {
    /// Creates the assignment over this number of nodes.
    pub fn new(nodes: usize) -> Result<Self, MapError> {
        Ok(RedisSharding { nodes: check(nodes)? })
    }

    pub(super) fn nodes(self) -> usize {
        self.nodes
    }

    pub(super) fn node(self, key: &[u8]) -> usize {
        crc32fast::hash(tag(key)) as usize % self.nodes
    }
}

/// Returns the part of a key that is hashed. Only a key that ends with `}` has a tag: the bytes
/// after the last `{`, without the final `}`. It may be empty.
#[inline]
fn tag(key: &[u8]) -> &[u8] {
    let Some((b'}', rest)) = key.split_last() else { return key };
    match rest.iter().rposition(|byte| *byte == b'{') {
        Some(open) => &rest[open + 1..],
        None => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_at_the_end_of_the_key() {
        for (key, expected) in [
            ("", ""),
            ("a", "a"),
            ("user:1{tag}", "tag"),
            ("{tag}", "tag"),
            ("{tag}x", "{tag}x"),
            ("k{a}{b}", "b"),
            ("k{a{b}}", "b}"),
            ("k{a}b}", "a}b"),
            ("k{}", ""),
            ("k}", "k}"),
            ("}", "}"),
            ("k{a", "k{a"),
        ] {
            assert_eq!(tag(key.as_bytes()), expected.as_bytes(), "{key}");
        }
    }

    #[test]
    fn a_map_needs_at_least_one_node() {
        assert_eq!(RedisSharding::new(0), Err(MapError::NoNodes));
    }
}
