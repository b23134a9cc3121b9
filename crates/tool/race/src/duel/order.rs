//! Balanced orders: over the blocks of a race, each contender is as often at each position, and as often
//! right behind each other contender, as every other one. So neither the position nor what the predecessor
//! left in the caches favours anybody.

use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};

/// The orders of all blocks of a race, for contenders `0..k`: a Williams design (E. J. Williams,
/// *Experimental designs balanced for the estimation of residual effects of treatments*, Australian Journal
/// of Scientific Research A 2, 1949), of `k` orders for an even `k` and of `2k` for an odd one, whose
/// contenders and rows are shuffled by the seed.
#[derive(Debug)]
pub(crate) struct Orders {
    rows: Vec<Vec<usize>>,
}

impl Orders {
    pub fn new(k: usize, seed: u64) -> Orders {
        let mut random = StdRng::seed_from_u64(seed);
        let mut names: Vec<usize> = (0..k).collect();
        names.shuffle(&mut random);
        let mut rows: Vec<Vec<usize>> = Vec::new();
        for by in 0..k {
            let row: Vec<usize> = zigzag(k).map(|place| names[(place + by) % k]).collect();
            if k % 2 == 1 && k > 1 {
                rows.push(row.iter().rev().copied().collect());
            }
            rows.push(row);
        }
        rows.shuffle(&mut random);
        Orders { rows }
    }

    /// The order of the `nth` block of the race.
    pub fn of_block(&self, nth: usize) -> &[usize] {
        match self.rows.len() {
            0 => &[],
            rows => &self.rows[nth % rows],
        }
    }
}

/// 0, 1, k−1, 2, k−2, …: the differences of neighbours are all different modulo `k`.
fn zigzag(k: usize) -> impl Iterator<Item = usize> {
    (0..k).map(move |i| if i % 2 == 1 { i.div_ceil(2) } else { (k - i / 2) % k })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn each_contender_is_equally_often_at_each_place_and_behind_each_other() {
        for k in 2..=11 {
            let orders = Orders::new(k, 7 * k as u64);
            let rows = if k % 2 == 0 { k } else { 2 * k };
            let (mut places, mut pairs) = (BTreeMap::new(), BTreeMap::new());
            for nth in 0..rows {
                let order = orders.of_block(nth);
                let mut sorted = order.to_vec();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..k).collect::<Vec<_>>(), "everybody once");
                for (place, who) in order.iter().enumerate() {
                    *places.entry((place, *who)).or_insert(0) += 1;
                }
                for pair in order.windows(2) {
                    *pairs.entry((pair[0], pair[1])).or_insert(0) += 1;
                }
            }
            assert_eq!(places.len(), k * k);
            assert!(places.values().all(|n| *n == rows / k), "{k}: {places:?}");
            assert_eq!(pairs.len(), k * (k - 1));
            assert!(pairs.values().all(|n| *n == rows / k), "{k}: {pairs:?}");
        }
    }

    #[test]
    fn the_seed_decides_the_orders_and_nothing_else() {
        let all = |seed| (0..18).map(|n| Orders::new(9, seed).of_block(n).to_vec()).collect();
        let (one, same, other): (Vec<_>, Vec<_>, Vec<_>) = (all(1), all(1), all(2));
        assert_eq!(one, same);
        assert_ne!(one, other);
        assert_eq!(Orders::new(0, 1).of_block(3), [] as [usize; 0]);
        assert_eq!(Orders::new(1, 1).of_block(3), [0]);
    }
}
