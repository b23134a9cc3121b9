//! The time of a pilot pass.

use regatta_record::Asked;
use std::time::Duration;

/// Window of a pilot round, in seconds.
pub(crate) const WINDOW_S: f64 = 0.3;
/// The least time after which a rate of few requests counts as steady, in seconds. It is no more than any
/// [`Asked::longest_pilot_s`].
pub(super) const OF_FEW_S: f64 = 6.0;
/// The longest warm-up of a round for which less time is left: the first slices of 100 ms show a rate. The total may
/// be exceeded by as much for each round.
const LEAST_S: f64 = 0.3;
/// What starting and stopping a contender takes, if it is quick, in seconds.
const BESIDE_S: f64 = 0.3;
/// What they are charged at most. A slow contender takes that from the time of the rounds after it, but one whose start
/// hangs must not take all of it, and so make the intervals of all others wider.
const MOST_BESIDE_S: f64 = 2.0;
/// The warm-up of a contender whose rate is steady at once takes this part of the longest one, but no more than so
/// many seconds ([`regatta_judge::Settler::of_rate`]).
const STEADY: (f64, f64) = (1.0 / 3.0, 2.0);
/// And no less than so many: it is looked at after five slices for the first time.
const FIRST_LOOK_S: f64 = 0.5;

/// What is left of the time of a pilot pass. It is divided equally among the rounds that are left, so what one round
/// does not need, later ones have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    longest_s: f64,
    left_s: f64,
    rounds: u32,
}

impl Budget {
    /// The time of so many rounds.
    pub fn of(asked: &Asked, rounds: u32) -> Budget {
        Budget { longest_s: asked.longest_pilot_s(), left_s: asked.time_for_pilots_s(), rounds }
    }

    /// The longest warm-up of the next round.
    pub fn longest_warm_up(&self) -> Duration {
        let round_s = self.left_s / f64::from(self.rounds.max(1));
        let warm_up_s = (round_s - WINDOW_S - BESIDE_S).clamp(LEAST_S, self.longest_s);
        Duration::from_secs_f64(warm_up_s)
    }

    /// Takes the time of a round that is over. Returns what it is charged.
    pub fn spend(&mut self, took: Duration) -> Duration {
        let most = self.longest_warm_up() + Duration::from_secs_f64(WINDOW_S + MOST_BESIDE_S);
        let charged = took.min(most);
        self.left_s = (self.left_s - charged.as_secs_f64()).max(0.0);
        self.rounds = self.rounds.saturating_sub(1);
        charged
    }

