//! A control variate: adjusts the costs of contenders for the readings of the machine probe.
//!
//! Both are logarithms. Within a contender and within a pass, cost changes with the probe's reading
//! by the factor `slope`, estimated over all contenders together (the common slope of an analysis
//! of covariance: Fisher, *Statistical Methods for Research Workers*, 4th edition, 1932, section
//! 49.1; as a control variate: Lavenberg and Welch, Management Science 27, 1981). Changes that
//! affect all contenders of a pass cancel out of ratios anyway, so they have no part in the slope.
//!
//! The reading is the one before a contender starts, and the order of rounds is random, so it is
//! independent of the contender. A reading after it would include the effect of the contender
//! itself, the same in every round, which is not noise. So ratios lose only the machine's part, and
//! their intervals become narrower.

use super::{Series, mean, t_quantile};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum degrees of freedom that remain after estimating a slope, which uses one more. With this
/// many, no interval changes by more than 4%.
const FREEDOM: usize = 15;
/// One-sided confidence required of the slope.
const CERTAINTY: f64 = 0.99;

/// The relation of cost and probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Control {
    /// Growth of the logarithm of the cost with that of the reading, 0 to 1.
    pub slope: f64,
    /// Share of the variance within contenders and passes that it explains.
    pub explained: f64,
    /// Mean of the logarithms of all readings.
    mean: f64,
}

impl Control {
    /// Estimates the relation from each contender's costs and readings, by pass. `None` if the slope is
    /// not significant, there are too few rounds, or costs or readings do not vary.
    pub fn of(contenders: &[(&Series, &Series)]) -> Option<Control> {
        let mut seen: Vec<Seen> = contenders
            .iter()
            .enumerate()
            .flat_map(|(contender, (costs, probes))| {
                let both = costs.iter().zip(*probes).enumerate();
                both.filter_map(move |(pass, (cost, probe))| {
                    Some(Seen { contender, pass, probe: (*probe)?, cost: (*cost)? })
                })
            })
            .collect();
        let mean = mean(&seen.iter().map(|seen| seen.probe).collect::<Vec<_>>())?;
        let [groups, passes] = [|seen: &Seen| seen.contender, |seen: &Seen| seen.pass]
            .map(|of| seen.iter().map(of).collect::<BTreeSet<_>>().len());
        // Subtract the means of contenders and of passes (which share one) and the slope.
        let freedom = seen.len().checked_sub(groups + passes)?;
        if freedom < FREEDOM {
            return None;
        }
        let freedom = freedom as f64;
        centre(&mut seen);
        let sum = |of: &dyn Fn(&Seen) -> f64| seen.iter().map(of).sum::<f64>();
        let (xx, yy) = (sum(&|s| s.probe * s.probe), sum(&|s| s.cost * s.cost));
        let xy = sum(&|s| s.probe * s.cost);
        if xx <= 0.0 || yy <= 0.0 {
            return None;
        }
        let slope = xy / xx;
        let error = ((yy - slope * xy).max(0.0) / freedom / xx).sqrt();
        if slope <= t_quantile(CERTAINTY, freedom) * error {
            return None;
        }
        // A cost cannot depend on the machine more than a probe without any other work.
        let slope = slope.min(1.0);
        let left = yy - 2.0 * slope * xy + slope * slope * xx;
        Some(Control { slope, explained: 1.0 - left / yy, mean })
    }

    /// The costs adjusted to the mean reading. Costs without a reading are unchanged.
    pub fn adjusted(&self, costs: &Series, probes: &Series) -> Series {
        let one = |(y, x): (&Option<f64>, &Option<f64>)| {
            (*y).map(|y| x.map_or(y, |x| y - self.slope * (x - self.mean)))
        };
        costs.iter().zip(probes).map(one).collect()
    }
}

/// A round of a contender.
struct Seen {
    contender: usize,
    pass: usize,
    probe: f64,
    cost: f64,
}

/// Subtracts the means of contenders and of passes, alternately until both vanish: immediately if
/// every contender ran in every pass.
fn centre(seen: &mut [Seen]) {
    const SWEEPS: usize = 20;
    for _ in 0..SWEEPS {
        subtract_means(seen, |seen| seen.contender);
        subtract_means(seen, |seen| seen.pass);
    }
}

