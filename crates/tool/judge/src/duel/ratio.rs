//! The ratio of the costs of two contenders.

use super::{
    field::Look,
    interval::Looked,
    mixed::{Contrast, Fit},
    moderation::Prior,
};
use crate::statistics::{CONFIDENCE, holm};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Minimum number of lives for an interval.
const LEAST_LIVES: u32 = 3;
/// Two-sided error of an interval.
const ALPHA: f64 = 1.0 - CONFIDENCE;

/// The cost of one contender over that of another. All figures are natural logarithms or standard
/// deviations of such.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// Mean log-ratio: in [`Ratio::state`], if there is one; otherwise over all blocks.
    pub log: f64,
    /// The first of the field's [preferred](super::states::States::preferred) states that both contenders were seen
    /// in in at least 3 lives, if several states were seen. It is chosen by what was seen, not by the ratios. A
    /// state of fewer lives is only in [`Ratio::by_state`]: two blocks of a single life, in which the machine may
    /// just have changed, must not move the ratio.
    pub state: Option<usize>,
    /// Lower end of the 95% interval. −∞ if the lives are too few to exclude anything.
    pub low: f64,
    /// Upper end of the 95% interval.
    pub high: f64,
    /// The p-value of "equal cost", two-sided.
    pub p: f64,
    /// Whether the ratio differs significantly between states that were seen in at least 3 lives.
    pub states_differ: bool,
    /// The ratio in each state that both contenders were seen in.
    pub by_state: Vec<StateRatio>,
    /// The ratio beside other programs, if it differs significantly there: those blocks then count for nothing
    /// else. Its `state` means nothing.
    pub beside_others: Option<StateRatio>,
    /// Standard deviation between lives, moderated over the contenders.
    pub between: f64,
    /// Standard deviation of blocks within a life.
    pub within: f64,
    /// Number of lives with a block of both.
    pub lives: u32,
    /// Degrees of freedom of the error, with those of the moderation.
    pub freedom: f64,
    /// Standard error of `log`, moderated.
    pub error: f64,
    /// When it was looked at, which intervals and p-values depend on: see [`interval`](super::interval).
    pub look: Look,
}

/// A ratio in one state of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct StateRatio {
    /// Index of the state.
    pub state: usize,
    /// Mean log-ratio.
    pub log: f64,
    /// Lower end of the 95% interval.
    pub low: f64,
    /// Upper end of the 95% interval.
    pub high: f64,
    /// Number of blocks.
    pub blocks: u32,
}

impl Ratio {
    /// The p-value of "the log-ratio is at most `limit`", one-sided.
    pub fn p_above(&self, limit: f64) -> f64 {
        if self.log <= limit { 1.0 } else { self.looked().p_beyond(limit) }
    }

    /// Lower end of the one-sided 95% interval of the log-ratio.
    pub fn at_least(&self) -> f64 {
        self.log - self.looked().half_width(2.0 * ALPHA)
    }

    /// Half-width of the 95% interval of the log-ratio.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Half-width of the 95% interval if the race ends now.
    pub fn half_width_at_end(&self) -> f64 {
        Looked { look: Look::Last, ..self.looked() }.half_width(ALPHA)
    }

    fn looked(&self) -> Looked {
        let Ratio { look, log: mean, error, lives, freedom, .. } = *self;
        Looked { look, mean, error, lives: f64::from(lives), freedom }
    }

    /// The reciprocal ratio.
    pub fn reciprocal(self) -> Ratio {
        let turned = |s: StateRatio| StateRatio { log: -s.log, low: -s.high, high: -s.low, ..s };
        let by_state = self.by_state.into_iter();
        Ratio {
            log: -self.log,
            low: -self.high,
            high: -self.low,
            by_state: by_state.map(turned).collect(),
            beside_others: self.beside_others.map(turned),
            ..self
        }
    }
}

/// A pair that was fitted and not yet moderated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pair {
    by_state: Fit,
    /// The states that were seen, as indices of the field's.
    states: Vec<usize>,
    states_differ: bool,
    /// See [`Ratio::state`].
    state: Option<usize>,
    /// The fit of the headline: that in this state, or without states.
    fit: Fit,
    headline: Contrast,
    /// If the ratio differs beside other programs: that of the blocks without them, and beside them.
    pub beside_others: Option<Fit>,
}

