//! A difference of logarithms with its error: of pairs, or of two unpaired groups.

use super::{
    CONFIDENCE,
    interval::{standard_error, students_t},
    mean,
};
use statrs::distribution::ContinuousCDF;

/// The mean of a difference of logarithms, e.g. of the new cost over the old, for Student's t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The mean.
    pub mean: f64,
    /// Standard error of the mean.
    pub error: f64,
    /// Degrees of freedom of Student's t.
    pub freedom: f64,
    /// Number of pairs; for groups, the size of the smaller one.
    pub rounds: u32,
}

impl Difference {
    /// The mean of one logarithm per round, e.g. of the log-ratios of pairs (Student 1908). `None`
    /// with fewer than 2.
    pub fn paired(logs: &[f64]) -> Option<Self> {
        let (error, rounds) = (standard_error(logs)?, logs.len() as u32);
        Some(Difference { mean: mean(logs)?, error, freedom: f64::from(rounds) - 1.0, rounds })
    }

    /// This mean minus another one that is independent of it and may have another variance: the
    /// error is `√(e₁² + e₂²)`, with the degrees of freedom of Welch, *The generalization of
    /// "Student's" problem when several different population variances are involved*, Biometrika
    /// 34, 1947.
    pub fn minus(&self, other: &Self) -> Self {
        let [a, b] = [self.error.powi(2), other.error.powi(2)];
        let freedom = match a + b {
            0.0 => self.freedom + other.freedom,
            sum => sum.powi(2) / (a.powi(2) / self.freedom + b.powi(2) / other.freedom),
        };
        let rounds = self.rounds.min(other.rounds);
        Difference { mean: self.mean - other.mean, error: (a + b).sqrt(), freedom, rounds }
    }

    /// Half-width of the two-sided 95% interval.
    pub fn half_width(&self) -> f64 {
        students_t(self.freedom).inverse_cdf(0.5 + CONFIDENCE / 2.0) * self.error
    }

    /// Half-width of the one-sided 95% interval.
    pub fn one_sided(&self) -> f64 {
        students_t(self.freedom).inverse_cdf(CONFIDENCE) * self.error
    }

    /// Two-sided p-value of "there is no difference".
    pub fn p_differs(&self) -> f64 {
        (2.0 * Difference { mean: self.mean.abs(), ..*self }.p_above(0.0)).min(1.0)
    }

    /// One-sided p-value of "the difference is `limit` or less".
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
        let half = difference.half_width();
        assert!((difference.mean - half - interval.low).abs() < 1e-12, "{difference:?}");
        assert!((difference.mean + half - interval.high).abs() < 1e-12, "{difference:?}");
        assert!((difference.p_differs() - p_value(&values).unwrap()).abs() < 1e-9);
        // One-sided: t(0.95; 4) = 2.1318, error 0.0070711.
        assert!((difference.one_sided() - 2.1318 * 0.0070711).abs() < 1e-6);
        assert!(difference.p_above(0.01) < 0.05 && difference.p_above(0.02) > 0.05);
        assert_eq!(Difference::paired(&[0.1]), None);
    }

    fn minus(new: &[f64], old: &[f64]) -> Difference {
        Difference::paired(new).unwrap().minus(&Difference::paired(old).unwrap())
    }

    #[test]
    fn welch_on_a_worked_example() {
        // s₁² = 2.5 of 5, s₂² = 4 of 3: error √(0.5 + 1.3333) = 1.35401; freedom
        // 1.83333² / (0.5²/4 + 1.33333²/2) = 3.5329; the means 3 and 6.
        let d = minus(&[4.0, 6.0, 8.0], &[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((d.mean, d.rounds), (3.0, 3));
        assert!((d.error - 1.35401).abs() < 1e-5 && (d.freedom - 3.5329).abs() < 1e-4, "{d:?}");
    }

    #[test]
    fn without_variance_the_mean_decides() {
        let d = minus(&[0.125; 3], &[0.0; 3]);
        assert_eq!((d.p_differs(), d.p_above(0.05), d.p_above(0.2)), (0.0, 0.0, 1.0));
        assert_eq!(Difference::paired(&[0.0; 3]).unwrap().p_differs(), 1.0);
    }
}
