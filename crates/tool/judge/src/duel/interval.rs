//! The interval of a ratio: one that remains valid however often one looks before the end of a race, and
//! Student's at its end.
//!
//! # Before the end
//!
//! A plain 95% interval is right for one look. Looking after every life and stopping when the
//! interval is narrow, or when it excludes 1, is wrong more often. An e-value bounds that: if `μ` is
//! true, `E(μ)` of the lives so far is on average at most 1, at whatever life one stops; so it ever
//! reaches 20 with a probability of at most 5% (Ville's inequality), and the values of `μ` with
//! `E(μ) < 20` are a confidence sequence.
//!
//! The e-value is a likelihood ratio that does not depend on the unknown variance σ², with the true
//! mean at a distance of `N(0, σ²/c²)` from `μ` as the alternative (Lai, *On confidence sequences*,
//! Annals of Statistics 4, 1976, section 5; Wang and Ramdas, *Anytime-valid t-tests and confidence
//! sequences for Gaussian means with unknown variance*, 2023, section 4.2):
//!
//! `E = √q · ((1 + t²/ν) / (1 + q·t²/ν))^((ν+1)/2)`, `q = c²/(n + c²)`.
//!
//! They have ν = n − 1. It is the ratio of the densities of t under both hypotheses: a t distribution
//! with ν degrees of freedom, and the same times `1/√q` (Gönen, Johnson, Lu and Westfall, *The
//! Bayesian two-sample t test*, The American Statistician 59, 2005, equation 5). With a variance that
//! was drawn from a scaled inverse χ² distribution with d₀ degrees of freedom, the moderated t has
//! these two distributions with ν = d₀ + n − 1 (Smyth 2004, section 4), so the same formula holds.
//!
//! # The last look
//!
//! That validity has its price: with 6 to 13 lives the intervals are 1.7 times as wide as Student's. Most
//! looks only decide whether the race goes on, though. So the error is divided ([`BEFORE`]): a fifth of it is
//! for all looks before the end of the race, with e-values; the rest is for the one at its end, with Student's
//! t on the moderated variance (Smyth 2004, section 4). The end must not depend on the ratios themselves. It
//! is a number of lives or a time that was set before the race, or depends on the widths of the intervals
//! only, which are independent of the means if the means of lives are normal (Chow and Robbins 1965; see
//! `whole::stopping_rule`). A race that is interrupted has not reached its end, so its intervals are of the first kind.
//!
//! Of 242 pairs of copies on shared machines, half of them beside a program that kept a CPU busy half of
//! the time, the intervals of the last look excluded 1 in 7 (3%; 4% are nominal).

use super::Look;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// `c²`: how far from `μ` the alternative expects the truth, in variances of a life. A small value
/// expects it far away. With 8 to 12 lives, 0.7 makes the narrowest intervals and this one is 3%
/// wider; but with 0.7 four lives have no interval without moderation.
const C_SQUARED: f64 = 0.25;

/// Share of the error that is for looks before the last one.
const BEFORE: f64 = 0.2;

/// A mean over lives with its moderated error, at a look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Looked {
    pub look: Look,
    pub mean: f64,
    /// Standard error of the mean.
    pub error: f64,
    pub lives: f64,
    /// ν.
    pub freedom: f64,
}

impl Looked {
    /// The one-sided p-value of "the mean is at most `mu`", or of "at least" if the mean is below. The
    /// alternative of the e-value is symmetric; half of it lies on each side.
    pub fn p_beyond(&self, mu: f64) -> f64 {
        let p = match self.look {
            Look::Before => 0.5 / self.evidence_against(mu) / BEFORE,
            Look::Last => {
                let t = (self.mean - mu).abs() / self.error;
                // Without any error, and with the mean itself, nothing speaks against it.
                let beyond = |student: StudentsT| if t.is_nan() { 0.5 } else { student.sf(t) };
                self.student().map_or(0.5, beyond) / (1.0 - BEFORE)
            }
        };
        p.min(1.0)
    }

