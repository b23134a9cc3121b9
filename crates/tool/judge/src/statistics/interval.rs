//! 95% intervals of a mean over rounds, and the p-value of "no difference".

use super::mean;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_record::Estimate;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use std::collections::BTreeSet;

/// The share of intervals that contain the true value.
pub const CONFIDENCE: f64 = 0.95;
/// Up to this many rounds the interval is Student's, beyond it the bootstrap's (method, rule 2):
/// with few rounds the bootstrap is too narrow, with many it does not require a normal
/// distribution.
pub const STUDENT_UP_TO: usize = 20;
/// Resamples of the bootstrap. With this many, the ends of an interval vary by about 3% of its
/// half-width between seeds.
pub const BOOTSTRAP_SAMPLES: usize = 2_000;

/// Upper tail outside the interval.
const TAIL: f64 = (1.0 - CONFIDENCE) / 2.0;

/// Geometric mean and 95% interval of the figures whose logarithms are `logs`: Student's t up to
/// [`STUDENT_UP_TO`] rounds, a seeded bootstrap beyond. `None` with fewer than 2 rounds.
pub fn geometric(logs: &[f64], seed: u64) -> Option<Estimate> {
    geometric_each(&[logs], seed).pop().flatten()
}

/// [`geometric`] of several figures. Figures with the same number of rounds share their random
/// draws, which take most of the time; each interval is the same as alone.
pub fn geometric_each(figures: &[&[f64]], seed: u64) -> Vec<Option<Estimate>> {
    let exp = |e: Estimate| Estimate { mean: e.mean.exp(), low: e.low.exp(), high: e.high.exp() };
    let on_logs = arithmetic_each(figures, seed);
    on_logs.into_iter().map(|estimate| estimate.map(exp)).collect()
}

/// Arithmetic mean and 95% interval of `values`, computed as in [`geometric`]: for figures that may
/// be zero or negative. `None` with fewer than 2 rounds.
pub fn arithmetic(values: &[f64], seed: u64) -> Option<Estimate> {
    arithmetic_each(&[values], seed).pop().flatten()
}

fn arithmetic_each(figures: &[&[f64]], seed: u64) -> Vec<Option<Estimate>> {
    let mut estimates: Vec<Option<Estimate>> = figures.iter().map(|one| student(one)).collect();
    let lengths: BTreeSet<usize> = figures.iter().map(|values| values.len()).collect();
    for n in lengths.into_iter().filter(|n| *n > STUDENT_UP_TO) {
        let same_length: Vec<usize> =
            (0..figures.len()).filter(|&i| figures[i].len() == n).collect();
        let of_length: Vec<&[f64]> = same_length.iter().map(|&i| figures[i]).collect();
        for (i, estimate) in same_length.into_iter().zip(bootstrap(&of_length, n, seed)) {
            estimates[i] = Some(estimate);
        }
    }
    estimates
}

/// Mean and 95% interval `mean ± t(0.975; n−1) · s/√n` of plain values, `s` with n−1 in its
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
/// Used for any number of rounds: a bootstrap cannot resolve p-values below 1/resamples, which
/// Holm's smallest steps need, and beyond 20 rounds the two hardly differ.
pub fn p_value(values: &[f64]) -> Option<f64> {
    let error = standard_error(values)?;
    let mean = mean(values)?;
    if error == 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    Some(2.0 * students_t(values.len() as f64 - 1.0).sf((mean / error).abs()))
}

/// The `p` quantile of Student's t with `freedom` degrees of freedom.
///
/// # Panics
/// Unless `freedom` is positive and `p` within 0..=1.
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    students_t(freedom).inverse_cdf(p)
}

/// Expanded percentile bootstrap: resample the rounds with replacement, take the mean of each
/// resample, and of those means the quantiles α′ and 1−α′, with `α′ = Φ(−√(n/(n−1)) · t(0.975;
/// n−1))` instead of 0.025. The plain percentile bootstrap is too narrow by exactly these two
/// factors (Hesterberg, *What teachers should know about the bootstrap*, The American Statistician
/// 69, 2015, section 5.3).
fn bootstrap(figures: &[&[f64]], n: usize, seed: u64) -> Vec<Estimate> {
    let below = u32::try_from(n).expect("rounds are counted in 32 bits");
    let mut random = SmallRng::seed_from_u64(seed);
    let mut means = vec![Vec::with_capacity(BOOTSTRAP_SAMPLES); figures.len()];
    // How many times each round is in a resample.
    let mut times = vec![0.0; n];
    for _ in 0..BOOTSTRAP_SAMPLES {
        times.fill(0.0);
        (0..n).for_each(|_| times[random.random_range(0..below) as usize] += 1.0);
        for (means, values) in means.iter_mut().zip(figures) {
            means.push(weighted_sum(values, &times) / n as f64);
        }
    }
    let freedom = n as f64 - 1.0;
    let tail = -(n as f64 / freedom).sqrt() * t_quantile(1.0 - TAIL, freedom);
    let tail = Normal::standard().cdf(tail);
    let estimate = |(mut means, values): (Vec<f64>, &&[f64])| {
        means.sort_by(f64::total_cmp);
        let at = |quantile: f64| means[(quantile * (means.len() - 1) as f64).round() as usize];
        let mean = values.iter().sum::<f64>() / n as f64;
        Estimate { mean, low: at(tail), high: at(1.0 - tail) }
    };
    means.into_iter().zip(figures).map(estimate).collect()
}

/// Uses four independent sums, so that the processor need not wait for each addition.
fn weighted_sum(values: &[f64], weights: &[f64]) -> f64 {
    let (values, odd_values) = values.as_chunks::<4>();
    let (weights, odd_weights) = weights.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (values, weights) in values.iter().zip(weights) {
        for i in 0..4 {
            sums[i] += values[i] * weights[i];
        }
    }
    let odd: f64 = odd_values.iter().zip(odd_weights).map(|(v, w)| v * w).sum();
    sums.iter().sum::<f64>() + odd
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
    fn t_quantiles_match_printed_tables() {
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
    fn equal_rounds_have_a_p_value_of_zero_or_one() {
        assert_eq!(p_value(&[0.5; 7]), Some(0.0));
        assert_eq!(p_value(&[0.0; 7]), Some(1.0));
    }

    #[test]
    fn the_same_seed_gives_the_same_bootstrap() {
        let logs: Vec<f64> = (0..30).map(|i| f64::from(i * 7 % 11) / 10.0).collect();
        assert_eq!(geometric(&logs, 5), geometric(&logs, 5));
        assert_ne!(geometric(&logs, 5), geometric(&logs, 6));
    }

    #[test]
    fn several_figures_have_the_same_intervals_as_each_alone() {
        let logs = |n: u32, by: u32| -> Vec<f64> {
            (0..n).map(|i| f64::from(i * by % 11) / 10.0).collect()
        };
        let figures = [logs(30, 7), logs(5, 3), logs(30, 4), logs(1, 1), logs(41, 7)];
        let each: Vec<&[f64]> = figures.iter().map(|logs| &logs[..]).collect();
        let alone: Vec<_> = each.iter().map(|logs| geometric(logs, 5)).collect();
        assert_eq!(geometric_each(&each, 5), alone);
        assert_eq!(alone.iter().filter(|e| e.is_some()).count(), 4);
    }
}
