use super::*;
use rand::{Rng, SeedableRng, rngs::StdRng};

const MS: u64 = 1_000_000;

/// Slices of 100 ms at 10,000 requests per second, whose costs in nanoseconds `cost` tells by the second,
/// with normal noise of so many percent.
fn slices(seed: u64, noise: f64, cost: impl Fn(f64) -> f64) -> impl Iterator<Item = WarmUpSlice> {
    let mut random = StdRng::seed_from_u64(seed);
    (0..).map(move |i| {
        let [a, b]: [f64; 2] = random.random();
        let normal = (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        let cpu = cost(f64::from(i) / 10.0) * (noise * normal).exp() * 1_000.0;
        WarmUpSlice { ns: 100 * MS, requests: 1_000, cpu_ns: Some(cpu as u64) }
    })
}

/// Observes for 30 s at most: what was seen, and the seconds that it took.
fn observe(slices: impl Iterator<Item = WarmUpSlice>) -> (Settling, f64) {
    let mut settler = Settler::new(Duration::from_secs(30));
    for slice in slices.take(300) {
        if settler.add(slice) {
            break;
        }
    }
    let settling = settler.settling().unwrap();
    (settling, settling.observed_ns as f64 / 1e9)
}

fn after_s(settling: &Settling) -> f64 {
    settling.after_ns as f64 / 1e9
}

#[test]
fn a_server_without_a_warm_up_is_flat_and_needs_a_third_of_the_time() {
    let mut flat = 0;
    for seed in 0..200 {
        let (seen, took) = observe(slices(seed, 0.03, |_| 6_000.0));
        flat += u32::from(seen.class == WarmUpClass::Flat && seen.after_ns == 0 && took < 10.1);
        assert!((seen.warm_ns_per_request / 6_000.0 - 1.0).abs() < 0.02, "{seen:?}");
    }
    assert!(flat >= 198, "{flat} of 200");
}

/// The seconds of netty as a review measured them: 82, 36, 12, 9.5, 9.3, 9.2 µs.
#[test]
fn a_compiler_at_work_is_seen_until_it_is_done() {
    let cost = |s: f64| match s as u32 {
        0 => 82_000.0,
        1 => 36_000.0,
        2 => 12_000.0,
        3 => 9_700.0,
        _ => 9_200.0,
    };
    for seed in 0..50 {
        let (seen, took) = observe(slices(seed, 0.03, cost));
        assert_eq!(seen.class, WarmUpClass::WarmsUp, "{seen:?}");
        assert!((2.9..=4.8).contains(&after_s(&seen)), "{seen:?}");
        assert!((4.0 * after_s(&seen) - 0.1..20.1).contains(&took), "{took}: {seen:?}");
        assert!((seen.cold_ns_per_request / 82_000.0 - 1.0).abs() < 0.05, "{seen:?}");
        assert!((seen.warm_ns_per_request / 9_200.0 - 1.0).abs() < 0.03, "{seen:?}");
        assert_eq!(seen.after_requests, seen.after_ns / (100 * MS) * 1_000);
    }
}

/// The seconds of helidon on one CPU as they were measured: from 7 s to 14 s it seems to be done.
#[test]
fn a_plateau_between_two_stages_of_a_compiler_is_not_the_end() {
    let cost = |s: f64| match s {
        ..2.6 => 121_600.0,
        ..4.9 => 61_100.0,
        ..7.1 => 32_400.0,
        ..14.5 => 24_500.0,
        _ => 11_000.0,
    };
    for seed in 0..50 {
        let (seen, took) = observe(slices(seed, 0.05, cost));
        assert_eq!(seen.class, WarmUpClass::WarmsUp, "{seen:?}");
        assert!((14.3..=14.9).contains(&after_s(&seen)), "{seen:?}");
        assert!((seen.warm_ns_per_request / 11_000.0 - 1.0).abs() < 0.03, "{seen:?}");
        assert!(took > 29.9, "{took}");
    }
}

#[test]
fn a_smooth_ramp_is_followed_to_its_foot() {
    for seed in 0..50 {
        let (seen, _) = observe(slices(seed, 0.03, |s| 9_000.0 * (1.0 + 3.0 * (-s / 1.5).exp())));
        assert_eq!(seen.class, WarmUpClass::WarmsUp, "{seen:?}");
        assert!((3.0..9.0).contains(&after_s(&seen)), "{seen:?}");
        assert!((seen.warm_ns_per_request / 9_000.0 - 1.0).abs() < 0.05, "{seen:?}");
    }
}

#[test]
fn who_becomes_dearer_after_six_seconds_slows_down() {
    for seed in 0..50 {
        let cost = |s| if s < 6.0 { 6_000.0 } else { 7_800.0 };
        let (seen, took) = observe(slices(seed, 0.03, cost));
        assert_eq!(seen.class, WarmUpClass::SlowsDown, "{seen:?}");
        assert!((5.8..=6.2).contains(&after_s(&seen)), "{seen:?}");
        assert!((23.0..25.1).contains(&took), "{took}: {seen:?}");
    }
}

#[test]
fn who_changes_again_and_again_never_settles() {
    for seed in 0..20 {
        let cost = |s: f64| 6_000.0 * (1.0 + 0.15 * (s / 3.0).floor());
        let (seen, took) = observe(slices(seed, 0.03, cost));
        assert_eq!((seen.class, took), (WarmUpClass::NeverSettles, 30.0), "{seen:?}");
    }
}

/// A restless machine, for two seconds in the middle.
#[test]
fn who_comes_back_to_where_it_began_was_disturbed_and_is_flat() {
    let cost = |s| if (2.0..4.0).contains(&s) { 7_500.0 } else { 6_000.0 };
    let (seen, _) = observe(slices(1, 0.03, cost));
    assert_eq!((seen.class, seen.after_ns), (WarmUpClass::Flat, 0), "{seen:?}");
}

#[test]
fn one_dear_slice_is_no_change() {
    let with_pauses = slices(3, 0.02, |_| 6_000.0).enumerate().map(|(i, slice)| match i % 25 {
        7 => WarmUpSlice { cpu_ns: slice.cpu_ns.map(|ns| 3 * ns), ..slice },
        _ => slice,
    });
    let (seen, took) = observe(with_pauses);
    assert_eq!((seen.class, seen.after_ns), (WarmUpClass::Flat, 0), "{seen:?}");
    assert!(took < 10.1);
}

/// One whose slices scatter by a quarter, as those of a starved machine do, is called nothing for as long
/// as a change could hide.
#[test]
fn what_scatters_too_much_is_not_called_steady_before_it_can_be() {
    let (seen, took) = observe(slices(5, 0.3, |_| 6_000.0));
    assert_eq!((seen.class, took), (WarmUpClass::NeverSettles, 30.0), "{seen:?}");
    let (seen, took) = observe(slices(5, 0.12, |_| 6_000.0));
    assert!(seen.class == WarmUpClass::Flat && took >= 10.0, "{seen:?}");
}

#[test]
fn what_only_one_of_two_observations_shows_is_the_machines() {
    let seen = |class, after_ns| Settling {
        class,
        observed_ns: 1,
        after_ns,
        after_requests: after_ns,
        cold_ns_per_request: 1.0,
        warm_ns_per_request: 1.0,
        from_localhost: None,
    };
    let (flat, warms) = (seen(WarmUpClass::Flat, 0), seen(WarmUpClass::WarmsUp, 3));
    assert_eq!(agreed(warms, flat), flat);
    assert_eq!(agreed(flat, warms), flat);
    assert_eq!(agreed(warms, seen(WarmUpClass::WarmsUp, 4)).after_ns, 4);
    assert_eq!(agreed(seen(WarmUpClass::WarmsUp, 5), warms).after_ns, 5);
    let slows = seen(WarmUpClass::SlowsDown, 2);
    for both in [agreed(warms, slows), agreed(slows, warms)] {
        assert_eq!((both.class, both.after_ns, both.after_requests), (WarmUpClass::Flat, 0, 0));
    }
}

#[test]
fn who_never_settles_and_goes_up_once_and_down_once_has_no_direction() {
    let seen = |cold, warm| Settling {
        class: WarmUpClass::NeverSettles,
        observed_ns: 30,
        after_ns: 29,
        after_requests: 29,
        cold_ns_per_request: cold,
        warm_ns_per_request: warm,
        from_localhost: None,
    };
    let both = agreed(seen(4_500.0, 7_500.0), seen(7_500.0, 4_500.0));
    assert_eq!((both.class, both.has_direction()), (WarmUpClass::NeverSettles, false), "{both:?}");
    assert!((both.warm_ns_per_request - 5_809.5).abs() < 0.1, "{both:?}");
    let falls = agreed(seen(90_000.0, 10_000.0), seen(100_000.0, 9_000.0));
    assert!(falls.has_direction(), "{falls:?}");
}

/// What a start of the quick race showed of threads: 9.30 µs in the first second, 9.44 µs later.
#[test]
fn who_differs_for_less_than_a_second_and_by_less_than_what_matters_is_flat() {
    for seed in 0..50 {
        let cost = |s| if s < 0.5 { 9_150.0 } else { 9_440.0 };
        let (seen, took) = observe(slices(seed, 0.01, cost));
        assert_eq!((seen.class, seen.after_ns), (WarmUpClass::Flat, 0), "{seen:?}");
        assert!(took < 10.1, "{took}");
        let cost = |s| if s < 0.5 { 12_000.0 } else { 9_440.0 };
        let (seen, _) = observe(slices(seed, 0.01, cost));
        assert_eq!(seen.class, WarmUpClass::WarmsUp, "{seen:?}");
    }
}

#[test]
fn slices_that_cannot_be_read_cost_nothing() {
    let slice = |requests, cpu_ns| WarmUpSlice { ns: 100 * MS, requests, cpu_ns };
    let all = [
        slice(50, None),
        slice(0, Some(5)),
        slice(10, Some(45)),
        slice(10, Some(60)),
        slice(9, None),
        slice(10, Some(70)),
    ];
    let seen: Vec<_> =
        points(&all).iter().map(|p| (p.began, p.before, p.requests, p.cpu_ns)).collect();
    let expected = [(100 * MS, 50, 10, 50), (300 * MS, 60, 10, 60), (500 * MS, 79, 10, 70)];
    assert_eq!(seen, expected);
    let mut settler = Settler::new(Duration::from_secs(1));
    assert!(!(0..20).any(|_| settler.add(slice(10, None))));
    assert_eq!(settler.settling(), None);
}
