//! How steady a rate was inside the windows: its drift from start to end.

use super::student;
use regatta_record::Estimate;

/// Drift of a rate inside windows, each given as its replies by slice. For each window, the
/// logarithm of the replies in the last third of the slices over those in the first third; of
/// these, Student's interval over rounds, as a factor. `None` with fewer than 2 rounds of 3 slices with
/// replies in both thirds.
pub fn drift<'a>(windows: impl Iterator<Item = &'a [u64]>) -> Option<Estimate> {
    let logs: Vec<f64> = windows.filter_map(log_drift).collect();
    let on_logs = student(&logs)?;
    Some(Estimate { mean: on_logs.mean.exp(), low: on_logs.low.exp(), high: on_logs.high.exp() })
}

fn log_drift(slices: &[u64]) -> Option<f64> {
    let third = slices.len() / 3;
    let first: u64 = slices[..third].iter().sum();
    let last: u64 = slices[slices.len() - third..].iter().sum();
    (first > 0 && last > 0).then(|| (last as f64 / first as f64).ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_the_last_third_over_the_first() {
        let falling = [100, 100, 100, 95, 95, 95, 90, 90, 90];
        let of = |windows: &[&[u64]]| drift(windows.iter().copied());
        let e = of(&[&falling, &falling]).unwrap();
        assert!((e.mean - 0.9).abs() < 1e-12 && (e.high - e.low).abs() < 1e-12, "{e:?}");
        assert_eq!(of(&[&[1, 2, 3]]), None, "one round");
        assert_eq!(of(&[&[1, 2], &[1, 2]]), None, "two slices");
    }
}
