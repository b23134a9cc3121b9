//! How often each key is used.

use rand::{
    Rng,
    distr::{Distribution as _, weighted::WeightedIndex},
    rngs::StdRng,
};

/// The distribution of the use of keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Distribution {
    /// All keys are used equally often.
    Uniform,
    /// The k-th key is used in proportion to `k^-exponent` (Zipf's law).
    Zipf(f64),
}

/// A generator of keys.
pub(super) struct Keys {
    weighted: Option<WeightedIndex<f64>>,
    count: usize,
    taken: Vec<bool>,
}

impl Keys {
    /// Creates a generator of `count` keys: 1 to 65,536.
    pub fn new(distribution: Distribution, count: usize) -> Keys {
        let weighted = match distribution {
            Distribution::Uniform => None,
            Distribution::Zipf(exponent) => {
                let weights = (1..=count).map(|rank| (rank as f64).powf(-exponent));
                Some(WeightedIndex::new(weights).expect("weights are positive"))
            }
        };
        Keys { weighted, count, taken: vec![false; count] }
    }

    /// Appends `n` different keys; `n` is at most the number of keys. If a drawn key is already among
    /// them, the next key that is not takes its place.
    pub fn draw(&mut self, n: usize, random: &mut StdRng, out: &mut Vec<u16>) {
        let from = out.len();
        for _ in 0..n {
            let mut key = match &self.weighted {
                None => random.random_range(0..self.count),
                Some(weighted) => weighted.sample(random),
            };
            while self.taken[key] {
                key = (key + 1) % self.count;
            }
            self.taken[key] = true;
            out.push(key as u16);
        }
        out[from..].iter().for_each(|key| self.taken[usize::from(*key)] = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// Counts how often each of ten keys is drawn in 100,000 draws.
    fn counts(distribution: Distribution) -> [f64; 10] {
        let (mut keys, mut random) = (Keys::new(distribution, 10), StdRng::seed_from_u64(1));
        let mut drawn = Vec::new();
        (0..100_000).for_each(|_| keys.draw(1, &mut random, &mut drawn));
        let mut counts = [0.0; 10];
        drawn.iter().for_each(|key| counts[usize::from(*key)] += 1.0);
        counts
    }

    #[test]
    fn draws_keys_according_to_the_distribution() {
        for count in counts(Distribution::Uniform) {
            assert!((9_500.0..10_500.0).contains(&count), "{count}");
        }
        let zipf = counts(Distribution::Zipf(1.0));
        for (rank, count) in zipf.iter().enumerate() {
            let share = zipf[0] / (rank + 1) as f64;
            assert!((share * 0.9..share * 1.1).contains(count), "{rank}: {count} of {share}");
        }
    }

    #[test]
    fn the_keys_of_a_command_differ() {
        for distribution in [Distribution::Uniform, Distribution::Zipf(3.0)] {
            let (mut keys, mut random) = (Keys::new(distribution, 100), StdRng::seed_from_u64(1));
            for _ in 0..100 {
                let mut drawn = Vec::new();
                keys.draw(100, &mut random, &mut drawn);
                drawn.sort_unstable();
                assert!(drawn.iter().copied().eq(0..100));
            }
        }
    }
}
