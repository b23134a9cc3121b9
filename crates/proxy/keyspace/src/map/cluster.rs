//! The slots of a Redis Cluster: which of its masters owns each slot, as the cluster reported it.
//!
//! Each master has a *place*, a number that it keeps while it owns slots. A place without slots is free. So the number
//! of places is constant while masters come and go.

use super::{
    home::Home,
    slots::{SLOTS, slot},
};
use crc::{CRC_16_XMODEM, Crc};

/// Maximum number of masters with slots.
pub const MAX_MASTERS: usize = 128;

/// The number of places: those of the masters, and one that never owns a slot, for connections that ask for the slots.
pub const PLACES: usize = MAX_MASTERS + 1;

/// The owner of a slot that no master serves.
const NOBODY: u8 = u8::MAX;

static XMODEM: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// The owner of each slot of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The place of the owner of each slot.
    owners: Box<[u8]>,
    /// The places that own slots, in the order of their first slots.
    order: Vec<usize>,
    /// A number that differs with high probability if slots or owners do.
    stamp: u8,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cluster({:?}, stamp {})", self.order, self.stamp)
    }
}

impl Cluster {
    /// A cluster of which nothing is known: no slot has an owner.
    pub fn unknown() -> Self {
        Cluster { owners: vec![NOBODY; usize::from(SLOTS)].into(), order: Vec::new(), stamp: 0 }
    }

    /// Creates the assignment. `ranges`: the first and the last slot, the place of the owner, below [`MAX_MASTERS`], and
    /// its name in the cluster. Of ranges that overlap, the later one counts.
    pub fn new<'a>(ranges: impl IntoIterator<Item = (u16, u16, usize, &'a [u8])>) -> Self {
        let (mut cluster, mut names) = (Self::unknown(), vec![&b""[..]; MAX_MASTERS]);
        for (first, last, place, name) in ranges {
            names[place] = name;
            let last = last.min(SLOTS - 1);
            for owner in cluster.owners.iter_mut().take(usize::from(last) + 1).skip(first.into()) {
                *owner = place as u8;
            }
        }
        let mut digest = XMODEM.digest();
        let mut before = NOBODY;
        for (slot, owner) in cluster.owners.iter().enumerate() {
            if *owner == before {
                continue;
            }
            before = *owner;
            digest.update(&(slot as u16).to_le_bytes());
            if let Some(name) = names.get(usize::from(*owner)) {
                digest.update(name);
                if !cluster.order.contains(&usize::from(*owner)) {
                    cluster.order.push((*owner).into());
                }
            }
        }
        let [low, high] = digest.finalize().to_le_bytes();
        cluster.stamp = low ^ high;
        cluster
    }

    /// The place of the owner of a slot. If it has none, that of any master: it replies with an error.
    #[inline]
    pub fn node_of(&self, slot: u16) -> usize {
        match self.owners[usize::from(slot)] {
            NOBODY => self.order.first().copied().unwrap_or(0),
            owner => owner.into(),
        }
    }

    /// Whether a master serves this slot.
    pub fn serves(&self, slot: u16) -> bool {
        self.owners[usize::from(slot)] != NOBODY
    }

    /// The places that own slots, in the order of their first slots.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// A number that differs, with a probability of 255 to 256, if another slot or owner does. It is the same in all
    /// processes that know the same slots and names.
    pub fn stamp(&self) -> u8 {
        self.stamp
    }

    #[inline]
    pub(super) fn home(&self, key: &[u8]) -> Home {
        let slot = slot(key);
        Home { node: self.node_of(slot), group: slot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Map;

    fn cluster(ranges: &[(u16, u16, usize)]) -> Cluster {
        let names: [&[u8]; 3] = [b"one", b"two", b"three"];
        Cluster::new(
            ranges.iter().map(|(first, last, place)| (*first, *last, *place, names[*place])),
        )
    }

    #[test]
    fn slots_have_the_owner_of_their_range() {
        let cluster = cluster(&[(8000, 16383, 0), (0, 7999, 2), (100, 100, 1)]);
        let owner = |slot| (cluster.node_of(slot), cluster.serves(slot));
        assert_eq!([99, 100, 101, 7999, 8000, 16383].map(|slot| owner(slot).0), [2, 1, 2, 2, 0, 0]);
        assert!((0..SLOTS).all(|slot| owner(slot).1));
        assert_eq!(cluster.order(), [2, 1, 0]);
        let map = Map::new(1, cluster);
        assert_eq!((map.nodes(), map.order()), (PLACES, vec![2, 1, 0]));
    }

    #[test]
    fn a_slot_without_owner_belongs_to_some_master() {
        let some = cluster(&[(5, 9, 1)]);
        assert_eq!((some.serves(4), some.node_of(4)), (false, 1));
        assert_eq!((some.serves(9), some.node_of(9)), (true, 1));
        let unknown = Cluster::unknown();
        assert_eq!((unknown.serves(9), unknown.node_of(9), unknown.order().len()), (false, 0, 0));
    }

    #[test]
    fn the_stamp_depends_on_slots_and_names_and_not_on_places() {
        let stamp = |ranges: &[(u16, u16, usize, &'static [u8])]| {
            Cluster::new(ranges.iter().copied()).stamp()
        };
        let one = stamp(&[(0, 9, 0, b"a"), (10, 16383, 1, b"b")]);
        assert_eq!(one, stamp(&[(10, 16383, 0, b"b"), (0, 9, 7, b"a")]));
        assert_ne!(one, stamp(&[(0, 10, 0, b"a"), (11, 16383, 1, b"b")]));
        assert_ne!(one, stamp(&[(0, 9, 0, b"b"), (10, 16383, 1, b"a")]));
    }
}
