//! How much to measure.

use super::{Look, interval::Looked, ratio::Ratio};
use crate::statistics::{CONFIDENCE, Needed};
use statrs::distribution::{ChiSquared, ContinuousCDF};
use std::ops::RangeInclusive;

/// Largest number of lives in a result.
const MOST: u32 = 100_000;
/// Probability that the variance is at most the one used for [`Needed::at_most`].
const PROBABILITY: f64 = 0.80;

/// Number of blocks per life that makes the narrowest interval in a given time:
/// `√(cost of a life / cost of a block × σ²/τ²)`, with the costs in seconds (Kalibera and Jones,
/// *Rigorous benchmarking in reasonable time*, ISMM 2013, section 9.1). `within` is σ, the standard
/// deviation of blocks within a life, and `between` is τ, that between lives. The result is rounded
/// and within `range`; without any variance between lives it is the end of the range.
pub fn blocks_per_life(
    life_s: f64,
    block_s: f64,
    within: f64,
    between: f64,
    range: RangeInclusive<u32>,
) -> u32 {
    let best = (life_s / block_s).sqrt() * within / between;
    let (least, most) = (*range.start(), *range.end());
    match best {
        // 0/0: no variance at all, so nothing is gained by more.
        best if best.is_nan() => least,
        best => (best.round().clamp(0.0, f64::from(u32::MAX)) as u32).min(most).max(least),
    }
}

/// Lives still needed until the 95% interval of a ratio has the half-width `half_width` (a
/// fraction) at the end of the race, from its moderated variance: *likely* at the variance observed so far, *at most* at the
/// largest variance consistent with it, with a probability of 80% (`s²·ν/χ²(0.2; ν)`). Zero if the
/// interval is narrow enough. `None` if even 100,000 lives are too few.
pub fn lives_needed(ratio: &Ratio, half_width: f64) -> Option<Needed> {
    let goal = half_width.ln_1p();
    let chi = ChiSquared::new(ratio.freedom).ok()?.inverse_cdf(1.0 - PROBABILITY);
    let spread = ratio.error * f64::from(ratio.lives).sqrt();
    let largest = spread * (ratio.freedom / chi).sqrt();
    let likely = more(ratio, spread, goal)?;
    let at_most = more(ratio, largest, goal).unwrap_or(MOST);
    Some(Needed { likely, at_most: if likely == 0 { 0 } else { at_most } })
}

/// The least number of further lives: the half-width decreases with it, so bisection finds it.
fn more(ratio: &Ratio, spread: f64, goal: f64) -> Option<u32> {
    let is_enough = |further: u32| {
        let lives = f64::from(ratio.lives + further);
        let freedom = ratio.freedom + f64::from(further);
        let error = spread / lives.sqrt();
        let looked = Looked { look: Look::Last, mean: 0.0, error, lives, freedom };
        looked.half_width(1.0 - CONFIDENCE) <= goal
    };
    if is_enough(0) {
        return Some(0);
    }
    if !is_enough(MOST) {
        return None;
    }
    let (mut too_few, mut enough) = (0, MOST);
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        if is_enough(middle) { enough = middle } else { too_few = middle }
    }
    Some(enough)
}
