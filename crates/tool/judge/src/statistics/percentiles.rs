//! Intervals of latency percentiles over rounds.

use super::{geometric_each, is_known, known, log};
use regatta_record::{Estimate, Percentile, Percentiles, Unknown};

/// 95% intervals of percentiles, from those of each round (50, 90, 95, 99, 99.9; nanoseconds).
///
/// The round, a fresh start, is the unit: within a round requests queue behind each other, so an
/// interval that treats them as independent (by order statistics: Le Boudec, *Performance
/// Evaluation of Computer and Communication Systems*, EPFL Press 2010, section 2.2.2) is far too
/// narrow. So each round gives one value, and [`super::geometric`] computes the interval of these
/// on their logarithms. It is the interval of a typical round's percentile, which is not quite that
/// of all rounds' requests together (Chen and Kelton, *Quantile and tolerance-interval estimation
/// in simulation*, European Journal of Operational Research 168, 2006, use batches in the same
/// way).
///
/// A percentile has no interval if one round lacks it (fewer than ten samples beyond it), with
/// fewer than 2 rounds, or if it is not known.
pub fn percentiles(rounds: &[[Option<u64>; 5]], seed: u64) -> Percentiles {
    let [p50, p90, p95, p99, p99_9] = each(rounds, seed).map(known);
    Percentiles { p50, p90, p95, p99, p99_9 }
}

/// The percentiles whose intervals are too wide ([`is_known`]).
pub fn unknown_percentiles(rounds: &[[Option<u64>; 5]], seed: u64) -> Vec<Unknown> {
    let each = Percentile::ALL.into_iter().zip(each(rounds, seed));
    let unknown = each.filter(|(_, e)| e.is_some_and(|e| !is_known(&e)));
    unknown.map(|(percentile, _)| Unknown::Latency(percentile)).collect()
}

fn each(rounds: &[[Option<u64>; 5]], seed: u64) -> [Option<Estimate>; 5] {
    let logs: Vec<Option<Vec<f64>>> =
        (0..5).map(|nth| rounds.iter().map(|round| log(round[nth]? as f64)).collect()).collect();
    let figures: Vec<&[f64]> = logs.iter().map(|logs| logs.as_deref().unwrap_or(&[])).collect();
    let mut intervals = geometric_each(&figures, seed).into_iter();
    std::array::from_fn(|_| intervals.next().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_that_one_round_lacks_has_no_interval() {
        let round = |ns: u64, p99| [Some(ns), Some(2 * ns), Some(3 * ns), p99, None];
        let p = percentiles(&[round(90, Some(5)), round(100, None), round(111, Some(7))], 1);
        let p50 = p.p50.unwrap();
        assert!((p50.mean - 99.97).abs() < 0.1 && p50.low < 90.0 && p50.high > 111.0, "{p50:?}");
        assert!(p.p95.is_some());
        assert_eq!((p.p99, p.p99_9), (None, None));
        assert_eq!(percentiles(&[round(90, Some(5))], 1), Percentiles::default());
        assert_eq!(percentiles(&[], 1), Percentiles::default());
    }
}
