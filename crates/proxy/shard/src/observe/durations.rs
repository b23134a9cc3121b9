//! A histogram of durations, counted by one thread and read by others.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The longest duration of each bucket, in microseconds. Longer ones have a bucket of their own.
pub(crate) const BOUNDS_US: [u64; 16] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000,
];

/// The number of buckets.
pub(crate) const BUCKETS: usize = BOUNDS_US.len() + 1;

/// A histogram of durations. One thread adds to it, and any may read it.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    /// For each bucket, the durations that are in no earlier one.
    counts: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

/// Adds to a number that no other thread changes.
#[inline]
pub(crate) fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Relaxed).wrapping_add(more), Relaxed);
}

impl Durations {
    /// Adds a duration in microseconds.
    #[inline]
    pub(crate) fn add(&self, duration_us: u64) {
        let bucket = BOUNDS_US.iter().position(|bound| duration_us <= *bound);
        add(&self.counts[bucket.unwrap_or(BOUNDS_US.len())], 1);
        add(&self.sum_us, duration_us);
    }

    /// The number of durations in each bucket, and not in an earlier one.
    pub(crate) fn counts(&self) -> [u64; BUCKETS] {
        std::array::from_fn(|bucket| self.counts[bucket].load(Relaxed))
    }

    /// The sum of all durations, in microseconds.
    pub(crate) fn sum_us(&self) -> u64 {
        self.sum_us.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_that_has_room_for_it() {
        let durations = Durations::default();
        for duration_us in [0, 99, 100, 101, 10_000_000, 10_000_001, u64::from(u32::MAX)] {
            durations.add(duration_us);
        }
        let mut expected = [0; BUCKETS];
        (expected[0], expected[1], expected[15], expected[16]) = (3, 1, 1, 2);
        assert_eq!(durations.counts(), expected);
        assert_eq!(durations.sum_us(), 99 + 100 + 101 + 20_000_001 + u64::from(u32::MAX));
        assert!(BOUNDS_US.is_sorted());
    }
}
