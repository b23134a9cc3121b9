//! Seeded randomness: a history is a function of its number.

use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Random numbers of one history.
#[derive(Debug)]
pub struct Random(SmallRng);

impl Random {
    /// Creates the generator of this seed. The same seed always gives the same numbers.
    pub fn new(seed: u64) -> Self {
        Random(SmallRng::seed_from_u64(seed))
    }

    /// Returns a number from 0 to `bound` - 1; 0 if `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        // The bias is far below what a test could notice.
        ((u128::from(self.0.random::<u64>()) * bound as u128) >> 64) as usize
    }

    /// Returns a number from `low` to `high`, both included.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below((high - low) as usize + 1) as u64
    }

    /// Returns true with a probability of `per_mille` / 1000.
    #[inline]
    pub fn chance(&mut self, per_mille: usize) -> bool {
        self.below(1000) < per_mille
    }

    /// Returns a number from `low` to `high`, both included; every order of magnitude is equally likely.
    #[inline]
    pub fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let (least, most) = (low.max(1).ilog2(), high.max(1).ilog2());
        let top = 1_u64 << self.between(least.into(), most.into());
        self.between(top, 2 * top - 1).clamp(low, high)
    }

    /// Returns one of these values.
    #[inline]
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Returns an index into `weights`, with a probability proportional to its weight.
    #[inline]
    pub fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut at = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            if at < *weight {
                return index;
            }
            at -= weight;
        }
        0
    }
}
