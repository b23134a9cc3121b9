//! Statistical acceptance tests: on simulated rounds with known truth, intervals and decisions must
//! be correct as often as they claim. Seeds are fixed; the bounds are a number of standard
//! deviations of the binomial distribution that correct code passes. The width of the intervals is
//! tested too, so that vague intervals fail.

use crate::simulated::{LOAD, Machine, QUIET, asked, normal, rounds, truth};
use rand::{SeedableRng, rngs::SmallRng};
use regatta_judge::judge;
use regatta_judge::statistics::{
    Margins, STUDENT_UP_TO, bands, geometric, holm, noise_floor, p_value, paired,
};
use regatta_record::Relation;

const TRIALS: usize = 1_000;
/// Fewer trials with a bootstrap, which is slow without optimisation.
const BOOTSTRAPS: usize = 400;

/// Whether `hits` of `trials` agree with a probability of `p`: within 4 standard deviations.
fn plausible(hits: usize, trials: usize, p: f64) -> bool {
    let n = trials as f64;
    (hits as f64 - n * p).abs() <= 4.0 * (n * p * (1.0 - p)).sqrt()
}

fn log_normal(random: &mut SmallRng, n: usize, mean: f64, sigma: f64) -> Vec<f64> {
    (0..n).map(|_| mean + sigma * normal(random)).collect()
}

#[test]
fn intervals_contain_the_true_value_at_the_nominal_rate() {
    for rounds in [2, 3, 5, 7, 20, 21, 50] {
        let mut random = SmallRng::seed_from_u64(1);
        let trials = if rounds > STUDENT_UP_TO { BOOTSTRAPS } else { TRIALS };
        let (mut hits, mut width) = (0, 0.0);
        for trial in 0..trials {
            let logs = log_normal(&mut random, rounds, 1.4f64.ln(), 0.03);
            let e = geometric(&logs, trial as u64).unwrap();
            hits += usize::from(e.low <= 1.4 && 1.4 <= e.high);
            width += (e.high / e.low).ln() / 2.0 / trials as f64;
        }
        assert!(plausible(hits, trials, 0.95), "{rounds} rounds: {hits} of {trials}");
        if rounds >= 5 {
            // The ideal half-width is 1.96 σ/√n; t(0.975; 4) = 2.78 at 5 rounds makes it 1.35 times
            // as wide.
            let ideal = 1.96 * 0.03 / (rounds as f64).sqrt();
            assert!((0.95..1.42).contains(&(width / ideal)), "{rounds}: {}", width / ideal);
        }
    }
}

#[test]
fn beyond_20_rounds_skewed_rounds_are_still_covered() {
    // Exponential logarithms: far from normal. The bootstrap of a mean is known to be a few percent
    // below its nominal rate there; it must not be more.
    let mut random = SmallRng::seed_from_u64(2);
    let mut hits = 0;
    for trial in 0..BOOTSTRAPS {
        let logs: Vec<f64> = (0..60)
            .map(|_| {
                let (a, b) = (normal(&mut random), normal(&mut random));
                (a * a + b * b) / 2.0 * 0.05 - 0.05
            })
            .collect();
        let e = geometric(&logs, trial as u64).unwrap();
        hits += usize::from(e.low <= 1.0 && 1.0 <= e.high);
    }
    assert!(hits as f64 / BOOTSTRAPS as f64 > 0.90, "{hits} of {BOOTSTRAPS}");
}

#[test]
fn p_values_are_uniform_when_nothing_differs() {
    let mut random = SmallRng::seed_from_u64(3);
    let p: Vec<f64> =
        (0..TRIALS).map(|_| p_value(&log_normal(&mut random, 7, 0.0, 0.02)).unwrap()).collect();
    for limit in [0.01, 0.05, 0.5] {
        let hits = p.iter().filter(|p| **p <= limit).count();
        assert!(plausible(hits, TRIALS, limit), "p ≤ {limit}: {hits} of {TRIALS}");
    }
}

#[test]
fn holm_finds_a_false_difference_in_at_most_5_percent_of_families() {
    let mut random = SmallRng::seed_from_u64(4);
    let mut wrong = 0;
    for _ in 0..TRIALS {
        let base = log_normal(&mut random, 7, 0.0, 0.01);
        let p: Vec<f64> = (0..9)
            .map(|_| {
                let other = log_normal(&mut random, 7, 0.0, 0.01);
                let d: Vec<f64> = other.iter().zip(&base).map(|(a, b)| a - b).collect();
                p_value(&d).unwrap()
            })
            .collect();
        wrong += usize::from(holm(&p, 0.05).contains(&true));
    }
    let most = TRIALS as f64 * 0.05 + 4.0 * (TRIALS as f64 * 0.05 * 0.95).sqrt();
    assert!(wrong as f64 <= most, "{wrong} of {TRIALS}");
    assert!(wrong > TRIALS / 200, "{wrong}: too vague to ever be wrong");
}

