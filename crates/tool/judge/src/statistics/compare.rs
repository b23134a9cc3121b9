//! Significance of differences: the noise floor, Holm's correction, relations and bands.

use super::CONFIDENCE;
use regatta_record::{Band, Estimate, Relation};

/// The noise floor: how far from 1 the ratio of a contender to itself may appear, as a fraction, from
/// the ratios of the twin to its original at each load: the root mean square over the loads of the
/// logarithms of the farther ends of their intervals. `None` without a ratio. It decides nothing.
pub fn noise_floor(twins: &[Estimate]) -> Option<f64> {
    let ends = twins.iter().map(|twin| twin.high.ln().max(-twin.low.ln()));
    let squares = ends.map(|end| end * end).collect::<Vec<f64>>();
    Some(super::mean(&squares)?.sqrt().exp_m1())
}

/// Returns which hypotheses of a family are rejected. The probability of any false rejection is at
/// most `alpha`, however they depend on each other: in ascending order of p, the i-th of m is
/// rejected while `p ≤ alpha / (m − i + 1)` (Holm, *A simple sequentially rejective multiple test
/// procedure*, Scandinavian Journal of Statistics 6, 1979).
pub fn holm(p_values: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut rejected = vec![false; p_values.len()];
    for (before, &i) in order.iter().enumerate() {
        if p_values[i] > alpha / (p_values.len() - before) as f64 {
            break;
        }
        rejected[i] = true;
    }
    rejected
}

/// Limits within which a ratio is not meaningful, as fractions (0.02 is 2%), applied as factors:
/// from 1/(1 + x) to 1 + x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    /// Differences within this are too small to matter.
    pub tie: f64,
    /// Differences within this may have another cause: the twin differs from its original by this
    /// much, significantly. Usually 0.
    pub offset: f64,
}

impl Margins {
    /// Every significant difference matters.
    pub const NONE: Margins = Margins { tie: 0.0, offset: 0.0 };
}

/// The relation that follows from a ratio's interval (method, rule 3): *tied* if all of it lies
/// within the tie margin, whatever the offset; *cheaper* or *more expensive* if all of it lies
/// beyond the offset on that side and `differs`, the result of Holm's correction; otherwise *not
/// distinguishable*.
pub fn relation(ratio: &Estimate, differs: bool, margins: Margins) -> Relation {
    let (tie, offset) = (1.0 + margins.tie, 1.0 + margins.offset);
    if ratio.low >= 1.0 / tie && ratio.high <= tie {
        Relation::Tied
    } else if differs && ratio.high < 1.0 / offset {
        Relation::Cheaper
    } else if differs && ratio.low > offset {
        Relation::Costlier
    } else {
        Relation::Inconclusive
    }
}

