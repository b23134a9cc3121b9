//! The dynamic table (RFC 7541, 2.3.2 and 4).

use std::collections::VecDeque;

/// What an entry counts besides its name and value, in bytes (RFC 7541, 4.1).
pub(super) const OVERHEAD: usize = 32;

/// The fields that were inserted last.
///
/// Names and values lie behind each other in one buffer of twice the table's size, oldest first. When
/// it is full, they are moved to its start, so that each inserted byte is moved at most once on average,
/// and each string stays contiguous. After the first insertion, nothing is allocated until the size is
/// raised.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Oldest first.
    entries: VecDeque<Entry>,
    bytes: Vec<u8>,
    /// The size of all entries, in bytes, as the RFC counts it.
    size: usize,
    /// Maximum of that.
    max: usize,
    /// Number of changes.
    generation: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where its name starts. Its value follows.
    at: usize,
    name: usize,
    value: usize,
}

impl Entry {
    fn size(self) -> usize {
        self.name + self.value + OVERHEAD
    }
}

impl Table {
    pub fn new(max: usize) -> Self {
        Table { entries: VecDeque::new(), bytes: Vec::new(), size: 0, max, generation: 0 }
    }

    /// Maximum size in bytes.
    pub fn max(&self) -> usize {
        self.max
    }

    /// The number of changes. While it stays the same, an index refers to the same field.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The name and value at an index; the newest is 0.
    #[inline]
    pub fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let last = self.entries.len().checked_sub(1)?;
        let entry = self.entries.get(last.checked_sub(index)?)?;
        let (start, middle) = (entry.at, entry.at + entry.name);
        Some((&self.bytes[start..middle], &self.bytes[middle..middle + entry.value]))
    }

    /// All fields, newest first.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.entries.len()).filter_map(|index| self.get(index))
    }

    /// Changes the maximum size, and evicts what exceeds it (RFC 7541, 4.3).
    pub fn resize(&mut self, max: usize) {
        self.max = max;
        self.generation += 1;
        self.evict(max);
    }

    /// Inserts a field, and evicts others for it (RFC 7541, 4.4). A field larger than the table empties
    /// it.
    pub fn insert(&mut self, name: &[u8], value: &[u8]) {
        let entry = Entry { at: 0, name: name.len(), value: value.len() };
        self.generation += 1;
        self.evict(self.max.saturating_sub(entry.size()));
        if entry.size() > self.max {
            return;
        }
        let most = 2 * self.max;
        if self.bytes.len() + entry.size() > most {
            self.compact();
        }
        if self.bytes.capacity() < most {
            self.bytes.reserve_exact(most - self.bytes.len());
            self.entries.reserve(self.max / OVERHEAD + 1 - self.entries.len());
        }
        self.entries.push_back(Entry { at: self.bytes.len(), ..entry });
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.size += entry.size();
    }

    /// Evicts the oldest entries until the size is at most `max`.
    fn evict(&mut self, max: usize) {
        while self.size > max
            && let Some(oldest) = self.entries.pop_front()
        {
            self.size -= oldest.size();
        }
    }

    /// Moves the strings to the start of the buffer.
    fn compact(&mut self) {
        let start = self.entries.front().map_or(self.bytes.len(), |oldest| oldest.at);
        self.bytes.copy_within(start.., 0);
        self.bytes.truncate(self.bytes.len() - start);
        self.entries.iter_mut().for_each(|entry| entry.at -= start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    fn all(table: &Table) -> Vec<(Vec<u8>, Vec<u8>)> {
        table.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
    }

    #[test]
    fn a_field_that_fits_exactly_is_kept_and_a_larger_one_empties_the_table() {
        let mut table = Table::new(40);
        table.insert(b"abcd", b"efgh");
        assert_eq!(all(&table), [(b"abcd".to_vec(), b"efgh".to_vec())]);
        table.insert(b"abcd", b"efghi");
        assert_eq!(all(&table), []);
        assert_eq!(table.get(0), None);
    }

    proptest! {
        /// The model is a list of owned fields.
        #[test]
        fn it_keeps_the_newest_fields_that_fit(
            steps in vec((vec(any::<u8>(), 0..40), vec(any::<u8>(), 0..90), 0_usize..600), 1..200),
        ) {
            let mut table = Table::new(300);
            let (mut model, mut max) = (VecDeque::new(), 300);
            for (name, value, size) in steps {
                if size < 30 {
                    max = size * 20;
                    table.resize(max);
                } else {
                    table.insert(&name, &value);
                    model.push_front((name, value));
                }
                let size = |model: &VecDeque<(Vec<u8>, Vec<u8>)>| -> usize {
                    model.iter().map(|(name, value)| name.len() + value.len() + OVERHEAD).sum()
                };
                while size(&model) > max {
                    model.pop_back();
                }
                prop_assert_eq!(all(&table), model.iter().cloned().collect::<Vec<_>>());
                prop_assert_eq!(table.size, size(&model));
                // Twice the largest size above.
                prop_assert!(table.bytes.len() <= 2 * 580);
            }
        }
    }
}
