//! How steady a rate was inside the windows: drift from start to end, and two modes.

use super::student;
use regatta_record::Estimate;

/// Minimum mean number of correct replies per slice for finding modes: from 100 on, counting alone
/// varies slices by at most 10%.
pub const ANSWERS_PER_SLICE: f64 = 100.0;
/// Share of the variance that two groups must explain. The best split of a normal distribution
/// explains 64% of its variance and that of a uniform one 75%; two clean modes explain nearly all.
const SPLIT_EXPLAINS: f64 = 0.85;
/// Minimum share of the values in the smaller group.
const SMALLER_GROUP: f64 = 0.2;
/// Minimum factor between the groups' means.
const GROUPS_APART: f64 = 1.25;

/// Drift of a rate inside windows, each given as its replies by slice. For each window, the
/// logarithm of the replies in the last third of the slices over those in the first third; of
/// these, Student's interval over rounds, as a factor. `None` with fewer than 2 rounds of 3 slices with
/// replies in both thirds.
pub fn drift(windows: &[Vec<u64>]) -> Option<Estimate> {
    let logs: Vec<f64> = windows.iter().filter_map(|slices| log_drift(slices)).collect();
    let on_logs = student(&logs)?;
    Some(Estimate { mean: on_logs.mean.exp(), low: on_logs.low.exp(), high: on_logs.high.exp() })
}

fn log_drift(slices: &[u64]) -> Option<f64> {
    let third = slices.len() / 3;
    let first: u64 = slices[..third].iter().sum();
    let last: u64 = slices[slices.len() - third..].iter().sum();
    (first > 0 && last > 0).then(|| (last as f64 / first as f64).ln())
}

/// Two groups of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modes {
    /// Mean of the lower group.
    pub low: f64,
    /// Mean of the higher group.
    pub high: f64,
    /// Share of the values in the lower group.
    pub share_low: f64,
}

/// Two modes, if there are two. The sorted values are cut in two where the variance between the
/// groups is largest (the best 2-means of a line: Fisher, *On grouping for maximum homogeneity*,
/// JASA 53, 1958). They are modes if the cut explains 85% of all variance, the smaller group has a
/// fifth of the values and the means are a quarter apart.
pub fn modes(mut values: Vec<f64>) -> Option<Modes> {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let sum: f64 = values.iter().sum();
    let mean = sum / n;
    let total: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let mut below = 0.0;
    let mut best = (0.0, Modes { low: 0.0, high: 0.0, share_low: 0.0 });
    for (i, value) in values.iter().enumerate().take(values.len().saturating_sub(1)) {
        below += value;
        let k = (i + 1) as f64;
        let (low, high) = (below / k, (sum - below) / (n - k));
        let between = k * (low - mean).powi(2) + (n - k) * (high - mean).powi(2);
        if between > best.0 {
            best = (between, Modes { low, high, share_low: k / n });
        }
    }
    let (between, modes) = best;
    let two = between > SPLIT_EXPLAINS * total
        && modes.share_low.min(1.0 - modes.share_low) >= SMALLER_GROUP
        && modes.high >= modes.low * GROUPS_APART;
    two.then_some(modes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_the_last_third_over_the_first() {
        let falling = vec![100, 100, 100, 95, 95, 95, 90, 90, 90];
        let e = drift(&[falling.clone(), falling]).unwrap();
        assert!((e.mean - 0.9).abs() < 1e-12 && (e.high - e.low).abs() < 1e-12, "{e:?}");
        assert_eq!(drift(&[vec![1, 2, 3]]), None, "one round");
        assert_eq!(drift(&[vec![1, 2], vec![1, 2]]), None, "two slices");
    }

    #[test]
    fn two_modes_are_two_clearly_separate_groups() {
        let two = |share: usize, high: f64| -> Vec<f64> {
            (0..100)
                .map(|i| if i < share { 1.0 } else { high } + f64::from(i as u32 % 7) / 100.0)
                .collect()
        };
        let found = modes(two(60, 2.0)).unwrap();
        assert!((found.share_low - 0.6).abs() < 1e-12 && found.high > 1.9, "{found:?}");
        assert_eq!(modes(two(90, 2.0)), None, "a tenth is not a mode");
        assert_eq!(modes(two(60, 1.2)), None, "hardly apart");
        assert_eq!(modes((0..100).map(f64::from).collect()), None, "evenly spread");
        assert_eq!(modes(vec![]), None);
        assert_eq!(modes(vec![3.0; 20]), None);
    }
}