fn subtract_means(seen: &mut [Seen], group: impl Fn(&Seen) -> usize) {
    let mut sums: BTreeMap<usize, (f64, f64, f64)> = BTreeMap::new();
    for one in seen.iter() {
        let (n, probe, cost) = sums.entry(group(one)).or_default();
        (*n, *probe, *cost) = (*n + 1.0, *probe + one.probe, *cost + one.cost);
    }
    for one in seen {
        let (n, probe, cost) = sums[&group(one)];
        (one.probe, one.cost) = (one.probe - probe / n, one.cost - cost / n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// Passes of two contenders, the second a tenth more expensive, on a machine with two states. The
    /// probe follows them fully, the cost by the factor `slope`. The states differ between contenders
    /// of a pass.
    fn seen(passes: usize, slope: f64, seed: u64) -> [(Series, Series); 2] {
        let mut random = StdRng::seed_from_u64(seed);
        [0.0, 0.1_f64.ln_1p()].map(|effect| {
            (0..passes)
                .map(|_| {
                    let state = if random.random_bool(0.3) { 0.25 } else { 0.0 };
                    let mut noise = || random.random_range(-0.01..0.01);
                    (Some(effect + slope * state + noise()), Some(state + noise()))
                })
                .unzip()
        })
    }

    /// Costs and readings of both contenders have the same drift, and independent noise.
    #[test]
    fn a_drift_that_pairing_removes_needs_no_control() {
        let taken = (0..100).filter(|seed| {
            let mut random = StdRng::seed_from_u64(*seed);
            let mut of = |drift: f64| Some(drift + random.random_range(-0.02..0.02));
            let drift: Vec<f64> = (0..25).map(|pass| f64::from(pass) * 0.02).collect();
            let mut series = || drift.iter().map(|d| of(*d)).collect::<Series>();
            let [a, of_a, b, of_b] = [(); 4].map(|()| series());
            Control::of(&[(&a, &of_a), (&b, &of_b)]).is_some()
        });
        assert!(taken.count() <= 5, "1% of 100 is 1");
    }

    fn spread(values: &[f64]) -> f64 {
        let mean = mean(values).unwrap();
        values.iter().map(|v| (v - mean).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn removes_the_machines_part_and_keeps_the_contenders() {
        for seed in 0..20 {
            let [(a, of_a), (b, of_b)] = seen(20, 0.8, seed);
            let control = Control::of(&[(&a, &of_a), (&b, &of_b)]).unwrap();
            assert!((control.slope - 0.8).abs() < 0.05, "{control:?}");
            assert!(control.explained > 0.9, "{control:?}");
            let ratios =
                super::super::paired(&control.adjusted(&b, &of_b), &control.adjusted(&a, &of_a));
            assert!((mean(&ratios).unwrap().exp() - 1.1).abs() < 0.01);
            assert!(spread(&ratios) < 0.4 * spread(&super::super::paired(&b, &a)));
        }
    }

    #[test]
    fn a_probe_without_information_is_ignored() {
        let taken = (0..200).filter(|seed| {
            let [(a, of_a), (b, of_b)] = seen(20, 0.0, *seed);
            Control::of(&[(&a, &of_a), (&b, &of_b)]).is_some()
        });
        assert!(taken.count() <= 8, "1% of 200 is 2");
        let [(a, of_a), (b, of_b)] = seen(15, 0.8, 1);
        assert_eq!(Control::of(&[(&a, &of_a), (&b, &of_b)]), None, "13 degrees of freedom");
        assert_eq!(Control::of(&[(&a, &of_a)]), None, "nothing within a pass");
        let none: Series = vec![None; 15];
        assert_eq!(Control::of(&[(&a, &none), (&a, &none)]), None);
    }

    #[test]
    fn a_round_without_a_reading_is_unchanged() {
        let [(a, mut of_a), (b, of_b)] = seen(20, 0.8, 3);
        of_a[7] = None;
        let control = Control::of(&[(&a, &of_a), (&b, &of_b)]).unwrap();
        let off = control.adjusted(&a, &of_a);
        assert_eq!(off[7], a[7]);
        assert_ne!(off[8], a[8]);
    }
}
