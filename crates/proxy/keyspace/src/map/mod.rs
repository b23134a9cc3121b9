//! The shard map: which node owns which key.
//!
//! A [`Map`] is an immutable snapshot. A new assignment is a new map with a higher epoch, which the
//! proxy swaps in as a whole. A map does no I/O, and a lookup does not allocate.

mod cluster;
mod error;
mod home;
mod redis_sharding;
mod slots;
pub mod twemproxy;

pub use cluster::{Cluster, MAX_MASTERS, PLACES};
pub use error::{MAX_NODES, MapError};
pub use home::Home;
pub use redis_sharding::RedisSharding;
pub use slots::{SLOTS, Slots, slot};
pub use twemproxy::Twemproxy;

/// A snapshot of the assignment of keys to nodes.
///
/// Nodes are numbered from 0, in the given order.
#[derive(Clone, Debug)]
pub struct Map {
    epoch: u64,
    mode: Mode,
}

/// How a map assigns keys to nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// 16,384 slots, as in Redis Cluster, over separate nodes.
    Slots(Slots),
    /// CRC-32 modulo the number of nodes, as in RedisSharding.
    RedisSharding(RedisSharding),
    /// A twemproxy pool.
    Twemproxy(Twemproxy),
    /// The slots of a Redis Cluster, as it reported them.
    Cluster(Cluster),
}

impl From<Cluster> for Mode {
    fn from(cluster: Cluster) -> Self {
        Mode::Cluster(cluster)
    }
}

impl From<Slots> for Mode {
    fn from(slots: Slots) -> Self {
        Mode::Slots(slots)
    }
}

impl From<RedisSharding> for Mode {
    fn from(nodes: RedisSharding) -> Self {
        Mode::RedisSharding(nodes)
    }
}

impl From<Twemproxy> for Mode {
    fn from(pool: Twemproxy) -> Self {
        Mode::Twemproxy(pool)
    }
}

impl Map {
    /// Creates a map. `epoch`: the number of this snapshot; a later one has a higher number.
    pub fn new(epoch: u64, mode: impl Into<Mode>) -> Self {
        Map { epoch, mode: mode.into() }
    }

    /// The same assignment as another snapshot.
    pub fn with_epoch(&self, epoch: u64) -> Self {
        Map { epoch, mode: self.mode.clone() }
    }

    /// Whether each key belongs to the node with the same number in both.
    pub fn assigns_like(&self, other: &Map) -> bool {
        self.mode == other.mode
    }

    /// The two characters that enclose the part of a key to hash, if there are such.
    pub fn hash_tag(&self) -> Option<[u8; 2]> {
        match &self.mode {
            Mode::Slots(_) | Mode::Cluster(_) => Some(*b"{}"),
            Mode::RedisSharding(_) => None,
            Mode::Twemproxy(pool) => pool.hash_tag(),
        }
    }

    /// The number of this snapshot.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The slots, if the nodes are those of a Redis Cluster.
    #[inline]
    pub fn cluster(&self) -> Option<&Cluster> {
        match &self.mode {
            Mode::Cluster(cluster) => Some(cluster),
            _ => None,
        }
    }

    /// The nodes that have keys, in the order in which SCAN visits them.
    pub fn order(&self) -> Vec<usize> {
        match &self.mode {
            Mode::Cluster(cluster) => cluster.order().to_vec(),
            _ => (0..self.nodes()).collect(),
        }
    }

    /// The node of the keys of a group.
    pub fn node_of_group(&self, group: u16) -> usize {
        match &self.mode {
            Mode::Cluster(cluster) => cluster.node_of(group),
            _ => group.into(),
        }
    }

    /// The number of nodes, 1 to [`MAX_NODES`]. In a cluster, that of the places for nodes, [`PLACES`].
    pub fn nodes(&self) -> usize {
        match &self.mode {
            Mode::Slots(slots) => slots.nodes(),
            Mode::RedisSharding(nodes) => nodes.nodes(),
            Mode::Twemproxy(pool) => pool.nodes(),
            Mode::Cluster(_) => PLACES,
        }
    }

    /// Returns the node that owns the key: a number below [`Map::nodes`].
    #[inline]
    pub fn node(&self, key: &[u8]) -> usize {
        self.home(key).node
    }

    /// Returns the node that owns the key, and its group.
    #[inline]
    pub fn home(&self, key: &[u8]) -> Home {
        let node = match &self.mode {
            Mode::Slots(slots) => slots.node(key),
            Mode::RedisSharding(nodes) => nodes.node(key),
            Mode::Twemproxy(pool) => pool.node(key),
            Mode::Cluster(cluster) => return cluster.home(key),
        };
        // There are at most `MAX_NODES`.
        Home { node, group: node as u16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use twemproxy::{Distribution, Hash, Server};

    /// Maps of all modes over this number of nodes.
    fn maps(nodes: usize) -> Vec<Map> {
        let servers: Vec<Server> =
            (0..nodes).map(|i| format!("node{i}:6379:{}", i % 3 + 1).parse().unwrap()).collect();
        let pool = |distribution, hash| {
            Map::new(3, Twemproxy::new(distribution, hash, Some(*b"{}"), &servers).unwrap())
        };
        vec![
            Map::new(1, Slots::even(nodes).unwrap()),
            Map::new(2, RedisSharding::new(nodes).unwrap()),
            pool(Distribution::Ketama, Hash::Md5),
            pool(Distribution::Modula, Hash::Murmur),
        ]
    }

    #[test]
    fn a_map_has_its_epoch_and_its_number_of_nodes() {
        let maps = maps(5);
        assert_eq!(maps.iter().map(Map::nodes).collect::<Vec<_>>(), [5; 4]);
        assert_eq!(maps.iter().map(Map::epoch).collect::<Vec<_>>(), [1, 2, 3, 3]);
    }

    #[test]
    fn every_node_gets_keys() {
        for map in maps(7) {
            let mut seen = [0; 7];
            (0..7000).for_each(|i| seen[map.node(format!("key:{i}").as_bytes())] += 1);
            assert!(seen.iter().all(|keys| *keys > 200), "{map:?}: {seen:?}");
        }
    }

    proptest! {
        #[test]
        fn any_key_has_one_node_of_the_map(
            key in proptest::collection::vec(any::<u8>(), 0..80),
            nodes in 1usize..8,
        ) {
            for map in maps(nodes) {
                let node = map.node(&key);
                prop_assert!(node < nodes);
                prop_assert_eq!(map.clone().node(&key), node);
            }
        }

        /// All modes agree on tags of this form: at the end of the key, without further braces.
        #[test]
        fn keys_with_the_same_tag_share_a_node(
            (a, b, tag) in ("[a-z:]{0,9}", "[a-z:]{0,9}", "[a-z0-9]{1,9}"),
            nodes in 1usize..8,
        ) {
            for map in maps(nodes) {
                let node = |key: &str| map.node(format!("{key}{{{tag}}}").as_bytes());
                prop_assert_eq!(node(&a), node(&b));
                prop_assert_eq!(node(&a), map.node(tag.as_bytes()));
            }
        }
    }
}