impl Pair {
    /// Fits log-ratios by life, each with the index of its state. `None` with too few lives for a
    /// variance.
    pub fn of(lives: &[Vec<(usize, f64)>], preferred: &[usize]) -> Option<Pair> {
        let mut states: Vec<usize> = lives.iter().flatten().map(|(state, _)| *state).collect();
        states.sort_unstable();
        states.dedup();
        let mapped = |to: &dyn Fn(usize) -> usize| -> Vec<Vec<(usize, f64)>> {
            lives.iter().map(|life| life.iter().map(|(s, d)| (to(*s), *d)).collect()).collect()
        };
        let known = states.clone();
        let index = |state: usize| known.partition_point(|other| *other < state);
        let pooled = Fit::of(&mapped(&|_| 0), 1)?;
        let seen_in_several = states.len() > 1;
        let by_state = Fit::of(&mapped(&index), states.len()).unwrap_or_else(|| {
            // Too few lives to tell states apart.
            states.clear();
            pooled.clone()
        });
        let states_differ = differ(&by_state);
        let in_state = |state: usize| {
            let blocks = |life: &Vec<(usize, f64)>| -> Vec<(usize, f64)> {
                life.iter().filter(|(s, _)| *s == state).map(|(_, d)| (0, *d)).collect()
            };
            let fit = Fit::of(&lives.iter().map(blocks).collect::<Vec<_>>(), 1);
            Some((state, fit.filter(|fit| seen_in_several && fit.lives() >= LEAST_LIVES)?))
        };
        let first = preferred.iter().find_map(|state| in_state(*state));
        let state = first.as_ref().map(|(state, _)| *state);
        let fit = first.map_or(pooled, |(_, fit)| fit);
        let headline = fit.contrast(&[1.0]);
        let beside_others = None;
        Some(Pair { by_state, states, states_differ, state, fit, headline, beside_others })
    }

    /// Variance of a life and its degrees of freedom, to be moderated.
    pub fn variance(&self) -> (f64, f64) {
        (self.headline.variance * f64::from(self.fit.lives()), self.headline.freedom)
    }

    /// The ratio, with the variances between lives moderated. `None` with fewer than 3 lives.
    pub fn moderated(&self, prior: &Prior, look: Look) -> Option<Ratio> {
        let lives = self.fit.lives();
        if lives < LEAST_LIVES {
            return None;
        }
        let (variance, freedom) = prior.moderate(self.variance());
        let n = f64::from(lives);
        let factor = variance / self.variance().0;
        let factor = if factor.is_finite() { factor } else { 1.0 };
        let looked = |mean: f64, variance: f64| Looked {
            look,
            mean,
            error: variance.sqrt(),
            lives: n,
            freedom,
        };
        let all = looked(self.headline.estimate, variance / n);
        let half_of_all = all.half_width(ALPHA);
        let one_of = |fit: &Fit, i: usize, state: usize| {
            let only: Vec<f64> = (0..fit.beta.len()).map(|j| f64::from(u8::from(i == j))).collect();
            let contrast = fit.contrast(&only);
            let half = looked(contrast.estimate, contrast.variance * factor).half_width(ALPHA);
            let (log, blocks) = (contrast.estimate, fit.blocks[i]);
            StateRatio { state, log, low: log - half, high: log + half, blocks }
        };
        let of_state = |(i, state): (usize, &usize)| {
            let one = one_of(&self.by_state, i, *state);
            match self.state == Some(*state) {
                true => StateRatio {
                    log: all.mean,
                    low: all.mean - half_of_all,
                    high: all.mean + half_of_all,
                    ..one
                },
                false => one,
            }
        };
        let within = self.fit.within.value;
        Some(Ratio {
            log: all.mean,
            state: self.state,
            low: all.mean - half_of_all,
            high: all.mean + half_of_all,
            p: (2.0 * all.p_beyond(0.0)).min(1.0),
            states_differ: self.states_differ,
            by_state: self.states.iter().enumerate().map(of_state).collect(),
            beside_others: self.beside_others.as_ref().map(|both| one_of(both, 1, 0)),
            between: (variance - within / self.fit.blocks_per_life).max(0.0).sqrt(),
            within: within.sqrt(),
            lives,
            freedom,
            error: all.error,
            look,
        })
    }

