//! The rate that a pilot round found, and what makes it doubtful.

use crate::driving::{pilot::budget::OF_FEW_S, warm::LEAST_REQUESTS};
use regatta_judge::Settler;
use regatta_record::{Outcome, Round, WarmUpClass};
use std::time::Duration;

/// The rates of warm-up and window are equal if they differ by no more than this fraction and the spread that chance
/// explains.
const EQUAL: f64 = 0.10;
/// So many standard deviations of the rate in as many slices of the warm-up as the window has are explained by chance.
const DEVIATIONS: f64 = 3.0;
/// Length of a slice of the warm-up, in seconds.
const SLICE_S: f64 = 0.1;

/// Returns the observation of a warm-up that is at most so long.
pub(crate) fn settler(longest: Duration) -> Settler {
    Settler::of_rate(longest, LEAST_REQUESTS, Duration::from_secs_f64(OF_FEW_S))
}

/// What a pilot round found. See [`regatta_record::PilotRate`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    pub rate_per_s: f64,
    pub window_rate_per_s: Option<f64>,
    pub unsteady_after_s: Option<f64>,
}

impl Pace {
    /// The pace of a round whose warm-up was at most so long. It is that of the steady part of the warm-up, because
    /// the window is short: a pause of the contender may fill it.
    pub fn of(settler: &Settler, longest: Duration, round: &Round) -> Pace {
        let Some(window_per_s) = window_per_s(round) else {
            return Pace { rate_per_s: 0.0, window_rate_per_s: None, unsteady_after_s: None };
        };
        let settling = settler.settling();
        // Few replies, as in waves, are in the window by chance.
        let of_all = || {
            let window_s = round.window_ns as f64 / 1e9;
            (settler.requests() + round.requests) as f64 / (settler.seen().as_secs_f64() + window_s)
        };
        let rate_per_s = settling.map_or_else(of_all, |one| 1e9 / one.warm_ns_per_request);
        let is_steady = settling.is_some_and(|one| one.class != WarmUpClass::NeverSettles)
            && !settler.has_trend();
        let has_enough = settler.requests() >= LEAST_REQUESTS || longest.as_secs_f64() >= OF_FEW_S;
        let is_known = is_steady && has_enough;
        let equal = EQUAL + chance(settler, round, rate_per_s);
        let differs = (window_per_s - rate_per_s).abs() > equal * rate_per_s;
        Pace {
            rate_per_s,
            window_rate_per_s: differs.then_some(window_per_s),
            unsteady_after_s: (!is_known && rate_per_s > 0.0).then(|| settler.seen().as_secs_f64()),
        }
    }
}

/// Requests per second in the window; `None` if the round did not finish.
fn window_per_s(round: &Round) -> Option<f64> {
    (round.outcome == Outcome::Finished && round.window_ns > 0)
        .then(|| round.requests as f64 * 1e9 / round.window_ns as f64)
}