/// The possible ranks by cost of each of `k` contenders: from 1 + the number of significantly cheaper
/// ones to k − the number of significantly more expensive ones. `pair(a, b)` is the ratio of b over a
/// with the p-value of "equal", or `None` if they cannot be compared. A pair is ordered
/// *significantly* if [`relation`] says so, with Holm's correction over all k(k−1)/2 pairs; so with
/// 95% probability all bands are correct at once (simultaneous rank intervals from pairwise tests: Al
/// Mohamad, Goeman and van Zwet, Electronic Journal of Statistics 15, 2021).
pub fn bands(
    k: usize,
    pair: impl Fn(usize, usize) -> Option<(Estimate, f64)>,
    margins: Margins,
) -> Vec<Band> {
    let pairs = (0..k).flat_map(|a| (a + 1..k).map(move |b| (a, b)));
    let pairs: Vec<_> = pairs.map(|(a, b)| (a, b, pair(a, b))).collect();
    let p_value = |pair: &Option<(Estimate, f64)>| pair.map_or(1.0, |(_, p)| p);
    let p_values: Vec<f64> = pairs.iter().map(|(.., pair)| p_value(pair)).collect();
    let differs = holm(&p_values, 1.0 - CONFIDENCE);

    let mut better = vec![0; k];
    let mut worse = vec![0; k];
    for ((a, b, pair), differs) in pairs.into_iter().zip(differs) {
        let Some((ratio, _)) = pair else { continue };
        match relation(&ratio, differs, margins) {
            Relation::Costlier => (better[b], worse[a]) = (better[b] + 1, worse[a] + 1),
            Relation::Cheaper => (better[a], worse[b]) = (better[a] + 1, worse[b] + 1),
            Relation::Baseline | Relation::Tied | Relation::Inconclusive => {}
        }
    }
    (0..k).map(|i| Band { best: 1 + better[i], worst: k as u32 - worse[i] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_on_a_worked_example() {
        // Sorted: 0.005 ≤ 0.05/4, 0.01 ≤ 0.05/3, 0.03 > 0.05/2: stop; 0.04 is not tested.
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005], 0.05), [true, false, false, true]);
        assert_eq!(holm(&[0.04], 0.05), [true]);
        assert_eq!(holm(&[0.04, 0.04], 0.05), [false, false]);
        assert!(holm(&[], 0.05).is_empty());
    }

    #[test]
    fn relations_at_their_limits() {
        let ratio = |low, high| Estimate { mean: f64::sqrt(low * high), low, high };
        let under = |offset| Margins { tie: 0.02, offset };
        let found = |low, high, offset| relation(&ratio(low, high), true, under(offset));
        assert_eq!(found(0.99, 1.01, 0.0), Relation::Tied);
        assert_eq!(found(1.0 / 1.02, 1.02, 0.0), Relation::Tied);
        assert_eq!(found(1.005, 1.02, 0.0), Relation::Tied, "significant but small");
        assert_eq!(found(1.005, 1.03, 0.0), Relation::Costlier);
        assert_eq!(found(0.90, 0.95, 0.0), Relation::Cheaper);
        assert_eq!(found(0.95, 1.10, 0.0), Relation::Inconclusive);
        let insignificant = relation(&ratio(1.005, 1.03), false, under(0.0));
        assert_eq!(insignificant, Relation::Inconclusive, "Holm");
    }

    #[test]
    fn an_offset_decides_what_differs_and_never_what_is_tied() {
        let ratio = |low, high| Estimate { mean: f64::sqrt(low * high), low, high };
        let found =
            |low, high, offset| relation(&ratio(low, high), true, Margins { tie: 0.02, offset });
        assert_eq!(found(0.965, 0.995, 0.03), Relation::Inconclusive, "0.98, with 3%");
        assert_eq!(found(1.03, 1.05, 0.10), Relation::Inconclusive, "within the offset");
        assert_eq!(found(0.95, 1.04, 0.06), Relation::Inconclusive, "a large offset, no tie");
        assert_eq!(found(0.985, 1.015, 0.10), Relation::Tied);
        assert_eq!(found(1.0301, 1.05, 0.03), Relation::Costlier);
        assert_eq!(found(1.03, 1.05, 0.03), Relation::Inconclusive, "at the offset");
        assert_eq!(found(0.90, 0.97, 0.03), Relation::Cheaper);
        assert_eq!(found(0.90, 1.0 / 1.03, 0.03), Relation::Inconclusive, "at the offset");
    }

    #[test]
    fn the_noise_floor_of_a_worked_example() {
        let ratio = |low, high| Estimate { mean: 1.0, low, high };
        assert!((noise_floor(&[ratio(0.9, 1.05)]).unwrap() - (1.0 / 0.9 - 1.0)).abs() < 1e-12);
        let two = noise_floor(&[ratio(0.9, 1.05), ratio(1.0, 1.2)]).unwrap();
        let log = ((0.9f64.ln().powi(2) + 1.2f64.ln().powi(2)) / 2.0).sqrt();
        assert!((two - log.exp_m1()).abs() < 1e-12, "{two}");
        assert_eq!(noise_floor(&[]), None);
        assert_eq!(noise_floor(&[ratio(0.0, f64::INFINITY)]), Some(f64::INFINITY));
    }

    #[test]
    fn bands_of_a_known_field() {
        // a and b are not distinguishable, c is more expensive than both, d cannot be compared.
        let costs = [Some(0.0), Some(0.001), Some(0.5), None];
        let of = |which: &[usize]| {
            let pair = |a: usize, b: usize| {
                let log: f64 = costs[which[b]]? - costs[which[a]]?;
                let [low, high] = [log - 0.05, log + 0.05].map(f64::exp);
                let p = if log.abs() > 0.05 { 1e-6 } else { 0.9 };
                Some((Estimate { mean: log.exp(), low, high }, p))
            };
            bands(which.len(), pair, Margins { tie: 0.02, offset: 0.0 })
        };
        let band = |best, worst| Band { best, worst };
        assert_eq!(of(&[0, 1, 2]), [band(1, 2), band(1, 2), band(3, 3)]);
        assert_eq!(of(&[2, 3, 0, 1]), [band(3, 4), band(1, 4), band(1, 3), band(1, 3)]);
        assert_eq!(of(&[0]), [band(1, 1)]);
        assert!(of(&[]).is_empty());
    }
}
