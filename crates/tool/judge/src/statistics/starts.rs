//! Whether an effect is limited to one contender: costs of two kinds from start to start, and
//! events that follow its rounds.

use super::{Series, mean, median, present};
use statrs::distribution::{DiscreteCDF, Hypergeometric};

/// Share of the variance that two kinds of starts must explain. For twelve values of a normal
/// distribution the best split explains 66% on average, and 90% once in thousands.
const EXPLAINS: f64 = 0.9;
/// Minimum number of starts of a kind: one or two may be chance.
const FEWEST: usize = 3;
/// Minimum factor between the two kinds.
const APART: f64 = 1.08;

/// A contender's starts, if they are of two kinds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoKinds {
    /// Number of starts of the rarer kind, out of `starts`.
    pub rarer: usize,
    /// Number of all its starts.
    pub starts: usize,
    /// Cost of the rarer kind over that of the other.
    pub factor: f64,
    /// The probability that this contender has so many of the deviating starts, if chance
    /// distributes them.
    pub p_value: f64,
}

/// Returns for each contender whether its starts are of two kinds, from the logarithms of its costs
/// by pass.
///
/// From each cost the median of its contender is subtracted, and from the result the median of its
/// pass. The remainder is split into two groups with the largest variance between them (Fisher, *On
/// grouping for maximum homogeneity*, JASA 53, 1958). They are two kinds if the split explains 90%
/// of the variance, the smaller group has three starts and the means are 8% apart.
///
/// A machine with two speeds produces the same pattern for any contender. So a start of any
/// contender *deviates* if its distance from the usual cost of its contender exceeds half the
/// distance of the two groups. Fisher's exact test (*The Design of Experiments*, 1935) then decides
/// whether so many of the deviating starts belong to one contender. That test is valid whatever
/// changes the costs, if it affects all contenders equally. With few contenders or passes no number
/// of starts is significant.
pub fn two_kinds(costs: &[&Series]) -> Vec<Option<TwoKinds>> {
    let remainder = without_passes(costs);
    let of = |own: usize| {
        let values = present(&remainder[own]);
        let Split { low, high, below, explains } = Split::of(values.clone())?;
        let (n, rarer) = (values.len(), below.min(values.len() - below));
        if explains < EXPLAINS || rarer < FEWEST || high - low < APART.ln() {
            return None;
        }
        let is_low_usual = below >= n - below;
        let (usual, other) = if is_low_usual { (low, high) } else { (high, low) };
        let deviates = |value: f64, usual: f64| (value - usual).abs() > (high - low) / 2.0;
        let own_hits = values.iter().filter(|value| deviates(**value, usual)).count();
        let others = remainder.iter().enumerate().filter(|(i, _)| *i != own);
        let others: Vec<f64> = others.flat_map(|(_, series)| present(series)).collect();
        let hits = others.iter().filter(|value| deviates(**value, 0.0)).count();
        let p_value = fisher_exact((own_hits, n), (hits, others.len()))?;
        Some(TwoKinds { rarer, starts: n, factor: (other - usual).exp(), p_value })
    };
    (0..costs.len()).map(of).collect()
}

/// The probability that one side has so many of all hits, if chance distributes them: Fisher's
/// exact test, one-sided. Each pair is the number of hits, and out of how many. `None` if one side
/// is empty.
pub fn fisher_exact(own: (usize, usize), others: (usize, usize)) -> Option<f64> {
    let ((hits, n), (other_hits, other_n)) = (own, others);
    if other_n == 0 || n == 0 {
        return None;
    }
    let drawn =
        Hypergeometric::new((n + other_n) as u64, (hits + other_hits) as u64, n as u64).ok()?;
    Some(match hits {
        0 => 1.0,
        hits => drawn.sf(hits as u64 - 1),
    })
}

