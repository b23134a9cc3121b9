//! The most frequent keys of a stream, in bounded memory: Space-Saving (Metwally, Agrawal and El Abbadi, "Efficient
//! Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005). Summaries of several streams merge into one
//! of all of them (Agarwal et al., "Mergeable Summaries", PODS 2012).
//!
//! Of n keys that were added, each key that was added more than n/128 times has a counter, and for each counter
//! `count - error <= true count <= count`. Both also hold for merged summaries, of which the 128 keys with the highest
//! counts are kept. That is enough: let each summary i have the sum `n_i` and the lowest counter `m_i` (0 while counters
//! are free), and let M be the sum of the `m_i`, so M <= n/128. A merged count is M plus what the counters of the key
//! exceed `m_i` by, and these excesses add up to n - 128 M. So fewer than 128 keys have a merged count above n/128.

use std::{collections::HashMap, hash::BuildHasher};

/// The number of counters of a summary.
pub(crate) const COUNTERS: usize = 128;

/// Maximum number of bytes that are kept of a key.
pub(crate) const LONGEST: usize = 64;

/// A key. Of one that is longer than [`LONGEST`], its first bytes, its length and a hash of the whole key: two such keys
/// are taken for the same only if all three are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    start: [u8; LONGEST],
    length: usize,
    hash: u64,
}

impl Key {
    /// The key with these bytes. `hasher`: the same for all keys that are compared, and random, because keys are chosen
    /// by clients.
    pub(crate) fn new(bytes: &[u8], hasher: &impl BuildHasher) -> Self {
        let mut start = [0; LONGEST];
        let kept = bytes.len().min(LONGEST);
        start[..kept].copy_from_slice(&bytes[..kept]);
        Key { start, length: bytes.len(), hash: hasher.hash_one(bytes) }
    }

    /// Its first bytes; all of them, if it has at most [`LONGEST`].
    pub(crate) fn start(&self) -> &[u8] {
        &self.start[..self.length.min(LONGEST)]
    }

    /// The number of its bytes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The hash of all its bytes.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }
}

/// A key with its count, which is at most `error` too high, and not too low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frequent {
    pub(crate) key: Key,
    pub(crate) count: u64,
    pub(crate) error: u64,
}

/// The most frequent keys of a stream. Its memory is allocated once.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    /// How many keys were added.
    total: u64,
    /// The hash, the count, and the rest of each counter.
    hashes: Vec<u64>,
    counts: Vec<u64>,
    errors: Vec<u64>,
    keys: Vec<Key>,
}

impl Summary {
    /// The summary of an empty stream.
    pub(crate) fn new() -> Self {
        Summary {
            total: 0,
            hashes: Vec::with_capacity(COUNTERS),
            counts: Vec::with_capacity(COUNTERS),
            errors: Vec::with_capacity(COUNTERS),
            keys: Vec::with_capacity(COUNTERS),
        }
    }

    /// Forgets everything that was added.
    pub(crate) fn clear(&mut self) {
        self.total = 0;
        self.hashes.clear();
        self.counts.clear();
        self.errors.clear();
        self.keys.clear();
    }

    /// Adds a key. The one with the lowest count makes room, if necessary.
    pub(crate) fn add(&mut self, key: Key) {
        self.total += 1;
        let is_it = |(at, hash): &(usize, &u64)| **hash == key.hash && self.keys[*at] == key;
        if let Some((at, _)) = self.hashes.iter().enumerate().find(is_it) {
            self.counts[at] += 1;
        } else if self.keys.len() < COUNTERS {
            self.hashes.push(key.hash);
            self.counts.push(1);
            self.errors.push(0);
            self.keys.push(key);
        } else {
            let lowest = self.counts.iter().enumerate().min_by_key(|(_, count)| **count);
            let Some((at, &count)) = lowest else { return };
            self.hashes[at] = key.hash;
            self.counts[at] = count + 1;
            self.errors[at] = count;
            self.keys[at] = key;
        }
    }

    /// How often a key without a counter may have been added.
    fn floor(&self) -> u64 {
        if self.keys.len() < COUNTERS { 0 } else { self.counts.iter().copied().min().unwrap_or(0) }
    }
}

/// The number of keys in all streams together, and their most frequent keys: at most 128, the most frequent first.
pub(crate) fn merged<'s>(summaries: impl IntoIterator<Item = &'s Summary>) -> (u64, Vec<Frequent>) {
    /// The sums of the counters of a key, and of the floors of the summaries in which it has one.
    #[derive(Default)]
    struct Sums {
        count: u64,
        error: u64,
        floors: u64,
    }
    let (mut total, mut floors) = (0, 0);
    let mut keys: HashMap<Key, Sums> = HashMap::new();
    for summary in summaries {
        let floor = summary.floor();
        total += summary.total;
        floors += floor;
        for (at, key) in summary.keys.iter().enumerate() {
            let sums = keys.entry(*key).or_default();
            sums.count += summary.counts[at];
            sums.error += summary.errors[at];
            sums.floors += floor;
        }
    }
    let frequent = |(key, sums): (Key, Sums)| {
        // Where it has no counter, it may have been added as often as the floor.
        let unknown = floors - sums.floors;
        Frequent { key, count: sums.count + unknown, error: sums.error + unknown }
    };
    let mut all: Vec<Frequent> = keys.into_iter().map(frequent).collect();
    all.sort_unstable_by(|one, other| {
        let by_count = other.count.cmp(&one.count).then(one.error.cmp(&other.error));
        by_count.then_with(|| one.key.start().cmp(other.key.start()))
    });
    all.truncate(COUNTERS);
    (total, all)
}

#[cfg(test)]
mod tests;