    /// The mean log-ratio in a state of the field.
    pub fn in_state(&self, state: usize) -> Option<f64> {
        let i = self.states.iter().position(|seen| *seen == state)?;
        self.by_state.beta.get(i).copied()
    }
}

/// Whether the ratios of any two states of at least 3 lives differ significantly: Student's t with
/// Satterthwaite's degrees of freedom, and Holm's correction over all pairs of states.
pub(super) fn differ(fit: &Fit) -> bool {
    let seen = fit.beta.len();
    let is_seen = |state: &usize| fit.lives_in(*state) >= LEAST_LIVES;
    let pairs = (0..seen).flat_map(|a| (a + 1..seen).map(move |b| (a, b)));
    let pairs = pairs.filter(|(a, b)| is_seen(a) && is_seen(b));
    let p = |(a, b): (usize, usize)| {
        let mut weights = vec![0.0; seen];
        (weights[a], weights[b]) = (-1.0, 1.0);
        let Contrast { estimate, variance, freedom } = fit.contrast(&weights);
        let t = (estimate / variance.sqrt()).abs();
        match StudentsT::new(0.0, 1.0, freedom) {
            Ok(student) if t.is_finite() => 2.0 * student.sf(t),
            // Without any variance.
            _ => f64::from(u8::from(estimate == 0.0)),
        }
    };
    holm(&pairs.map(p).collect::<Vec<_>>(), ALPHA).contains(&true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};

    /// The machine became fast in the last two blocks of a life, after the slice of one of the two.
    #[test]
    fn a_state_of_two_blocks_does_not_move_the_ratio() {
        let mut random = SmallRng::seed_from_u64(2);
        let mut near = |mean: f64| mean + random.random_range(-0.02..0.02);
        let mut lives: Vec<Vec<(usize, f64)>> =
            (0..6).map(|_| (0..8).map(|_| (1, near(0.0))).collect()).collect();
        lives[4].extend([(0, near(-0.28)), (0, near(-0.28))]);
        let pair = Pair::of(&lives, &[1, 0]).unwrap();
        let ratio = pair.moderated(&Prior::NONE, Look::Last).unwrap();
        assert_eq!((ratio.state, ratio.states_differ, ratio.lives), (Some(1), false, 6));
        assert!(ratio.low < 0.0 && 0.0 < ratio.high && ratio.log.abs() < 0.01, "{ratio:?}");
        assert!((pair.in_state(0).unwrap() + 0.28).abs() < 0.03, "{ratio:?}");
    }

    #[test]
    fn any_blocks_of_any_states_have_a_ratio_or_none() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut with_states = 0;
        for _ in 0..20_000 {
            let states = random.random_range(1..4);
            let mut lives: Vec<Vec<(usize, f64)>> = Vec::new();
            for _ in 0..random.random_range(0..7) {
                let mut life = Vec::new();
                for _ in 0..random.random_range(0..4) {
                    life.push((random.random_range(0..states), random.random_range(-0.1..0.1)));
                }
                lives.push(life);
            }
            let mut preferred: Vec<usize> = (0..states).collect();
            preferred.shuffle(&mut random);
            let Some(pair) = Pair::of(&lives, &preferred) else { continue };
            let Some(ratio) = pair.moderated(&Prior::NONE, Look::Last) else { continue };
            assert!(ratio.low <= ratio.log && ratio.log <= ratio.high, "{lives:?}: {ratio:?}");
            let in_lives = |state: usize| {
                lives.iter().filter(|life| life.iter().any(|(s, _)| *s == state)).count()
            };
            let first = preferred.into_iter().find(|state| in_lives(*state) >= 3);
            let seen_in_several = (0..states).filter(|state| in_lives(*state) > 0).count() > 1;
            assert_eq!(ratio.state, first.filter(|_| seen_in_several), "{lives:?}: {ratio:?}");
            with_states += u32::from(ratio.state.is_some());
            if let Some(of) = ratio.by_state.iter().find(|of| Some(of.state) == ratio.state) {
                assert_eq!((of.log, of.low, of.high), (ratio.log, ratio.low, ratio.high));
            }
        }
        assert!(with_states > 100, "{with_states}");
    }
}
