//! Latency percentile curves: points at fixed quantiles, from the stored histograms of the rounds.
//!
//! A point is computed as every percentile of a report is: the geometric mean of the rounds' values, and
//! the value of all rounds together if a round has fewer than ten samples beyond it. So a curve passes
//! through the percentiles of the table. It ends where all rounds together have fewer than ten samples
//! beyond it.

use regatta_record::{Asked, Cell, HistogramReader, HistogramSum, Round, SparseHistogram};
use serde::Serialize;

/// Quantiles that a curve has in addition to the steps between them.
const NAMED: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];
/// Steps between two powers of ten.
const STEPS: u32 = 5;
/// The last power of ten: 1 − 10⁻⁶.
const POWERS: u32 = 6;
/// Rounds that lie outside the ribbon on each side, as a fraction. Up to 20 rounds, none does.
const OUTSIDE: f64 = 0.05;

/// The curve of a cell. All lists have the points of [`quantiles`], up to the last known one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PercentileCurve {
    /// Latency in nanoseconds.
    pub ns: Vec<f64>,
    /// Lower and upper edge of the ribbon: the rounds' lowest and highest value; beyond 20 rounds, those
    /// of the middle 90%. Shorter than `ns` if a round has too few samples beyond the further points.
    pub low: Vec<u64>,
    /// The upper edge.
    pub high: Vec<u64>,
}

/// The quantiles of all curves, ascending, from 0.
pub fn quantiles() -> Vec<f64> {
    let steps =
        (0..=POWERS * STEPS).map(|step| 1.0 - 10f64.powf(-f64::from(step) / f64::from(STEPS)));
    // A step and a named quantile may differ in the last bit.
    let steps = steps.filter(|q| NAMED.iter().all(|named| (q - named).abs() > 1e-9));
    let mut all: Vec<f64> = steps.chain(NAMED).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// The curve of a cell from its finished rounds; `None` if the cell has no latency.
pub fn percentile_curve(
    asked: &Asked,
    cell: &Cell,
    rounds: &[&Round],
    quantiles: &[f64],
) -> Option<PercentileCurve> {
    if cell.latency_ns.p50.is_none() || cell.shared_cpus {
        return None;
    }
    let (mut reader, mut sum, mut beyond_all) =
        (HistogramReader::default(), HistogramSum::default(), 0);
    let mut by_round: Vec<Vec<u64>> = Vec::new();
    for round in rounds {
        let text = round.histogram_of(&asked.latency_of)?;
        let counts: SparseHistogram = reader.read(text).ok()?;
        let beyond = round.unanswered();
        by_round.push(known(&counts, beyond, quantiles));
        sum.add(&counts);
        beyond_all += beyond;
    }
    let pooled = known(&sum.counts(), beyond_all, quantiles);
    let shared = by_round.iter().map(Vec::len).min().filter(|_| rounds.len() > 1).unwrap_or(0);
    let mut percentile_curve = PercentileCurve::default();
    for nth in 0..shared {
        let mut values: Vec<u64> = by_round.iter().map(|round| round[nth]).collect();
        values.sort_unstable();
        let logs: f64 = values.iter().map(|ns| (*ns.max(&1) as f64).ln()).sum();
        percentile_curve.ns.push((logs / values.len() as f64).exp());
        let outside = (OUTSIDE * (values.len() - 1) as f64) as usize;
        percentile_curve.low.push(values[outside]);
        percentile_curve.high.push(values[values.len() - 1 - outside]);
    }
    percentile_curve.ns.extend(pooled.iter().skip(shared).map(|ns| *ns as f64));
    (!percentile_curve.ns.is_empty()).then_some(percentile_curve)
}

/// The values up to the first quantile with fewer than ten samples beyond it.
fn known(counts: &SparseHistogram, beyond: u64, quantiles: &[f64]) -> Vec<u64> {
    counts.quantiles(beyond, quantiles.iter().copied()).map_while(|value| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_ascend_and_contain_the_printed_percentiles() {
        let all = quantiles();
        assert_eq!(all[0], 0.0);
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] > 1e-9), "{all:?}");
        assert!(NAMED.iter().all(|named| all.contains(named)), "{all:?}");
        assert!(all[all.len() - 1] > 0.999_998);
    }
}