/// Values minus the median of their contender and that of their pass, and then again minus the median
/// of the contender.
fn without_passes(costs: &[&Series]) -> Vec<Series> {
    let centred = |series: &Series| -> Series {
        let usual = median(present(series)).unwrap_or(0.0);
        series.iter().map(|value| value.map(|value| value - usual)).collect()
    };
    let own: Vec<Series> = costs.iter().map(|series| centred(series)).collect();
    let passes = own.iter().map(Vec::len).max().unwrap_or(0);
    let of_pass = |pass: usize| {
        median(own.iter().filter_map(|series| series.get(pass).copied().flatten()).collect())
    };
    let shared: Vec<f64> = (0..passes).map(|pass| of_pass(pass).unwrap_or(0.0)).collect();
    let less = |series: &Series| -> Series {
        let both = series.iter().zip(&shared);
        both.map(|(value, shared)| value.map(|value| value - shared)).collect()
    };
    own.iter().map(|series| centred(&less(series))).collect()
}

/// Values in two groups.
struct Split {
    /// Mean of the lower group.
    low: f64,
    /// Mean of the higher group.
    high: f64,
    /// Number of values in the lower group.
    below: usize,
    /// Share of the total variance that lies between the groups.
    explains: f64,
}

impl Split {
    /// The best split. `None` if all values are equal, or there are fewer than two.
    fn of(mut values: Vec<f64>) -> Option<Split> {
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let sum: f64 = values.iter().sum();
        let mean = mean(&values)?;
        let total: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let mut lower = 0.0;
        let splits =
            values.iter().enumerate().take(values.len().saturating_sub(1)).map(|(i, value)| {
                lower += value;
                let k = (i + 1) as f64;
                let (low, high) = (lower / k, (sum - lower) / (n - k));
                let between = k * (low - mean).powi(2) + (n - k) * (high - mean).powi(2);
                Split { low, high, below: i + 1, explains: between / total }
            });
        let known = splits.filter(|split| split.explains.is_finite());
        known.max_by(|a, b| a.explains.total_cmp(&b.explains))
    }
}

#[cfg(test)]
mod tests {
    use super::super::holm;
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// The significance level used in `doubts::starts`.
    const CHANCE: f64 = 0.02;

