//! The assignment of a request's keys to nodes.

use crate::{
    arguments::Arguments,
    map::{Home, Map},
};

/// The assignment of a request's keys to nodes. A plan is reused for the next request, so that
/// splitting does not allocate in the long run.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// For each key, its node (upper 16 bits), its group (next 16) and its argument position (lower half), sorted.
    keys: Vec<u64>,
    /// The group of the keys of a request to one node.
    pub(super) group: Option<u16>,
    /// The position of the first key.
    first: usize,
    /// The number of arguments per key, including the key.
    width: usize,
}

/// The keys of a request that go to one node together: they are of one group.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The node.
    pub node: usize,
    /// The group of the keys.
    pub group: u16,
    keys: &'a [u64],
    first: usize,
    width: usize,
}

impl Plan {
    /// Plans a request whose keys start at `first`, each with `width` arguments, including the key.
    /// The arguments must be complete.
    pub(super) fn make<A: Arguments + ?Sized>(
        &mut self,
        args: &A,
        (first, width): (usize, usize),
        map: &Map,
    ) {
        (self.first, self.width) = (first, width);
        self.keys.clear();
        self.keys.extend((first..args.count()).step_by(width).filter_map(|position| {
            let Home { node, group } = map.home(args.get(position)?);
            Some((node as u64) << 48 | u64::from(group) << 32 | position as u64)
        }));
        self.keys.sort_unstable();
    }

    /// The group of the keys of a request to one node. `None`: it has no keys.
    pub fn group(&self) -> Option<u16> {
        self.group
    }

    /// Returns the parts, sorted by node. Nodes without keys are omitted.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let groups = self.keys.chunk_by(|one, other| one >> 32 == other >> 32);
        groups.map(move |keys| Part {
            node: (keys[0] >> 48) as usize,
            group: (keys[0] >> 32) as u16,
            keys,
            first: self.first,
            width: self.width,
        })
    }

    /// The number of keys.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }
}

impl<'a> Part<'a> {
    /// The number of arguments before the keys, including the command's name.
    pub fn prefix(self) -> usize {
        self.first
    }

    /// The positions of this part's arguments in the request, in order: keys with the arguments
    /// that belong to them.
    pub fn arguments(self) -> impl ExactSizeIterator<Item = usize> + 'a {
        let (keys, width) = (self.keys, self.width);
        (0..keys.len() * width).map(move |at| keys[at / width] as u32 as usize + at % width)
    }

    /// The indexes of these keys among the keys of the request. The first key is 0.
    pub fn keys(self) -> impl ExactSizeIterator<Item = usize> + 'a {
        let (first, width) = (self.first, self.width);
        self.keys.iter().map(move |key| (*key as u32 as usize - first) / width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{RedisSharding, Slots};
    use proptest::prelude::*;

    #[test]
    fn keys_keep_their_order_and_their_values() {
        let map = Map::new(0, RedisSharding::new(2).unwrap());
        let args = ["mset", "a", "1", "b", "2", "a", "3", "d", "4"];
        let mut plan = Plan::default();
        plan.make(&args[..], (1, 2), &map);
        assert_eq!(plan.keys(), 4);
        let parts: Vec<(usize, Vec<&str>, Vec<usize>)> = plan
            .parts()
            .map(|part| {
                let words = part.arguments().map(|position| args[position]).collect();
                (part.node, words, part.keys().collect())
            })
            .collect();
        let nodes = ["a", "b", "d"].map(|key| map.node(key.as_bytes()));
        assert_eq!(nodes, [1, 1, 0]);
        assert_eq!(parts[0], (0, vec!["d", "4"], vec![3]));
        assert_eq!(parts[1], (1, vec!["a", "1", "b", "2", "a", "3"], vec![0, 1, 2]));
    }

    proptest! {
        #[test]
        fn every_key_is_in_the_part_of_its_node(
            keys in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 1..60),
            nodes in 1usize..9,
        ) {
            let map = Map::new(0, Slots::even(nodes).unwrap());
            let args: Vec<Vec<u8>> = std::iter::once(b"mget".to_vec()).chain(keys.clone()).collect();
            let mut plan = Plan::default();
            // The plan of an earlier request must not leave anything behind.
            plan.make(&["del", "x", "y", "z"][..], (1, 1), &map);
            plan.make(&args[..], (1, 1), &map);
            let mut seen = vec![0; keys.len()];
            let mut before = None;
            for part in plan.parts() {
                prop_assert!(before < Some(part.node));
                before = Some(part.node);
                for (position, key) in part.arguments().zip(part.keys()) {
                    prop_assert_eq!(&args[position], &keys[key]);
                    prop_assert_eq!(map.node(&args[position]), part.node);
                    seen[key] += 1;
                }
            }
            prop_assert_eq!(seen, vec![1; keys.len()]);
        }
    }
}