    /// Half-width of the two-sided interval with the error `alpha`. Infinite if lives and freedom are too
    /// few to exclude any mean.
    pub fn half_width(&self, alpha: f64) -> f64 {
        match self.look {
            Look::Before => self.of_sequence(alpha * BEFORE),
            Look::Last => self.student().map_or(f64::INFINITY, |student| {
                self.error * student.inverse_cdf(1.0 - alpha * (1.0 - BEFORE) / 2.0)
            }),
        }
    }

    fn student(&self) -> Option<StudentsT> {
        StudentsT::new(0.0, 1.0, self.freedom).ok()
    }

    fn q(&self) -> f64 {
        C_SQUARED / (self.lives + C_SQUARED)
    }

    /// The evidence against `mu`: an e-value.
    fn evidence_against(&self, mu: f64) -> f64 {
        let (q, nu) = (self.q(), self.freedom);
        let x = ((self.mean - mu) / self.error).powi(2) / nu;
        // The limit for a large t; without any error it is that of every other mean.
        let ratio = match (x.is_nan(), x > 1e15) {
            (true, _) => 1.0,
            (_, true) => 1.0 / q,
            _ => (1.0 + x) / (1.0 + q * x),
        };
        q.sqrt() * ratio.powf((nu + 1.0) / 2.0)
    }

    /// Half-width of the interval of all means against which there is less evidence than `1/alpha`.
    fn of_sequence(&self, alpha: f64) -> f64 {
        let (q, nu) = (self.q(), self.freedom);
        let ratio = (1.0 / (alpha * q.sqrt())).powf(2.0 / (nu + 1.0));
        if q * ratio >= 1.0 {
            return f64::INFINITY;
        }
        self.error * (nu * (ratio - 1.0) / (1.0 - q * ratio)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::CONFIDENCE;

    const ALPHA: f64 = 1.0 - CONFIDENCE;

    fn looked(look: Look) -> Looked {
        Looked { look, mean: 0.02, error: 0.01, lives: 6.0, freedom: 11.0 }
    }

    #[test]
    fn the_last_look_has_students_interval_with_four_fifths_of_the_error() {
        // t(0.98; 11) = 2.3281, t(0.96; 11) = 1.9284.
        assert!((looked(Look::Last).half_width(ALPHA) - 0.023_281).abs() < 1e-6);
        assert!((looked(Look::Last).half_width(2.0 * ALPHA) - 0.019_284).abs() < 1e-6);
    }

    #[test]
    fn a_look_before_the_end_has_a_fifth_of_the_error() {
        // (20·5/√q)^(2/12) with q = 0.25/6.25 is 2.8173; √(11·1.8173/(1 − 0.04·2.8173)) is 4.7459.
        let half = looked(Look::Before).half_width(ALPHA);
        assert!((half - 0.047_459).abs() < 1e-5, "{half}");
    }

    #[test]
    fn intervals_end_where_the_p_value_is_their_error() {
        for look in [Look::Before, Look::Last] {
            for alpha in [0.01, ALPHA, 2.0 * ALPHA] {
                let looked = looked(look);
                let half = looked.half_width(alpha);
                for end in [looked.mean - half, looked.mean + half] {
                    let p = 2.0 * looked.p_beyond(end);
                    assert!((p - alpha).abs() < 1e-9, "{look:?}, {alpha}: {p}");
                }
            }
        }
    }

    #[test]
    fn without_any_error_only_the_mean_itself_is_possible() {
        for look in [Look::Before, Look::Last] {
            let exact = Looked { error: 0.0, ..looked(look) };
            assert_eq!(exact.half_width(ALPHA), 0.0);
            assert_eq!(exact.p_beyond(exact.mean), if look == Look::Last { 0.625 } else { 1.0 });
            assert!(exact.p_beyond(0.0) < 1e-3, "{look:?}");
        }
        let nothing = Looked { freedom: 0.0, ..looked(Look::Last) };
        assert_eq!((nothing.half_width(ALPHA), nothing.p_beyond(0.0)), (f64::INFINITY, 0.625));
    }
}
