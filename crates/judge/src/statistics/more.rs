//! How many rounds would separate two contenders, and when no number of rounds would.

use super::{CONFIDENCE, Difference, holm, mean, noise_floor, p_value};
use statrs::distribution::{ContinuousCDF, Normal};

/// The noise floor in two parts, as logarithms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Floor {
    /// The part that more rounds do not reduce: the twin's mean offset, if significant; at most the
    /// whole floor.
    pub lasting: f64,
    /// The part that decreases with the square root of the number of rounds.
    pub passing: f64,
}

impl Floor {
    /// Splits the noise floor, from the log-ratios of the twin to its original at each load; both
    /// parts are 0 without a twin, or if no load has 2 pairs. An offset is lasting if it is significant
    /// by Student's test with Holm's correction over the loads; of several such loads the largest offset
    /// counts.
    pub fn of(log_ratios_by_load: &[Vec<f64>]) -> Floor {
        let Some(floor) = noise_floor(log_ratios_by_load) else { return Floor::default() };
        let p_values: Vec<f64> =
            log_ratios_by_load.iter().map(|d| p_value(d).unwrap_or(1.0)).collect();
        let differs = holm(&p_values, 1.0 - CONFIDENCE);
        let offsets = log_ratios_by_load.iter().zip(differs).filter(|(_, differs)| *differs);
        let offsets = offsets.filter_map(|(d, _)| Some(mean(d)?.abs()));
        let lasting = offsets.fold(0.0, f64::max).min(floor.ln_1p());
        Floor { lasting, passing: floor.ln_1p() - lasting }
    }

    /// The number of rounds that make an undecided ratio either a tie (within `tie`, a fraction) or
    /// a difference beyond the floor, with a probability of 90%, if its mean and variance are as
    /// observed: `n·((z₀.₉₇₅ + z₀.₉₀)·e + f)²/d²` with the standard error `e` of the `n` rounds so
    /// far, the distance `d` of mean and limit, and the part `f` of the limit that decreases too
    /// (Cochran, *Sampling Techniques*, 1977, section 4.6). The smaller of the two numbers counts.
    /// `None` if neither can be reached: the mean lies within the lasting part of the floor and
    /// beyond a tie, or more than [`Difference::MOST_ROUNDS`] would be needed; and with fewer than 2
    /// rounds.
    pub fn rounds_to_decide(&self, log_ratios: &[f64], tie: f64) -> Option<u32> {
        let mean = mean(log_ratios)?.abs();
        let (error, rounds) = (Difference::paired(log_ratios)?.error(), log_ratios.len());
        let normal = Normal::standard();
        let quantiles = normal.inverse_cdf(0.5 + CONFIDENCE / 2.0) + normal.inverse_cdf(0.9);
        let needed = |distance: f64, shrinking: f64| {
            let times = ((quantiles * error + shrinking) / distance).powi(2);
            let needed = (rounds as f64 * times).ceil();
            let may = distance > 0.0 && needed <= f64::from(Difference::MOST_ROUNDS);
            // The rounds so far did not decide.
            may.then_some((needed as u32).max(rounds as u32 + 1))
        };
        let differs = needed(mean - self.lasting, self.passing);
        let tied = needed(tie.ln_1p() - mean, 0.0);
        differs.into_iter().chain(tied).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(by: f64, wobble: f64) -> Vec<f64> {
        (0..6).map(|i| by + [wobble, -wobble][i % 2]).collect()
    }

    #[test]
    fn rounds_for_a_difference_beyond_the_lasting_offset() {
        // e = 0.04·√(6/5)/√6 = 0.01789; (1.960 + 1.282)·e = 0.05799; 6·(0.05799/0.05)² = 8.07.
        let floor = Floor { lasting: 0.0, passing: 0.0 };
        assert_eq!(floor.rounds_to_decide(&around(0.05, 0.04), 0.0), Some(9));
        // d = 0.05 − 0.02, and the floor's passing 0.01 decreases too: 6·(0.06799/0.03)² = 30.8.
        let floor = Floor { lasting: 0.02, passing: 0.01 };
        assert_eq!(floor.rounds_to_decide(&around(0.05, 0.04), 0.0), Some(31));
    }

    #[test]
    fn within_a_lasting_offset_no_number_of_rounds_decides() {
        let floor = Floor { lasting: 0.06, passing: 0.01 };
        assert_eq!(floor.rounds_to_decide(&around(0.05, 0.04), 0.02), None);
        // A tie does not depend on the floor: 6·(0.05799/0.0198)² = 51.5.
        assert_eq!(floor.rounds_to_decide(&around(0.0, 0.04), 0.02), Some(52));
        assert_eq!(floor.rounds_to_decide(&around(0.0, 4.0), 0.02), None, "too many");
        assert_eq!(floor.rounds_to_decide(&[0.1], 0.02), None);
    }

    #[test]
    fn an_offset_is_lasting_if_it_is_significant() {
        let chance = Floor::of(&[around(0.001, 0.05)]);
        assert!(chance.lasting == 0.0 && chance.passing > 0.04, "{chance:?}");
        let lasts = Floor::of(&[around(0.06, 0.01), around(0.0, 0.01)]);
        assert!((lasts.lasting - 0.06).abs() < 1e-9 || lasts.passing == 0.0, "{lasts:?}");
        assert_eq!(Floor::of(&[]), Floor::default());
    }
}
