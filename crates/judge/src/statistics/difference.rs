//! A difference of logarithms with its error: of pairs, or of two unpaired groups.

use super::{
    CONFIDENCE,
    interval::{standard_error, students_t},
    mean,
};
use regatta_record::Estimate;
use statrs::distribution::ContinuousCDF;

/// The mean of a difference of logarithms; as a ratio, the new cost over the old.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    mean: f64,
    /// Standard error of the mean.
    error: f64,
    /// Degrees of freedom of Student's t.
    freedom: f64,
    /// Number of pairs; for groups, the size of the smaller one.
    rounds: usize,
}

impl Difference {
    /// The difference of pairs: the log-ratios of the passes (Student 1908). `None` with fewer than
    /// 2.
    pub fn paired(log_ratios: &[f64]) -> Option<Self> {
        let error = standard_error(log_ratios)?;
        let freedom = log_ratios.len() as f64 - 1.0;
        Some(Difference { mean: mean(log_ratios)?, error, freedom, rounds: log_ratios.len() })
    }

    /// The difference of two groups whose variances may differ: `mean(new) − mean(old)`, its error
    /// `√(s₁²/n₁ + s₂²/n₂)`, and the degrees of freedom of Welch, *The generalization of
    /// "Student's" problem when several different population variances are involved*, Biometrika
    /// 34, 1947. `None` with fewer than 2 values in either.
    pub fn unpaired(old: &[f64], new: &[f64]) -> Option<Self> {
        let [a, b] = [standard_error(old)?.powi(2), standard_error(new)?.powi(2)];
        let [freedom_a, freedom_b] = [old, new].map(|values| values.len() as f64 - 1.0);
        let freedom = match a + b {
            0.0 => freedom_a + freedom_b,
            sum => sum.powi(2) / (a.powi(2) / freedom_a + b.powi(2) / freedom_b),
        };
        let rounds = old.len().min(new.len());
        Some(Difference { mean: mean(new)? - mean(old)?, error: (a + b).sqrt(), freedom, rounds })
    }

    /// The ratio with its two-sided 95% interval.
    pub fn ratio(&self) -> Estimate {
        let half = students_t(self.freedom).inverse_cdf(0.5 + CONFIDENCE / 2.0) * self.error;
        let [mean, low, high] = [0.0, -half, half].map(|by| (self.mean + by).exp());
        Estimate { mean, low, high }
    }

    /// The lower end of the one-sided 95% interval of the ratio.
    pub fn at_least(&self) -> f64 {
        (self.mean - students_t(self.freedom).inverse_cdf(CONFIDENCE) * self.error).exp()
    }

    /// Standard error of the mean, a logarithm.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// Number of rounds; for two groups, the smaller number.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// The upper end of the one-sided 95% interval of the ratio.
    pub fn at_most(&self) -> f64 {
        (self.mean + students_t(self.freedom).inverse_cdf(CONFIDENCE) * self.error).exp()
    }

    /// The number of rounds that decide with a probability of 90% on which side of `limit` (a
    /// logarithm) the difference lies, if its mean and variance are as observed: `n·((z₀.₉₅ +
    /// z₀.₉₀)·e/d)²` with the standard error `e` of the `n` rounds so far and the distance `d` of
    /// mean and limit (Cochran, *Sampling Techniques*, 1977, section 4.6). `None` if the limit is
    /// too close: more than [`Difference::MOST_ROUNDS`].
    pub fn rounds_to_decide(&self, limit: f64) -> Option<u32> {
        const QUANTILES: f64 = 1.645 + 1.282;
        let times = (QUANTILES * self.error / (self.mean - limit)).powi(2);
        let rounds = (self.rounds as f64 * times).ceil();
        (rounds <= f64::from(Self::MOST_ROUNDS)).then_some(rounds as u32)
    }

    /// Maximum number of rounds that is ever recommended.
    pub const MOST_ROUNDS: u32 = 1_000;

    /// Two-sided p-value of "there is no difference".
    pub fn p_differs(&self) -> f64 {
        (2.0 * Difference { mean: self.mean.abs(), ..*self }.p_above(0.0)).min(1.0)
    }

    /// One-sided p-value of "the difference is `limit` (a logarithm) or less".
    pub fn p_above(&self, limit: f64) -> f64 {
        let beyond = self.mean - limit;
        if self.error > 0.0 {
            return students_t(self.freedom).sf(beyond / self.error);
        }
        match beyond.total_cmp(&0.0) {
            std::cmp::Ordering::Less => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Greater => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{p_value, student};

    #[test]
    fn pairs_agree_with_the_other_statistics() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0].map(|v| v / 100.0);
        let (difference, interval) =
            (Difference::paired(&values).unwrap(), student(&values).unwrap());
        let ratio = difference.ratio();
        assert!((ratio.low.ln() - interval.low).abs() < 1e-12, "{ratio:?}");
        assert!((ratio.high.ln() - interval.high).abs() < 1e-12, "{ratio:?}");
        assert!((difference.p_differs() - p_value(&values).unwrap()).abs() < 1e-9);
        // One-sided: t(0.95; 4) = 2.1318, error 0.0070711.
        assert!((difference.at_least().ln() - (0.03 - 2.1318 * 0.0070711)).abs() < 1e-6);
        assert!(difference.p_above(0.01) < 0.05 && difference.p_above(0.02) > 0.05);
        assert_eq!(Difference::paired(&[0.1]), None);
    }

    #[test]
    fn welch_on_a_worked_example() {
        // s₁² = 2.5 of 5, s₂² = 4 of 3: error √(0.5 + 1.3333) = 1.35401; freedom
        // 1.83333² / (0.5²/4 + 1.33333²/2) = 3.5329; the means 3 and 6.
        let old = [1.0, 2.0, 3.0, 4.0, 5.0];
        let new = [4.0, 6.0, 8.0];
        let d = Difference::unpaired(&old, &new).unwrap();
        assert_eq!(d.mean, 3.0);
        assert!((d.error - 1.35401).abs() < 1e-5 && (d.freedom - 3.5329).abs() < 1e-4, "{d:?}");
        assert_eq!(Difference::unpaired(&old, &[1.0]), None);
    }

    #[test]
    fn without_variance_the_mean_decides() {
        let d = Difference::unpaired(&[0.0; 3], &[0.125; 3]).unwrap();
        assert_eq!((d.p_differs(), d.p_above(0.05), d.p_above(0.2)), (0.0, 0.0, 1.0));
        assert_eq!(Difference::paired(&[0.0; 3]).unwrap().p_differs(), 1.0);
    }
}
