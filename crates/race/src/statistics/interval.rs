//! 95% intervals of a mean over rounds, and the p-value of "no difference".

use super::mean;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_record::Estimate;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The share of intervals that hold the truth.
pub const CONFIDENCE: f64 = 0.95;
/// Up to so many rounds the interval is Student's, beyond it is the bootstrap's (method, rule 2):
/// with few rounds the bootstrap is too narrow, with many it needs no normal distribution.
pub const STUDENT_UP_TO: usize = 20;
/// Resamples of the bootstrap. The ends of an interval then move by about 3% of its half-width
/// from one seed to another.
pub const BOOTSTRAP_SAMPLES: usize = 2_000;

/// Upper tail that an interval leaves out.
const TAIL: f64 = (1.0 - CONFIDENCE) / 2.0;

/// Geometric mean and 95% interval of the figures whose logarithms are `logs`: Student's t up to
/// [`STUDENT_UP_TO`] rounds, a seeded bootstrap beyond. `None` with fewer than 2 rounds.
pub fn geometric(logs: &[f64], seed: u64) -> Option<Estimate> {
    let on_logs = arithmetic(logs, seed)?;
    Some(Estimate { mean: on_logs.mean.exp(), low: on_logs.low.exp(), high: on_logs.high.exp() })
}

/// Arithmetic mean and 95% interval of `values`, made as in [`geometric`]: for figures that may be
/// zero or below. `None` with fewer than 2 rounds.
pub fn arithmetic(values: &[f64], seed: u64) -> Option<Estimate> {
    match values.len() {
        0..=STUDENT_UP_TO => student(values),
        _ => Some(bootstrap(values, seed)),
    }
}

/// Mean and 95% interval `mean ± t(0.975; n−1) · s/√n` of values as they are, `s` with n−1 in its
/// denominator (Student, *The probable error of a mean*, Biometrika 6, 1908). `None` with fewer
/// than 2 values.
pub fn student(values: &[f64]) -> Option<Estimate> {
    let error = standard_error(values)?;
    let mean = mean(values)?;
    let half = t_quantile(1.0 - TAIL, values.len() as f64 - 1.0) * error;
    Some(Estimate { mean, low: mean - half, high: mean + half })
}

/// Two-sided p-value of "the mean is zero" by Student's t test. `None` with fewer than 2 values.
///
/// Used for any number of rounds: a bootstrap resolves no p-value below 1/resamples, which Holm's
/// smallest steps would ask for, and beyond 20 rounds the two hardly differ.
pub fn p_value(values: &[f64]) -> Option<f64> {
    let error = standard_error(values)?;
    let mean = mean(values)?;
    if error == 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    Some(2.0 * students_t(values.len() as f64 - 1.0).sf((mean / error).abs()))
}

/// The value that Student's t with `freedom` degrees of freedom stays below with probability `p`.
///
/// # Panics
/// Unless `freedom` is positive and `p` within 0..=1.
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    students_t(freedom).inverse_cdf(p)
}

/// Expanded percentile bootstrap: resample the rounds with replacement, take the mean of each
/// resample, and of those means the quantiles α′ and 1−α′, with
/// `α′ = Φ(−√(n/(n−1)) · t(0.975; n−1))` instead of 0.025. The plain percentile bootstrap is too
/// narrow by just these two factors (Hesterberg, *What teachers should know about the bootstrap*,
/// The American Statistician 69, 2015, section 5.3).
fn bootstrap(values: &[f64], seed: u64) -> Estimate {
    let n = values.len();
    let below = u32::try_from(n).expect("rounds are counted in 32 bits");
    let mut random = SmallRng::seed_from_u64(seed);
    let mut means: Vec<f64> = (0..BOOTSTRAP_SAMPLES)
        .map(|_| {
            (0..n).map(|_| values[random.random_range(0..below) as usize]).sum::<f64>() / n as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let freedom = n as f64 - 1.0;
    let standard = Normal::standard();
    let tail = standard.cdf(-(n as f64 / freedom).sqrt() * t_quantile(1.0 - TAIL, freedom));
    let at = |quantile: f64| means[(quantile * (BOOTSTRAP_SAMPLES - 1) as f64).round() as usize];
    Estimate { mean: values.iter().sum::<f64>() / n as f64, low: at(tail), high: at(1.0 - tail) }
}

pub(super) fn students_t(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive")
}

/// `s/√n`, the standard error of the mean; `None` with fewer than 2 values.
pub(super) fn standard_error(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((squares / (n - 1.0) / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_quantiles_are_those_of_the_tables() {
        // Two-sided 95%, from any printed table of Student's t.
        for (freedom, quantile) in [
            (1.0, 12.706),
            (2.0, 4.303),
            (4.0, 2.776),
            (6.0, 2.447),
            (10.0, 2.228),
            (19.0, 2.093),
            (30.0, 2.042),
            (120.0, 1.980),
            (1000.0, 1.962),
        ] {
            let ours = t_quantile(0.975, freedom);
            assert!((ours - quantile).abs() < 0.0006, "t(0.975; {freedom}) = {ours}");
        }
    }

    #[test]
    fn the_interval_of_a_worked_example() {
        // 1, 2, 3, 4, 5: s = 1.5811, s/√5 = 0.70711, t(0.975; 4) = 2.7764, half-width 1.9632.
        let e = student(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(e.mean, 3.0);
        assert!((e.high - 4.9632).abs() < 1e-4 && (e.low - 1.0368).abs() < 1e-4, "{e:?}");
        // t = 3 / 0.70711 = 4.2426 with 4 degrees of freedom: p = 0.01324.
        let p = p_value(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((p - 0.01324).abs() < 1e-5, "{p}");
    }

    #[test]
    fn one_round_has_no_interval() {
        assert_eq!(geometric(&[], 1), None);
        assert_eq!(geometric(&[1.0], 1), None);
        assert_eq!(p_value(&[1.0]), None);
        assert!(geometric(&[1.0, 1.1], 1).is_some());
    }

    #[test]
    fn equal_rounds_differ_surely_or_not_at_all() {
        assert_eq!(p_value(&[0.5; 7]), Some(0.0));
        assert_eq!(p_value(&[0.0; 7]), Some(1.0));
    }

    #[test]
    fn the_same_seed_gives_the_same_bootstrap() {
        let logs: Vec<f64> = (0..30).map(|i| f64::from(i * 7 % 11) / 10.0).collect();
        assert_eq!(geometric(&logs, 5), geometric(&logs, 5));
        assert_ne!(geometric(&logs, 5), geometric(&logs, 6));
    }
}
