//! Significance of differences: the noise floor, Holm's correction, relations and bands.

use super::{CONFIDENCE, Series, p_value, paired, student, t_quantile};
use regatta_record::{Band, Estimate, Relation};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// The noise floor: how far from 1 the ratio of a contender to itself may appear, as a fraction,
/// from the log-ratios of the twin to its original at each load.
///
/// `exp(m + t(0.975; ν)·s/√n) − 1`, where `m` is the root mean square of the mean log-ratios of the
/// loads, `s` the standard deviation of the log-ratios about the mean of their own load, pooled
/// with `ν = Σ(nᵢ − 1)` degrees of freedom, and `n` the average number of rounds of a load. With
/// one load this is |mean| plus the half-width of Student's interval. A lasting difference between
/// the two names is part of `m`: more rounds do not average it away, nor do loads with opposite
/// signs of it. `None` if no load has 2 pairs.
pub fn noise_floor(log_ratios_by_load: &[Vec<f64>]) -> Option<f64> {
    let loads: Vec<_> = log_ratios_by_load.iter().filter(|d| !d.is_empty()).collect();
    let pairs = loads.iter().map(|d| d.len()).sum::<usize>() as f64;
    let freedom = pairs - loads.len() as f64;
    if freedom < 1.0 {
        return None;
    }
    let mean = |d: &[f64]| d.iter().sum::<f64>() / d.len() as f64;
    let offset = loads.iter().map(|d| mean(d).powi(2)).sum::<f64>() / loads.len() as f64;
    let squares = |d: &[f64]| d.iter().map(|x| (x - mean(d)).powi(2)).sum::<f64>();
    let variance = loads.iter().map(|d| squares(d)).sum::<f64>() / freedom;
    let rounds = pairs / loads.len() as f64;
    let half = t_quantile(0.5 + CONFIDENCE / 2.0, freedom) * (variance / rounds).sqrt();
    Some((offset.sqrt() + half).exp_m1())
}

/// Whether the twin differs from its original at one load by significantly more than at the
/// `others`, at a level of 1%: the ratio of the two variances about zero against Fisher's F with as
/// many degrees of freedom as there are pairs (Snedecor and Cochran, *Statistical Methods*, section
/// on comparing two variances). False with fewer than 2 pairs on either side.
pub fn is_noisier(log_ratios: &[f64], others: &[f64]) -> bool {
    const CHANCE: f64 = 0.01;
    let variance = |d: &[f64]| d.iter().map(|d| d * d).sum::<f64>() / d.len() as f64;
    if log_ratios.len() < 2 || others.len() < 2 {
        return false;
    }
    let ratio = variance(log_ratios) / variance(others);
    let f = FisherSnedecor::new(log_ratios.len() as f64, others.len() as f64)
        .expect("degrees of freedom are positive");
    ratio.is_finite() && f.sf(ratio) < CHANCE
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
    /// Differences within this may be noise: the noise floor.
    pub floor: f64,
}

impl Margins {
    /// Every significant difference matters.
    pub const NONE: Margins = Margins { tie: 0.0, floor: 0.0 };
}

/// The relation that follows from a ratio's interval (method, rule 3): *tied* if all of it lies
/// within the tie margin, whatever the floor; *cheaper* or *more expensive* if all of it lies
/// beyond the floor on that side and `differs`, the result of Holm's correction; otherwise *not
/// distinguishable*.
pub fn relation(ratio: &Estimate, differs: bool, margins: Margins) -> Relation {
    let (tie, floor) = (1.0 + margins.tie, 1.0 + margins.floor);
    if ratio.low >= 1.0 / tie && ratio.high <= tie {
        Relation::Tied
    } else if differs && ratio.high < 1.0 / floor {
        Relation::Cheaper
    } else if differs && ratio.low > floor {
        Relation::Costlier
    } else {
        Relation::Inconclusive
    }
}

