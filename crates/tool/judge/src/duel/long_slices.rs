//! Whether the length of a slice changes a ratio: blocks of long slices against the others.

use super::{field::Life, ratio::Pair};
use crate::statistics::{mean, p_value};

/// How much a ratio in long slices differs from that in slices of the usual length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongSlices {
    /// Mean over lives of the log-ratio in long slices minus that in usual ones.
    pub log: f64,
    /// The p-value of "no difference": Student's t over lives, for one look.
    pub p: f64,
    /// Number of lives with both.
    pub lives: u32,
}

impl LongSlices {
    /// Compares the blocks of each life, `ratios[life][block]` with their states, after subtracting
    /// the ratio of the block's state. `None` with fewer than 2 lives that have both.
    pub(super) fn of(
        lives: &[Life],
        ratios: &[Vec<Option<(usize, f64)>>],
        pair: &Pair,
    ) -> Option<LongSlices> {
        let of_life = |(life, ratios): (&Life, &Vec<Option<(usize, f64)>>)| {
            let away = |long: bool| {
                let blocks = life.blocks.iter().zip(ratios).filter(|(b, _)| b.is_long() == long);
                let away = |(_, ratio): (_, &Option<(usize, f64)>)| {
                    let (state, d) = (*ratio)?;
                    Some(d - pair.in_state(state)?)
                };
                mean(&blocks.filter_map(away).collect::<Vec<_>>())
            };
            Some(away(true)? - away(false)?)
        };
        let differences: Vec<f64> = lives.iter().zip(ratios).filter_map(of_life).collect();
        let p = p_value(&differences)?;
        Some(LongSlices { log: mean(&differences)?, p, lives: differences.len() as u32 })
    }
}
