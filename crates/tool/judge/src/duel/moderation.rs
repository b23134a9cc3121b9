//! Variances between lives, moderated over the contenders of a load.
//!
//! Few lives give a poor estimate of a variance, but there are several contenders. Each variance is
//! drawn towards their common one, the more, the more alike they are (empirical Bayes): Smyth, *Linear models
//! and empirical Bayes methods for assessing differential expression in microarray experiments*,
//! Statistical Applications in Genetics and Molecular Biology 3/1, 2004, sections 3 and 6.2. It is
//! `squeezeVar` of the R package limma.
//!
//! A few contenders may vary much more from start to start than the others (threads do). They must not make
//! the others look unlike, nor be drawn towards them. So location and spread are robust, and a variance
//! that is significantly larger than the common one stays as it is. The idea is that of Phipson, Lee,
//! Majewski, Alexander and Smyth, *Robust hyperparameter estimation protects against hypervariable genes and
//! improves power to detect differential expression*, Annals of Applied Statistics 10/2, 2016.

use crate::statistics::{median, robust};
use statrs::{
    distribution::{ContinuousCDF, FisherSnedecor},
    function::gamma::digamma,
};

/// Upper limit of the prior's degrees of freedom. From the variances of two contenders, chance alone
/// makes them look alike; and all ratios share the baseline, which makes them more alike than the
/// contenders are. The simulations in `tests/it/disturbed.rs` confirm the
/// coverage with this limit.
const MOST_FREEDOM: f64 = 6.0;
/// Variances below this share of the median count as this much, as in limma.
const LEAST: f64 = 1e-5;

/// Significance at which a variance is larger than the common one.
const WILD: f64 = 0.05;

/// What the variances of the contenders have in common: a scaled inverse χ² distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prior {
    /// Degrees of freedom, d₀. Zero: nothing is known.
    pub freedom: f64,
    /// Location, s₀².
    pub variance: f64,
}

impl Prior {
    /// No moderation.
    pub const NONE: Prior = Prior { freedom: 0.0, variance: 0.0 };

    /// The prior of variances with their degrees of freedom, by matching the median of their logarithms and the
    /// standard deviation that follows from the median absolute deviation. [`Prior::NONE`] with fewer than 2
    /// variances above zero.
    pub fn of(variances: &[(f64, f64)]) -> Prior {
        let uncapped = Prior::by_moments(variances).unwrap_or(Prior::NONE);
        Prior { freedom: uncapped.freedom.min(MOST_FREEDOM), ..uncapped }
    }

    fn by_moments(variances: &[(f64, f64)]) -> Option<Prior> {
        let least = LEAST * median(variances.iter().map(|(v, _)| *v).collect())?;
        if variances.len() < 2 || least <= 0.0 {
            return None;
        }
        let n = variances.len() as f64;
        let log = |(v, d): &(f64, f64)| v.max(least).ln() - digamma(d / 2.0) + (d / 2.0).ln();
        let logs: Vec<f64> = variances.iter().map(log).collect();
        let (middle, deviation) = robust(logs)?;
        let by_chance = variances.iter().map(|(_, d)| trigamma(d / 2.0)).sum::<f64>() / n;
        let spread = deviation * deviation - by_chance;
        if spread <= 0.0 {
            return Some(Prior { freedom: f64::INFINITY, variance: middle.exp() });
        }
        let half = trigamma_inverse(spread);
        Some(Prior { freedom: 2.0 * half, variance: (middle + digamma(half) - half.ln()).exp() })
    }

    /// A variance and its degrees of freedom, moderated, unless it is significantly larger than the common one.
    pub fn moderate(&self, (variance, freedom): (f64, f64)) -> (f64, f64) {
        let by_chance = FisherSnedecor::new(freedom, self.freedom)
            .map_or(1.0, |ratio| ratio.sf(variance / self.variance));
        if by_chance < WILD {
            return (variance, freedom);
        }
        let all = freedom + self.freedom;
        ((freedom * variance + self.freedom * self.variance) / all, all)
    }
}

/// The second derivative of ln Γ: the recurrence ψ′(x) = ψ′(x + 1) + 1/x² up to an argument for which
/// the asymptotic series is exact (Abramowitz and Stegun, *Handbook of Mathematical Functions*, 1964,
/// 6.4.6 and 6.4.12).
fn trigamma(mut x: f64) -> f64 {
    const LARGE: f64 = 20.0;
    let mut sum = 0.0;
    while x < LARGE {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = 1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y / 30.0));
    sum + (1.0 + 1.0 / (2.0 * x) + y * series) / x
}

/// Solves ψ′(x) = `value`, which is above 0, by bisection: ψ′ decreases, and lies between 1/x and
/// 1/x + 1/x².
fn trigamma_inverse(value: f64) -> f64 {
    const STEPS: u32 = 100;
    let (mut low, mut high) = (1.0 / value, 1.0 / value + 1.0 / value.sqrt());
    for _ in 0..STEPS {
        let middle = low.midpoint(high);
        if trigamma(middle) > value { low = middle } else { high = middle }
    }
    low.midpoint(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn trigamma_at_known_points() {
        let known = [(1.0, PI * PI / 6.0), (0.5, PI * PI / 2.0), (2.0, PI * PI / 6.0 - 1.0)];
        for (x, expected) in known {
            assert!((trigamma(x) - expected).abs() < 1e-12, "{x}");
        }
        // ψ′(x) = ψ′(x + 1) + 1/x², on both sides of where the series begins.
        for x in [1e-3, 19.5, 20.5, 1e4] {
            assert!((trigamma(x) - trigamma(x + 1.0) - 1.0 / (x * x)).abs() < 1e-9 * trigamma(x));
        }
    }

    #[test]
    fn trigamma_inverse_inverts() {
        for x in [1e-3, 0.1, 1.0, 3.7, 50.0, 1e6] {
            assert!((trigamma_inverse(trigamma(x)) / x - 1.0).abs() < 1e-9, "{x}");
        }
    }
}