/// By what fraction a window may differ from a steady rate for nothing: slices of the warm-up vary, and the replies to
/// all that is in flight may come at once, right before the window or in it.
fn chance(settler: &Settler, round: &Round, rate_per_s: f64) -> f64 {
    let window_s = round.window_ns as f64 / 1e9;
    let in_flight = f64::from(round.load.connections) * f64::from(round.load.pipeline);
    let deviation = settler.scatter() / (window_s / SLICE_S).max(1.0).sqrt();
    DEVIATIONS * deviation + in_flight / (rate_per_s * window_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driving::warm::WarmUpObserver;
    use rand::{Rng, SeedableRng, rngs::SmallRng};
    use regatta_load::WarmUpProgress;
    use regatta_record::LoadShape;

    /// Requests from one second to another at a rate by the seconds since the start.
    fn requests(rate: &dyn Fn(f64) -> f64, from: f64, to: f64) -> f64 {
        const STEPS: u32 = 100;
        let step = (to - from) / f64::from(STEPS);
        (0..STEPS).map(|nth| rate(from + (f64::from(nth) + 0.5) * step) * step).sum()
    }

    /// Runs a round of a contender that answers at this rate, with a warm-up of at most so many seconds. Returns when
    /// it is measured, in seconds, and what is found.
    fn pace(longest_s: f64, rate: &dyn Fn(f64) -> f64) -> (f64, Pace) {
        pace_of(longest_s, 64, &mut |from, to| requests(rate, from, to))
    }

    /// The same on so many connections, for one that answers so many requests from one second to another.
    fn pace_of(
        longest_s: f64,
        connections: u32,
        requests: &mut dyn FnMut(f64, f64) -> f64,
    ) -> (f64, Pace) {
        let longest = Duration::from_secs_f64(longest_s);
        let mut settler = settler(longest);
        let mut observer = WarmUpObserver::of_pace(&mut settler);
        let (mut seconds, mut replies) = (0.0, 0.0);
        while seconds < longest_s - 1e-6 {
            replies += requests(seconds, seconds + SLICE_S);
            seconds += SLICE_S;
            let lasted = Duration::from_secs_f64(seconds);
            if observer.is_warm(&WarmUpProgress { lasted, replies: replies as u64 }) {
                break;
            }
        }
        let round = Round {
            load: LoadShape::closed(connections, 1),
            requests: requests(seconds, seconds + 0.3) as u64,
            window_ns: 300_000_000,
            ..Round::default()
        };
        (seconds, Pace::of(&settler, longest, &round))
    }

    /// As a program that is compiled while it runs: these rates, each from this second on.
    fn steps(of: &'static [(f64, f64)]) -> impl Fn(f64) -> f64 {
        move |seconds| {
            of.iter().rev().find(|(from, _)| seconds >= *from).map_or(0.0, |(_, rate)| *rate)
        }
    }

    /// 2,600/s at the start, and so many times as much after these seconds.
    fn drifts(times: f64, within_s: f64) -> impl Fn(f64) -> f64 {
        move |seconds| 2_600.0 * times.powf((seconds / within_s).min(1.0))
    }

    fn is_near(rate_per_s: f64, expected: f64) -> bool {
        (rate_per_s / expected - 1.0).abs() < 0.1
    }

    #[test]
    fn a_contender_is_measured_when_its_rate_is_steady() {
        let (after_s, found) = pace(20.0, &|_| 20_000.0);
        let steady =
            Pace { rate_per_s: found.rate_per_s, window_rate_per_s: None, unsteady_after_s: None };
        assert!((1.9..2.2).contains(&after_s) && found == steady, "{after_s} {found:?}");
        let is_right = |rate: &dyn Fn(f64) -> f64| {
            let (after_s, found) = pace(20.0, rate);
            assert!(is_near(found.rate_per_s, rate(f64::MAX)), "{after_s} {found:?}");
            assert_eq!(
                (found.window_rate_per_s, found.unsteady_after_s),
                (None, None),
                "{after_s}"
            );
        };
        is_right(&steps(&[(0.0, 2_600.0), (1.5, 21_000.0)]));
        for times in [8.0, 1.3, 0.7, 0.1] {
            is_right(&drifts(times, 3.0));
        }
        for slow in [drifts(100.0, 20.0), drifts(0.01, 20.0)] {
            let (_, found) = pace(20.0, &slow);
            assert!(found.unsteady_after_s.is_some_and(|after_s| after_s > 19.9), "{found:?}");
        }
    }

    #[test]
    fn a_contender_that_sleeps_in_its_window_has_its_steady_rate_and_a_doubt() {
        let sleeps = steps(&[(0.0, 20_000.0), (2.0, 0.0), (2.4, 20_000.0)]);
        let (after_s, found) = pace(20.0, &sleeps);
        assert!((1.9..2.1).contains(&after_s), "it sleeps in its window: {after_s}");
        assert!(is_near(found.rate_per_s, 20_000.0), "{found:?}");
        assert_eq!((found.window_rate_per_s, found.unsteady_after_s), (Some(0.0), None));
        // Nor does one that hurries then.
        let hurries = steps(&[(0.0, 20_000.0), (2.0, 60_000.0), (2.4, 20_000.0)]);
        let (_, found) = pace(20.0, &hurries);
        assert!(
            is_near(found.rate_per_s, 20_000.0) && found.window_rate_per_s.is_some(),
            "{found:?}"
        );
    }

    #[test]
    fn a_contender_that_warms_for_17_seconds_is_measured_after_that_or_doubted() {
        let (_, found) = pace(20.0, &drifts(8.0, 17.0));
        assert!(is_near(found.rate_per_s, 8.0 * 2_600.0), "{found:?}");
        assert!(found.unsteady_after_s.is_some(), "three seconds are too few: {found:?}");
        let stages = steps(&[(0.0, 2_600.0), (5.0, 12_000.0), (17.0, 21_000.0)]);
        let (_, found) = pace(20.0, &stages);
        assert!(
            is_near(found.rate_per_s, 21_000.0) && found.unsteady_after_s.is_some(),
            "{found:?}"
        );
        // As in the quick race.
        for longest_s in [6.0, 1.2, 0.3] {
            let (_, found) = pace(longest_s, &drifts(8.0, 17.0));
            assert!(found.unsteady_after_s.is_some(), "{longest_s}: {found:?}");
        }
    }

    #[test]
    fn a_slow_drift_is_not_steady_however_many_requests_there_are() {
        for (longest_s, faster) in [(6.0, 1.0), (6.0, 6.0), (20.0, 1.0), (20.0, 6.0)] {
            let rises = drifts(3.0, 17.0);
            let (after_s, found) = pace(longest_s, &|seconds| faster * rises(seconds));
            assert!(after_s > longest_s - 0.2, "{longest_s} {faster}: {after_s} {found:?}");
            assert!(found.unsteady_after_s.is_some(), "{longest_s} {faster}: {found:?}");
        }
    }

    #[test]
    fn a_steady_contender_is_not_doubted_because_its_replies_come_in_waves() {
        // One connection with a reply every 80 ms: three or four in a window. 1,000 connections of which all are
        // answered every 0.7 s: none or all.
        for (connections, every_s) in [(1, 0.08), (64, 0.25), (1_000, 0.7)] {
            for phase in 0..20 {
                let until = |second: f64| ((second / every_s) + f64::from(phase) / 20.0).floor();
                let mut waves = |from, to| f64::from(connections) * (until(to) - until(from));
                let (_, found) = pace_of(6.0, connections, &mut waves);
                assert_eq!(found.window_rate_per_s, None, "{connections} {phase}: {found:?}");
            }
        }
        // Two waves in all, of which the window has one or none.
        for phase in 0..20 {
            let until = |second: f64| (second / 0.4 + 0.01 + f64::from(phase) / 20.0).floor();
            let (_, found) = pace_of(0.5, 64, &mut |from, to| 64.0 * (until(to) - until(from)));
            assert!(is_near(found.rate_per_s, 160.0), "{phase}: {found:?}");
        }
    }

    #[test]
    fn a_steady_contender_is_not_doubted_because_its_rate_varies() {
        let doubts = (0..200).filter(|seed| {
            let mut random = SmallRng::seed_from_u64(*seed);
            // Up to 20% more or less in each slice, so its standard deviation is 12%.
            let mut varies = |from: f64, to: f64| -> f64 {
                let slices = ((to - from) / SLICE_S).round() as u32;
                (0..slices).map(|_| 2_000.0 * random.random_range(0.8..1.2)).sum()
            };
            pace_of(6.0, 1, &mut varies).1.window_rate_per_s.is_some()
        });
        assert_eq!(doubts.count(), 0);
    }

    #[test]
    fn a_cold_plateau_of_few_requests_is_not_steady() {
        let cold = steps(&[(0.0, 2_600.0), (2.5, 21_000.0)]);
        for longest_s in [20.0, 6.0] {
            let (after_s, found) = pace(longest_s, &cold);
            assert!(is_near(found.rate_per_s, 21_000.0), "{after_s} {found:?}");
            assert_eq!(
                (found.window_rate_per_s, found.unsteady_after_s),
                (None, None),
                "{longest_s}"
            );
        }
        // If there is no time for more, it is doubted.
        let (_, found) = pace(2.0, &cold);
        assert!(
            is_near(found.rate_per_s, 2_600.0) && found.unsteady_after_s.is_some(),
            "{found:?}"
        );
        // A slow contender is not, after six seconds.
        let (after_s, found) = pace(20.0, &|_| 500.0);
        assert!(after_s < 7.1 && is_near(found.rate_per_s, 500.0), "{after_s} {found:?}");
        assert_eq!(found.unsteady_after_s, None);
    }

    #[test]
    fn a_round_that_did_not_finish_has_no_rate() {
        let settler = settler(Duration::from_secs(6));
        let of = |round: Round| Pace::of(&settler, Duration::from_secs(6), &round);
        let none = Pace { rate_per_s: 0.0, window_rate_per_s: None, unsteady_after_s: None };
        let outcome = Outcome::Failed { because: "x".into() };
        let window = Round { requests: 600, window_ns: 300_000_000, ..Round::default() };
        assert_eq!(of(Round { outcome, ..window.clone() }), none);
        assert_eq!(of(Round::default()), none);
        let unseen = of(window);
        assert_eq!((unseen.rate_per_s, unseen.unsteady_after_s), (2_000.0, Some(0.0)));
    }
}