    /// The usual minimum and maximum of the time of all rounds, in seconds, if each takes so long in addition to
    /// warm-up and window.
    pub fn likely_s(&self, beside_s: [f64; 2]) -> [f64; 2] {
        let ((part, at_most), longest_s) = (STEADY, self.longest_warm_up().as_secs_f64());
        let steady_s = (longest_s * part).min(at_most).max(FIRST_LOOK_S).min(longest_s);
        let all = |warm_up_s: f64, beside_s: f64| {
            f64::from(self.rounds) * (warm_up_s + WINDOW_S + beside_s)
        };
        let [least, most] = beside_s;
        let most_s = all(self.longest_s, most).min(self.left_s.max(all(LEAST_S, most)));
        [all(steady_s, least).min(most_s), most_s]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn asked(settle_s: f64, time_s: Option<f64>) -> Asked {
        Asked { settle_s, time_s, ..fixtures::asked() }
    }

    /// The time of so many rounds, each of which takes `took` of its longest warm-up, and `beside_s` in addition.
    fn total_s(asked: &Asked, rounds: u32, took: f64, beside_s: f64) -> f64 {
        let mut budget = Budget::of(asked, rounds);
        let mut round = || {
            let longest_s = budget.longest_warm_up().as_secs_f64();
            let took_s = longest_s * took + WINDOW_S + beside_s;
            budget.spend(Duration::from_secs_f64(took_s));
            took_s
        };
        (0..rounds).map(|_| round()).sum()
    }

    #[test]
    fn the_pilot_of_many_contenders_takes_no_more_than_its_part_of_the_time() {
        let quick = asked(1.5, Some(60.0));
        for rounds in [1, 2, 3, 5, 10, 16] {
            let all_s = total_s(&quick, rounds, 1.0, 0.3);
            assert!(all_s <= 15.01, "{rounds}: {all_s}");
        }
        let all_s = total_s(&quick, 10, 1.0, 0.9);
        assert!(all_s <= 15.0 + 10.0 * LEAST_S, "slow starts: {all_s}");
        let all_s = total_s(&quick, 40, 1.0, 0.3);
        assert!((all_s - 40.0 * 0.9).abs() < 0.01, "the least of each: {all_s}");
        // 20 contenders under 5 loads, without a limit, and with one that is longer than needed.
        for time_s in [None, Some(7_200.0)] {
            let all_s = total_s(&asked(30.0, time_s), 100, 1.0, 0.3);
            assert!((299.0..300.01).contains(&all_s), "{all_s}");
        }
    }

    #[test]
    fn a_warm_up_has_what_others_do_not_need() {
        let longest_s = |settle_s, time_s, rounds| {
            Budget::of(&asked(settle_s, time_s), rounds).longest_warm_up().as_secs_f64()
        };
        assert_eq!([0.0, 1.5, 9.0, 30.0].map(|s| longest_s(s, None, 4)), [6.0, 6.0, 9.0, 20.0]);
        assert!((longest_s(30.0, Some(60.0), 10) - 0.9).abs() < 1e-9);
        let mut budget = Budget::of(&asked(1.5, Some(60.0)), 10);
        let is_charged = |budget: &mut Budget, took_s: f64, charged_s: f64| {
            let charged = budget.spend(Duration::from_secs_f64(took_s));
            (charged.as_secs_f64() - charged_s).abs() < 1e-8
        };
        assert!((0..8).all(|_| is_charged(&mut budget, 0.9, 0.9)));
        assert!((budget.longest_warm_up().as_secs_f64() - 3.3).abs() < 1e-9, "{budget:?}");
        assert!(is_charged(&mut budget, 5.6, 5.6), "its longest warm-up, the window and 2 s");
        assert!(is_charged(&mut budget, 5.6, 3.9), "a warm-up of 1.6 s was left");
        assert!(is_charged(&mut budget, 5.6, LEAST_S + 2.3));
        assert_eq!(budget.longest_warm_up(), Duration::from_secs_f64(LEAST_S), "never a panic");
    }

    #[test]
    fn a_start_that_hangs_takes_no_time_of_others() {
        let mut budget = Budget::of(&asked(1.5, Some(60.0)), 10);
        let charged = budget.spend(Duration::from_secs(30));
        assert!(
            (charged.as_secs_f64() - 3.2).abs() < 1e-9,
            "0.9 s, the window and 2 s: {charged:?}"
        );
        let longest_s = budget.longest_warm_up().as_secs_f64();
        assert!((longest_s - (11.8 / 9.0 - 0.6)).abs() < 1e-9, "{longest_s}");
        assert_eq!(asked(0.0, None).longest_pilot_s(), OF_FEW_S);
    }

    #[test]
    fn the_likely_time_is_within_the_budget() {
        let likely_s =
            |time_s, rounds| Budget::of(&asked(30.0, time_s), rounds).likely_s([0.3, 2.0]);
        assert_eq!(likely_s(None, 0), [0.0; 2]);
        let [least, most] = likely_s(None, 2);
        assert!((least - 2.0 * 2.6).abs() < 1e-9 && (most - 2.0 * 22.3).abs() < 1e-9);
        assert_eq!(likely_s(None, 40)[1], 300.0);
        let [least, most] = likely_s(Some(60.0), 5);
        assert!((least - 5.0 * 1.4).abs() < 1e-9 && most == 15.0, "{least} {most}");
        assert!((likely_s(Some(60.0), 40)[1] - 40.0 * 2.6).abs() < 1e-9, "the least of each");
    }
}
