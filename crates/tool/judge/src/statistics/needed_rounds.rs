//! The number of rounds that an interval of a given width needs.

use super::{CONFIDENCE, Difference, t_quantile};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Upper limit of the result.
const MOST: u32 = 1_000_000;
/// Probability that the variance is at most the one used for [`Needed::at_most`].
const PROBABILITY: f64 = 0.80;

/// Number of rounds, or lives, that an interval needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    /// At the observed variance.
    pub likely: u32,
    /// At the largest variance consistent with the rounds so far, with a probability of 80%.
    pub at_most: u32,
}

/// Rounds until the 95% interval of a ratio has the half-width `half_width` (a logarithm), from its
/// pairs so far: the least n with `t(0.975; n−1) · s/√n ≤ half_width` (Snedecor and Cochran,
/// *Statistical Methods*, on the size of samples). `s` itself is uncertain: at most
/// `s · √((m−1)/χ²(0.2; m−1))` after m rounds, with a probability of 80%.
pub fn rounds_needed(pairs: &Difference, half_width: f64) -> Needed {
    let spread = pairs.error * f64::from(pairs.rounds).sqrt();
    let chi = ChiSquared::new(pairs.freedom).expect("degrees of freedom are positive");
    let largest = spread * (pairs.freedom / chi.inverse_cdf(1.0 - PROBABILITY)).sqrt();
    Needed { likely: least(spread, half_width), at_most: least(largest, half_width) }
}

/// The least n: the half-width decreases with n, so bisection finds it.
fn least(spread: f64, half: f64) -> u32 {
    let is_enough = |n: u32| {
        let n = f64::from(n);
        t_quantile(0.5 + CONFIDENCE / 2.0, n - 1.0) * spread / n.sqrt() <= half
    };
    let (mut too_few, mut enough) = (1, MOST);
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        if is_enough(middle) { enough = middle } else { too_few = middle }
    }
    enough
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(pairs: &[f64], half_width: f64) -> Needed {
        rounds_needed(&Difference::paired(pairs).unwrap(), half_width.ln_1p())
    }

    #[test]
    fn the_rounds_of_a_worked_example() {
        // s = 0.05; for ±2%: ln 1.02 = 0.0198. n = 27: t(0.975; 26) = 2.0555, half-width 0.01978;
        // n = 26: t = 2.0595, 0.02020.
        let needed = needed(&[0.05, -0.05, 0.05, -0.05, 0.0], 0.02);
        assert_eq!(needed.likely, 27);
        // χ²(0.2; 4) = 1.6488: a standard deviation 1.5576 times as large needs about its square,
        // 2.43 times.
        assert!((60..=63).contains(&needed.at_most), "{needed:?}");
    }

    #[test]
    fn needs_few_rounds_without_variance_and_at_most_a_million() {
        assert_eq!(needed(&[0.1; 5], 0.02), Needed { likely: 2, at_most: 2 });
        assert_eq!(needed(&[100.0, -100.0], 0.001).likely, MOST);
    }
}
