use super::*;
use crate::{
    clock::{MS, SECOND},
    open_loop::schedule::{Part, Schedule},
};
use std::num::NonZeroU32;

const SEEDS: u64 = 50;

/// Checks 5 s of sends against `asked` arrivals. The sends are scheduled with `scheduled` arrivals, and
/// then shifted by `moved`, or omitted where it returns `None`.
fn check(
    asked: Arrivals,
    scheduled: Arrivals,
    rate: u32,
    seed: u64,
    mut moved: impl FnMut(Nanos) -> Option<Nanos>,
) -> ArrivalCheck {
    let part = Part { thread: 0, threads: 1 };
    let some = NonZeroU32::new(rate).unwrap();
    let mut schedule = Schedule::new(scheduled, some, part, seed, 0);
    let mut seen = Seen::new(asked, rate, 1);
    seen.window_opens(SECOND, 5 * SECOND);
    while schedule.first() < 5 * SECOND {
        if let Some(at) = moved(schedule.take()) {
            seen.arrived(SECOND + at);
        }
    }
    Asked::new(asked, rate, 1).check(&seen.seen(), (5 * SECOND, 5 * SECOND))
}

#[test]
fn poisson_arrivals_pass_with_nearly_all_seeds() {
    for rate in [20, 1_000, 20_000] {
        let kept = |seed| check(Arrivals::Poisson, Arrivals::Poisson, rate, seed, Some).kept;
        let seeds = if rate > 10_000 { SEEDS / 10 } else { SEEDS };
        let kept = (0..seeds).filter(|seed| kept(*seed)).count() as u64;
        assert!(kept >= seeds - seeds / 50, "{kept} of {seeds} at {rate}/s");
    }
}

#[test]
fn constant_and_poisson_arrivals_are_distinguished() {
    for rate in [20, 1_000, 20_000, 200_000] {
        let even = check(Arrivals::Constant, Arrivals::Constant, rate, 1, Some);
        assert!(even.kept && even.distance == 0.0, "{even:?}");
        let even = check(Arrivals::Poisson, Arrivals::Constant, rate, 1, Some);
        assert!(!even.kept && even.distance > 0.4, "{even:?}");
        let uneven = check(Arrivals::Constant, Arrivals::Poisson, rate, 1, Some);
        assert!(!uneven.kept && uneven.distance > 0.1, "{uneven:?}");
    }
}

#[test]
fn bursts_are_found() {
    // Requests are sent in bursts, every 5 ms.
    let bursty = |at: Nanos| Some(at.next_multiple_of(5 * MS));
    for asked in Arrivals::ALL {
        let found = check(asked, asked, 20_000, 1, bursty);
        assert!(!found.kept && found.distance > 0.5, "{found:?}");
        assert!((found.rate_per_s / 20_000.0 - 1.0).abs() < 0.02, "{found:?}");
    }
}

#[test]
fn a_generator_that_stalls_and_skips_due_requests_is_found() {
    // For 100 ms of every second nothing is sent, and it is not made up for: coordinated omission.
    let forgets = |at: Nanos| (at % SECOND >= 100 * MS).then_some(at);
    for asked in Arrivals::ALL {
        let found = check(asked, asked, 20_000, 1, forgets);
        assert!(!found.kept && (found.rate_per_s / 18_000.0 - 1.0).abs() < 0.02, "{found:?}");
    }
}

#[test]
fn a_rate_that_wanders_is_found() {
    // The rate of the first half of the window is a fifth higher than that of the second.
    let half = 5 * SECOND / 2;
    let wanders = |at: Nanos| {
        Some(if at < half { at * 10 / 11 } else { half * 10 / 11 + (at - half) * 12 / 11 })
    };
    let found = check(Arrivals::Poisson, Arrivals::Poisson, 20_000, 1, wanders);
    assert!(!found.kept && found.unsteadiness > 0.08, "{found:?}");
}

#[test]
fn correlated_strides_are_found() {
    // Long and short strides alternate in runs of twenty gaps.
    let mut at = 0;
    let mut i = 0;
    let mut last = 0;
    let runs = |due: Nanos| {
        let gap = due - std::mem::replace(&mut last, due);
        i += 1;
        at += if i / 20 % 2 == 0 { gap * 16 / 10 } else { gap * 4 / 10 };
        Some(at)
    };
    let found = check(Arrivals::Poisson, Arrivals::Poisson, 1_000, 1, runs);
    assert!(!found.kept && found.lag1 > 0.15, "{found:?}");
}

#[test]
fn delays_by_writes_are_permitted() {
    // A write takes 8 µs, and delays requests that are due meanwhile.
    for arrivals in Arrivals::ALL {
        let mut free = 0;
        let writes = |at: Nanos| {
            let at = at.max(free);
            free = at + 8_000;
            Some(at)
        };
        let found = check(arrivals, arrivals, 20_000, 1, writes);
        assert!(found.kept, "{found:?}");
    }
}

#[test]
fn threads_are_checked_together() {
    for (arrivals, rate) in [(Arrivals::Poisson, 20_000), (Arrivals::Constant, 1_000)] {
        for threads in [1, 4, 9] {
            let mut all: Option<ArrivalsSeen> = None;
            for thread in 0..threads {
                let part = Part { thread, threads };
                let some = NonZeroU32::new(rate).unwrap();
                let mut schedule = Schedule::new(arrivals, some, part, 5, 0);
                let mut seen = Seen::new(arrivals, rate, threads);
                seen.window_opens(0, SECOND);
                while schedule.first() < SECOND {
                    seen.arrived(schedule.take());
                }
                match &mut all {
                    Some(all) => all.add(&seen.seen()).unwrap(),
                    None => all = Some(seen.seen()),
                }
            }
            let asked = Asked::new(arrivals, rate, threads);
            let check = asked.check(&all.unwrap(), (SECOND, SECOND));
            assert!(check.kept, "{threads} threads: {check:?}");
            let off = check.rate_per_s / f64::from(rate) - 1.0;
            assert!(off.abs() < 0.03, "{threads} threads: {check:?}");
        }
    }
}

#[test]
fn a_check_without_arrivals_passes() {
    let seen = Seen::new(Arrivals::Poisson, 1, 1).seen();
    let check = Asked::new(Arrivals::Poisson, 1, 1).check(&seen, (SECOND, SECOND));
    assert_eq!((check.gaps, check.distance, check.lag1, check.kept), (0, 0.0, 0.0, true));
}

#[test]
fn the_erlang_distribution_is_right_at_known_points() {
    // Medians and tails as tabulated (χ² with 2k degrees of freedom, halved).
    for (k, x, below) in
        [(1, std::f64::consts::LN_2, 0.5), (5, 4.670_91, 0.5), (10, 15.705_2, 0.95)]
    {
        assert!((erlang(k, x) - below).abs() < 1e-4, "{k} {x}: {}", erlang(k, x));
        assert!((erlang_by_logarithms(k, x) - below).abs() < 1e-4, "{k} {x}");
    }
    // The median of a sum of many is 1/3 below its mean (Chen & Rubin 1986).
    assert!((erlang(3_000, 3_000.0 - 1.0 / 3.0) - 0.5).abs() < 1e-4);
    assert_eq!(erlang(500, 1e6), 1.0);
    assert_eq!(erlang(500, 0.0), 0.0);
}