    fn normal(random: &mut StdRng) -> f64 {
        let u: f64 = 1.0 - random.random::<f64>();
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * random.random::<f64>()).cos()
    }

    fn accused(costs: &[Series]) -> Vec<usize> {
        let kinds = two_kinds(&costs.iter().collect::<Vec<_>>());
        let p: Vec<f64> = kinds.iter().map(|kind| kind.map_or(1.0, |k| k.p_value)).collect();
        let significant = holm(&p, CHANCE);
        (0..costs.len()).filter(|i| significant[*i]).collect()
    }

    /// `noise` of each contender; a fraction `q` of the starts of all contenders is slower by 20%.
    fn honest(noise: &[f64], passes: usize, q: f64, random: &mut StdRng) -> Vec<Series> {
        let mut of = |noise: f64| -> Series {
            let slow = |random: &mut StdRng| if random.random_bool(q) { 0.18 } else { 0.0 };
            (0..passes).map(|_| Some(noise * normal(random) + slow(random))).collect()
        };
        noise.iter().map(|noise| of(*noise)).collect()
    }

    /// A machine whose speed changes after `slow` or `fast` seconds, by 27%. A round takes 3 s.
    fn two_speeds(
        n: usize,
        passes: usize,
        slow: f64,
        fast: f64,
        random: &mut StdRng,
    ) -> Vec<Series> {
        let (mut costs, mut is_slow, mut left) = (vec![vec![None; passes]; n], false, fast);
        for nth in 0..n * passes {
            let (pass, i) = (nth / n, nth % n);
            // The order is random, so any order will do.
            let own = (i + pass) % n;
            let part = left.min(3.0) / 3.0;
            let share = if is_slow { part } else { 1.0 - part };
            left -= 3.0;
            while left <= 0.0 {
                is_slow = !is_slow;
                left += if is_slow { slow } else { fast } * random.random_range(0.2..1.8);
            }
            costs[own][pass] = Some((1.0 + 0.27 * share).ln() + 0.008 * normal(random));
        }
        costs
    }

    #[test]
    fn finds_only_the_contender_whose_every_third_start_costs_a_fifth_more() {
        for (others, noise, least) in [(4, 0.01, 198), (4, 0.02, 150), (6, 0.02, 150)] {
            let found = (0..200).filter(|seed| {
                let mut random = StdRng::seed_from_u64(*seed);
                let mut costs = honest(&vec![noise; others], 12, 0.0, &mut random);
                for cost in costs[1].iter_mut().skip(2).step_by(3) {
                    *cost = cost.map(|cost| cost + 1.19_f64.ln());
                }
                let kind = two_kinds(&costs.iter().collect::<Vec<_>>())[1];
                let is_right = kind.is_none_or(|kind| {
                    (kind.rarer, kind.starts) == (4, 12) && (kind.factor - 1.19).abs() < 0.06
                });
                assert!(is_right, "{kind:?}");
                accused(&costs) == [1]
            });
            let found = found.count();
            assert!(found >= least, "{found} of 200 among {others}, noise {noise}");
        }
    }

    #[test]
    fn accuses_honest_contenders_in_at_most_one_race_of_a_hundred() {
        const RACES: u64 = 1_000;
        let even = |n: usize, passes: usize, q: f64| {
            move |random: &mut StdRng| honest(&vec![0.01; n], passes, q, random)
        };
        let speeds = |n: usize, slow: f64, fast: f64| {
            move |random: &mut StdRng| two_speeds(n, 12, slow, fast, random)
        };
        let restless = |random: &mut StdRng| honest(&[0.01, 0.01, 0.01, 0.08], 12, 0.0, random);
        type Machine<'a> = (&'a str, &'a dyn Fn(&mut StdRng) -> Vec<Series>);
        let machines: [Machine<'_>; 9] = [
            ("quiet", &even(4, 12, 0.0)),
            ("one of them is restless", &restless),
            ("a slow start in twenty", &even(6, 12, 0.05)),
            ("a slow start in ten", &even(4, 12, 0.1)),
            ("the same for longer", &even(4, 25, 0.1)),
            ("a slow start in five", &even(4, 12, 0.2)),
            ("two speeds", &speeds(3, 13.0, 13.0)),
            ("seldom slow", &speeds(4, 5.0, 50.0)),
            ("seldom slow, for long", &speeds(6, 15.0, 120.0)),
        ];
        for (name, machine) in machines {
            let falsely = (0..RACES).filter(|seed| {
                let mut random = StdRng::seed_from_u64(*seed);
                !accused(&machine(&mut random)).is_empty()
            });
            let falsely = falsely.count();
            // 1,000 tries at 1%: 19 or more are as rare as 1 in 140.
            assert!(falsely <= 18, "{name}: {falsely} of {RACES}");
        }
    }

    #[test]
    fn fishers_exact_test_on_a_worked_example() {
        // Four of four, out of 36: C(12,4) / C(36,4) = 495 / 58,905.
        let p = fisher_exact((4, 12), (0, 24)).unwrap();
        assert!((p - 495.0 / 58_905.0).abs() < 1e-9, "{p}");
        // The lady tasting tea: three or more of four, 17 / 70.
        let p = fisher_exact((3, 4), (1, 4)).unwrap();
        assert!((p - 17.0 / 70.0).abs() < 1e-9, "{p}");
        assert_eq!(fisher_exact((0, 4), (3, 4)), Some(1.0));
        assert_eq!(fisher_exact((4, 4), (0, 0)), None);
    }

    #[test]
    fn few_or_equal_starts_are_not_of_two_kinds() {
        let flat: Series = vec![Some(1.0); 12];
        assert_eq!(two_kinds(&[&flat, &flat, &vec![None; 12], &vec![]]), [None; 4]);
        assert_eq!(two_kinds(&[&vec![Some(1.0)], &flat]), [None; 2]);
        let mut two = flat.clone();
        (two[3], two[7]) = (Some(2.0), Some(2.0));
        assert_eq!(two_kinds(&[&two, &flat, &flat, &flat])[0], None, "two of twelve");
    }
}