/// The possible ranks by cost of each contender: from 1 + the number of significantly cheaper ones
/// to k − the number of significantly more expensive ones. A pair is ordered *significantly* if
/// [`relation`] says so, with Student's interval of the paired log-ratios and Holm's correction
/// over all k(k−1)/2 pairs; so with 95% probability all bands are correct at once (simultaneous
/// rank intervals from pairwise tests: Al Mohamad, Goeman and van Zwet, Electronic Journal of
/// Statistics 15, 2021). A pair with fewer than 2 common rounds is not ordered.
pub fn bands(logs: &[&Series], margins: Margins) -> Vec<Band> {
    let k = logs.len();
    let pairs: Vec<(usize, usize)> = (0..k).flat_map(|a| (a + 1..k).map(move |b| (a, b))).collect();
    let log_ratios: Vec<_> = pairs.iter().map(|&(a, b)| paired(logs[a], logs[b])).collect();
    let p_values: Vec<f64> = log_ratios.iter().map(|d| p_value(d).unwrap_or(1.0)).collect();
    let differs = holm(&p_values, 1.0 - CONFIDENCE);

    let mut better = vec![0; k];
    let mut worse = vec![0; k];
    for ((&(a, b), d), differs) in pairs.iter().zip(&log_ratios).zip(differs) {
        let Some(e) = student(d) else { continue };
        let ratio = Estimate { mean: e.mean.exp(), low: e.low.exp(), high: e.high.exp() };
        match relation(&ratio, differs, margins) {
            Relation::Cheaper => (better[b], worse[a]) = (better[b] + 1, worse[a] + 1),
            Relation::Costlier => (better[a], worse[b]) = (better[a] + 1, worse[b] + 1),
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
        let under = |floor| Margins { tie: 0.02, floor };
        let found = |low, high, floor| relation(&ratio(low, high), true, under(floor));
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
    fn the_floor_decides_what_differs_and_never_what_is_tied() {
        let ratio = |low, high| Estimate { mean: f64::sqrt(low * high), low, high };
        let found =
            |low, high, floor| relation(&ratio(low, high), true, Margins { tie: 0.02, floor });
        assert_eq!(found(0.965, 0.995, 0.03), Relation::Inconclusive, "0.98 with a floor of 3%");
        assert_eq!(
            found(1.03, 1.05, 0.10),
            Relation::Inconclusive,
            "significant, but within the floor"
        );
        assert_eq!(found(0.95, 1.04, 0.06), Relation::Inconclusive, "a wide floor makes no tie");
        assert_eq!(found(0.985, 1.015, 0.10), Relation::Tied);
        assert_eq!(found(1.0301, 1.05, 0.03), Relation::Costlier);
        assert_eq!(found(1.03, 1.05, 0.03), Relation::Inconclusive, "at the floor");
        assert_eq!(found(0.90, 0.97, 0.03), Relation::Cheaper);
        assert_eq!(found(0.90, 1.0 / 1.03, 0.03), Relation::Inconclusive, "at the floor");
    }

    #[test]
    fn the_noise_floor_of_a_worked_example() {
        // Means 0 and 0.01, so m² = 0.0001/2; about them s² = 0.0002/2; n = 2; t(0.975; 2) = 4.3027.
        let floor = noise_floor(&[vec![0.01, -0.01], vec![0.01, 0.01]]).unwrap();
        let log = (0.0001_f64 / 2.0).sqrt() + 4.3027 * 0.01 / 2f64.sqrt();
        assert!((floor - log.exp_m1()).abs() < 1e-6, "{floor}");
        assert_eq!(noise_floor(&[vec![0.01], vec![]]), None);
        assert_eq!(noise_floor(&[vec![0.01], vec![0.02]]), None, "no load has a deviation");
        assert_eq!(noise_floor(&[]), None);
    }

    #[test]
    fn the_floor_contains_a_lasting_offset_of_any_sign_after_any_number_of_rounds() {
        for (one, other) in [(0.03, 0.03), (0.03, -0.03), (-0.03, -0.03)] {
            let around = |by: f64| (0..50).map(|i| by + [0.001, -0.001][i % 2]).collect();
            let floor = noise_floor(&[around(one), around(other)]).unwrap();
            assert!((0.03..0.032).contains(&floor), "{floor}");
        }
    }

    #[test]
    fn a_load_is_noisier_if_its_twins_differ_significantly_more() {
        let d = |by: f64| [by, -by, by, -by, by, -by, by];
        // F(0.99; 7, 7) is 6.99 in any table.
        assert!(is_noisier(&d(0.0265), &d(0.01)));
        assert!(!is_noisier(&d(0.0263), &d(0.01)));
        assert!(!is_noisier(&d(0.01), &d(0.05)));
        assert!(!is_noisier(&[1.0], &d(0.01)));
        assert!(!is_noisier(&d(0.01), &[0.0; 7]), "nothing to compare with");
    }

    #[test]
    fn bands_of_a_known_field() {
        const SMALL: Margins = Margins { tie: 0.02, floor: 0.0 };
        // a and b are not distinguishable, c is more expensive than both, d has no common rounds
        // with them.
        let wobble = [0.000, 0.011, -0.012, 0.009, -0.008, 0.004, -0.005];
        let series =
            |by: f64, flip: f64| -> Series { wobble.iter().map(|w| Some(by + flip * w)).collect() };
        let (a, b, c) = (series(0.0, 1.0), series(0.001, -3.0), series(0.5, 1.5));
        let d: Series = vec![None; 7];
        let band = |best, worst| Band { best, worst };
        assert_eq!(bands(&[&a, &b, &c], SMALL), [band(1, 2), band(1, 2), band(3, 3)]);
        assert_eq!(
            bands(&[&c, &d, &a, &b], SMALL),
            [band(3, 4), band(1, 4), band(1, 3), band(1, 3)]
        );
        assert_eq!(bands(&[&a], SMALL), [band(1, 1)]);
        assert!(bands(&[], SMALL).is_empty());
    }
}
