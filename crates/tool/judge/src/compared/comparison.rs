//! How one contender compares with another at a load: from slices of a duel, or from rounds.

use crate::{
    compared::lives::Duel,
    duel::{Ratio, lives_needed},
    statistics::{Difference, Needed, rounds_needed},
};
use regatta_record::Estimate;

/// A ratio of two contenders. Arguments and results in `log` are natural logarithms.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// Of rounds: Student's t on paired log-ratios, or Welch's on two results. Valid for one look.
    Rounds(Difference),
    /// Of slices in lives. Before the end of a race it is valid however often one looks.
    Duel(Box<Ratio>),
}

impl Comparison {
    /// Log-ratios of rounds, one per pass. `None` with fewer than 2.
    pub fn paired(log_ratios: &[f64]) -> Option<Comparison> {
        Difference::paired(log_ratios).map(Comparison::Rounds)
    }

    /// The ratio of contender `new` over contender `old` in a duel, by their indices. `None` if they have
    /// fewer than 3 lives in common.
    pub fn of_slices(duel: &Duel, new: usize, old: usize) -> Option<Comparison> {
        Some(Comparison::Duel(Box::new(duel.ratio(old, new)?)))
    }

    /// This ratio over another one from an independent result, with Welch's interval, for one look.
    pub fn over(&self, other: &Comparison) -> Comparison {
        Comparison::Rounds(self.difference().minus(&other.difference()))
    }

    /// The mean log-ratio.
    pub fn log(&self) -> f64 {
        match self {
            Comparison::Rounds(difference) => difference.mean,
            Comparison::Duel(ratio) => ratio.log,
        }
    }

    /// Half-width of the 95% interval of the log-ratio. Infinite if there are too few lives.
    pub fn half_width(&self) -> f64 {
        match self {
            Comparison::Rounds(difference) => difference.half_width(),
            Comparison::Duel(ratio) => ratio.half_width(),
        }
    }

    /// The same if the race ends now.
    pub fn half_width_at_end(&self) -> f64 {
        match self {
            Comparison::Rounds(difference) => difference.half_width(),
            Comparison::Duel(ratio) => ratio.half_width_at_end(),
        }
    }

    /// The ratio with its 95% interval.
    pub fn ratio(&self) -> Estimate {
        let (log, half) = (self.log(), self.half_width());
        let [mean, low, high] = [log, log - half, log + half].map(f64::exp);
        Estimate { mean, low, high }
    }

    /// Lower end of the one-sided 95% interval of the log-ratio.
    pub fn at_least(&self) -> f64 {
        match self {
            Comparison::Rounds(difference) => difference.mean - difference.one_sided(),
            Comparison::Duel(ratio) => ratio.at_least(),
        }
    }

    /// Upper end of the one-sided 95% interval of the log-ratio.
    pub fn at_most(&self) -> f64 {
        2.0 * self.log() - self.at_least()
    }

    /// Two-sided p-value of "equal".
    pub fn p(&self) -> f64 {
        match self {
            Comparison::Rounds(difference) => difference.p_differs(),
            Comparison::Duel(ratio) => ratio.p,
        }
    }

    /// One-sided p-value of "the log-ratio is `limit` or less".
    pub fn p_above(&self, limit: f64) -> f64 {
        match self {
            Comparison::Rounds(difference) => difference.p_above(limit),
            Comparison::Duel(ratio) => ratio.p_above(limit),
        }
    }

    /// Further starts until the 95% interval, if the race then ends, has a half-width of `half_width`, a logarithm. `None` if no
    /// number of starts is enough.
    pub fn further_starts(&self, half_width: f64) -> Option<Needed> {
        if half_width <= 0.0 {
            return None;
        }
        match self {
            Comparison::Rounds(difference) => {
                let Needed { likely, at_most } = rounds_needed(difference, half_width);
                let further = |total: u32| total.saturating_sub(difference.rounds);
                Some(Needed { likely: further(likely), at_most: further(at_most) })
            }
            Comparison::Duel(ratio) => lives_needed(ratio, half_width.exp_m1()),
        }
    }

    /// Further starts that decide, in nine cases of ten, on which side of the nearest of `limits` the
    /// log-ratio lies, if its mean and variance are as observed: so many that the distance is 1.65 times
    /// the half-width, which is `(z(0.975) + z(0.9))/z(0.975)` (Cochran, *Sampling Techniques*, 1977,
    /// section 4.6). At least 1.
    pub fn starts_to_decide(&self, distances: impl IntoIterator<Item = f64>) -> Option<u32> {
        const BEYOND: f64 = (1.960 + 1.282) / 1.960;
        let needed = |distance: f64| Some(self.further_starts(distance / BEYOND)?.likely.max(1));
        distances.into_iter().filter_map(needed).min()
    }

    fn difference(&self) -> Difference {
        match self {
            Comparison::Rounds(difference) => *difference,
            Comparison::Duel(ratio) => {
                let Ratio { log: mean, error, freedom, lives: rounds, .. } = **ratio;
                Difference { mean, error, freedom, rounds }
            }
        }
    }
}