#[test]
fn all_bands_are_right_at_once_in_95_percent_of_fields() {
    // Three ties at the top, then steps of 4%: true ranks 1–3, 4, 5, 6.
    let truths = [0.0, 0.0, 0.0, 0.04, 0.08, 0.12];
    let mut random = SmallRng::seed_from_u64(5);
    let (trials, mut wrong, mut sharp) = (1_000, 0, 0);
    for _ in 0..trials {
        let field: Vec<Vec<Option<f64>>> = truths
            .iter()
            .map(|mean| log_normal(&mut random, 7, *mean, 0.008).into_iter().map(Some).collect())
            .collect();
        let pair = |a: usize, b: usize| {
            let log_ratios = paired(&field[b], &field[a]);
            Some((geometric(&log_ratios, 1)?, p_value(&log_ratios)?))
        };
        let bands = bands(truths.len(), pair, Margins::NONE);
        let holds = |i: usize, from: u32, to: u32| bands[i].best <= from && bands[i].worst >= to;
        let right =
            (0..3).all(|i| holds(i, 1, 3)) && (3..6).all(|i| holds(i, i as u32 + 1, i as u32 + 1));
        wrong += usize::from(!right);
        sharp += usize::from(bands[5].best >= 5);
    }
    let most = trials as f64 * 0.05 + 4.0 * (trials as f64 * 0.05 * 0.95).sqrt();
    assert!(wrong as f64 <= most, "{wrong} of {trials}");
    assert!(
        sharp > trials / 2,
        "the last is distinguished from the first four in only {sharp} of {trials}"
    );
}

/// The mean floor of `loads` loads and `rounds` rounds, with this true offset and deviation.
fn mean_floor(loads: usize, rounds: usize, offset: f64, sigma: f64) -> f64 {
    let mut random = SmallRng::seed_from_u64(6);
    let mut twin = |trial: usize| {
        geometric(&log_normal(&mut random, rounds, offset, sigma), trial as u64).unwrap()
    };
    let floors = (0..BOOTSTRAPS).map(|trial| {
        let twins: Vec<_> = (0..loads).map(|_| twin(trial)).collect();
        noise_floor(&twins).unwrap()
    });
    floors.sum::<f64>() / BOOTSTRAPS as f64
}

#[test]
fn the_noise_floor_is_the_offset_and_the_half_width_of_an_a_a_interval() {
    // d has σ = 0.02·√2. Over 7 rounds means vary by σ/√7 = 1.07%. With one load
    // |mean| + t(0.975; 6)·s/√7: 0.85% + 2.51%.
    let floor = mean_floor(1, 7, 0.0, 0.02 * 2f64.sqrt());
    assert!((0.032..0.036).contains(&floor), "{floor}");
    // The root mean square of four such ends is a little larger than their mean.
    let floor = mean_floor(4, 7, 0.0, 0.02 * 2f64.sqrt());
    assert!((0.033..0.038).contains(&floor), "{floor}");
    // A lasting offset is not averaged away: 3% + 2.01·0.28%.
    let floor = mean_floor(1, 50, 0.03, 0.02);
    assert!((0.0355..0.037).contains(&floor), "{floor}");
}

#[test]
fn within_a_lasting_offset_of_3_percent_nothing_is_called_2_percent_cheaper() {
    let contenders = [truth("a", 5_000.0), truth("a-twin", 5_150.0), truth("b", 4_900.0)];
    let asked = asked(&["a", "a-twin", "b"], 20, &[LOAD]);
    let machine = Machine { samples: 20, ..QUIET };
    let mut below_one = 0;
    for seed in 0..50 {
        let summary = judge(&asked, &rounds(&contenders, &[LOAD], 20, machine, seed));
        let b = summary.cells.iter().find(|cell| cell.contender == "b").unwrap();
        below_one += usize::from(b.ratio_to_baseline.unwrap().high < 1.0);
        assert!(summary.noise_floor.unwrap() > 0.025, "{seed}: {:?}", summary.noise_floor);
        assert_ne!(b.relation, Some(Relation::Cheaper), "{seed}: {:?}", b.ratio_to_baseline);
    }
    assert!(below_one > 45, "only {below_one} of 50 races could have called it cheaper");
}

#[test]
fn a_race_of_equals_shows_no_more_differences_than_it_admits() {
    // Five names of the same program: on a noisy machine almost nothing may be distinguished.
    let machine = Machine { noise: 0.06, samples: 20, ..QUIET };
    let names = ["a", "a-twin", "b", "c", "d"];
    let contenders: Vec<_> = names.map(|n| truth(n, 5_000.0)).to_vec();
    let asked = asked(&names, 7, &[LOAD]);
    let (trials, mut wrong) = (200, 0);
    for seed in 0..trials {
        let summary = judge(&asked, &rounds(&contenders, &[LOAD], 7, machine, seed));
        wrong += usize::from(summary.cells.iter().any(|c| {
            matches!(c.relation, Some(Relation::Cheaper | Relation::Costlier))
                || c.band.is_some_and(|b| (b.best, b.worst) != (1, 4))
        }));
    }
    // Relations and bands may each be wrong in 5% of races: together at most 10%.
    let most = trials as f64 * 0.10 + 4.0 * (trials as f64 * 0.10 * 0.90).sqrt();
    assert!(wrong as f64 <= most, "{wrong} of {trials}");
}
