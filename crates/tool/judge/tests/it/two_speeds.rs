//! The statistics on a machine like small virtual ones: two speeds with a factor of 1.27, each
//! lasting 2 to 25 s, that affect all contenders equally. Simulated in time, with fixed seeds.
//! Races of equals must claim no more differences than they admit, and known handicaps must lie in
//! their intervals. The widths of the intervals are tested too, so that vague intervals fail.

use crate::simulated::normal;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};
use regatta_judge::statistics::{geometric, p_value, percentiles};
use regatta_record::Estimate;

/// Factor between the two speeds.
const SLOWER: f64 = 1.27;
/// Time between two starts, in seconds, and the length of the window in it.
const ROUND_S: f64 = 3.0;
const WINDOW_S: f64 = 2.0;

/// A machine and its current time.
struct TwoSpeeds {
    random: SmallRng,
    now_s: f64,
    /// When the speed changes next.
    until_s: f64,
    slow: bool,
}

impl TwoSpeeds {
    fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let (until_s, slow) = (random.random_range(0.0..25.0), random.random());
        TwoSpeeds { random, now_s: 0.0, until_s, slow }
    }

    /// Logarithm of the cost of a contender of cost 1 in the next round: the mean speed in its
    /// window, plus the noise of each start.
    fn log_cost(&mut self) -> f64 {
        let (end, mut at, mut slow_s) = (self.now_s + WINDOW_S, self.now_s, 0.0);
        while at < end {
            let next = self.until_s.min(end);
            slow_s += if self.slow { next - at } else { 0.0 };
            at = next;
            if at >= self.until_s {
                self.until_s += self.random.random_range(2.0..25.0);
                self.slow = !self.slow;
            }
        }
        self.now_s += ROUND_S;
        // The speed may also change between two windows.
        while self.until_s < self.now_s {
            self.until_s += self.random.random_range(2.0..25.0);
            self.slow = !self.slow;
        }
        let speed = 1.0 + (SLOWER - 1.0) * slow_s / WINDOW_S;
        speed.ln() + 0.008 * normal(&mut self.random)
    }

    /// Log-ratios of the second of two contenders to the first, one per pass, in shuffled order;
    /// the second costs `factor` times as much.
    fn race(&mut self, passes: usize, factor: f64) -> Vec<f64> {
        (0..passes)
            .map(|_| {
                let mut order = [0, 1];
                order.shuffle(&mut self.random);
                let mut logs = [0.0; 2];
                order.into_iter().for_each(|i| logs[i] = self.log_cost());
                logs[1] + factor.ln() - logs[0]
            })
            .collect()
    }
}

fn half_width(e: &Estimate) -> f64 {
    (e.high / e.low).ln() / 2.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn of_200_races_of_twins_at_most_16_claim_a_difference() {
    // One simulated race of twins, with random signs of its log-ratios.
    let twins = TwoSpeeds::new(1).race(10, 1.0);
    let mut random = SmallRng::seed_from_u64(2);
    let mut claims = |ratios: &dyn Fn(&mut SmallRng, u64) -> Vec<f64>| {
        (0..200).filter(|&race| p_value(&ratios(&mut random, race)).unwrap() <= 0.05).count()
    };
    let flipped =
        claims(&|random, _| twins.iter().map(|d| if random.random() { *d } else { -*d }).collect());
    assert!(flipped <= 16, "{flipped} of 200 with flipped signs");
    let fresh = claims(&|_, race| TwoSpeeds::new(1_000 + race).race(10, 1.0));
    assert!(fresh <= 16, "{fresh} of 200 with fresh races");
    assert!(flipped + fresh > 0, "too vague to ever be wrong");
}

#[test]
fn known_handicaps_lie_in_their_intervals() {
    let mut widths = Vec::new();
    let (mut covered, mut found) = (0, 0);
    for (nth, factor) in [1.03, 1.10, 1.30].into_iter().enumerate() {
        for race in 0..10 {
            let ratios = TwoSpeeds::new(100 * nth as u64 + race).race(10, factor);
            let e = geometric(&ratios, race).unwrap();
            covered += usize::from(e.low <= factor && factor <= e.high);
            found += usize::from(factor == 1.30 && e.low > 1.0);
            widths.push(half_width(&e));
        }
    }
    assert!(covered >= 24, "{covered} of 30");
    let median = median(widths);
    assert!(median < 0.10, "a median half-width of ±{:.1}%", median * 100.0);
    assert_eq!(found, 10, "+30% is always found");
}

#[test]
fn intervals_of_percentiles_contain_the_true_percentile() {
    // Each start has its own speed (±5%); a round measures 2,000 requests of it.
    let (trials, mut hits, mut width) = (200, [0; 2], 0.0);
    for trial in 0..trials {
        let mut random = SmallRng::seed_from_u64(trial);
        let rounds: Vec<[Option<u64>; 5]> = (0..7)
            .map(|_| {
                let start = (0.05 * normal(&mut random)).exp();
                let mut of_round: Vec<u64> = (0..2_000)
                    .map(|_| (200_000.0 * start * (0.35 * normal(&mut random)).exp()) as u64)
                    .collect();
                of_round.sort_unstable();
                [Some(of_round[999]), None, None, Some(of_round[1_979]), None]
            })
            .collect();
        let intervals = percentiles(&rounds, trial);
        // The 99th percentile of a normal distribution lies 2.3263 deviations above its mean.
        let truths = [
            (0, 200_000.0, intervals.p50),
            (1, 200_000.0 * (0.35f64 * 2.3263).exp(), intervals.p99),
        ];
        for (nth, truth, e) in truths {
            let e = e.unwrap();
            hits[nth] += usize::from(e.low <= truth && truth <= e.high);
            width += half_width(&e) / 2.0 / trials as f64;
        }
    }
    // 190 expected of 200; 4 standard deviations are 12.
    assert!(hits.iter().all(|hits| *hits >= 178), "{hits:?} of {trials}");
    assert!(width < 0.08, "±{:.1}%", width * 100.0);
}
