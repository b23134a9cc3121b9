//! The search against simulated servers.

use super::*;
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Searches on a simulated server. Returns the result and all tries.
fn search(
    mut search: Search,
    mut server: impl FnMut(u32) -> Shown,
) -> (Option<Found>, Vec<(u32, Why)>) {
    let mut tries = Vec::new();
    while let Some((level, why)) = search.next() {
        tries.push((level, why));
        search.tell(level, server(level));
    }
    (search.found(), tries)
}

fn passes(passed: bool) -> Shown {
    if passed { Shown::Passed } else { Shown::Failed }
}

/// Passes with a probability that falls from 1 to 0 around `boundary`, over about `4 * width`.
fn noisy(boundary: f64, width: f64, seed: u64) -> impl FnMut(u32) -> Shown {
    let mut random = StdRng::seed_from_u64(seed);
    move |level| {
        let odds = ((boundary - f64::from(level)) / width).exp();
        passes(random.random::<f64>() < odds / (1.0 + odds))
    }
}

#[test]
fn finds_a_sharp_boundary_to_one_part_in_fifty() {
    for boundary in [1, 2, 3, 7, 50, 99, 999, 1_000, 1_001, 4_850, 12_345, 19_999] {
        for (step, rise) in [(1_000, Rise::Equal), (100, Rise::Doubling), (1, Rise::Equal)] {
            let server = |level| passes(level <= boundary);
            let (found, tries) = search(Search::new(step, rise, 20_000), server);
            let found = found.unwrap();
            let Above::Failed(high) = found.above else { panic!("{boundary}: {found:?}") };
            assert!(found.verified && found.best == found.low, "{found:?}");
            assert!(found.low <= boundary && boundary < high, "{boundary}: {found:?}");
            assert!(high - found.low <= (boundary / FINENESS).max(1), "{boundary}: {found:?}");
            assert!(tries.len() <= 50, "{boundary} by {step}: {} tries", tries.len());
        }
    }
}

#[test]
fn levels_rise_by_the_step_then_halve_then_are_verified_from_both_sides() {
    let (found, tries) =
        search(Search::new(1_000, Rise::Equal, 20_000), |level| passes(level <= 2_300));
    let levels: Vec<u32> = tries.iter().map(|(level, _)| *level).collect();
    let bisection = [2_500, 2_250, 2_375, 2_312, 2_281];
    assert_eq!(levels[..3], [1_000, 2_000, 3_000]);
    assert_eq!(levels[3..8], bisection);
    assert_eq!(levels[8..], [2_281, 2_312, 2_281, 2_312, 2_281, 2_312]);
    let why: Vec<Why> = tries.iter().map(|(_, why)| *why).collect();
    assert_eq!([why[2], why[3], why[8]], [Why::StepUp, Why::Bisect, Why::Verify]);
    assert_eq!(found.unwrap().above, Above::Failed(2_312));
}

#[test]
fn the_interval_contains_a_noisy_boundary_and_is_no_wider_than_the_noise() {
    for (width, widest) in [(0.002, 0.04), (0.01, 0.12), (0.03, 0.35)] {
        let (mut covered, mut unfinished, mut widths) = (0, 0, Vec::new());
        for seed in 0..300 {
            let boundary = 4_000.0 + seed as f64 * 7.0;
            let server = noisy(boundary, width * boundary, seed);
            let (found, tries) = search(Search::new(1_000, Rise::Equal, 20_000), server);
            let found = found.unwrap();
            assert!(tries.len() <= MOST_TRIES);
            let Above::Failed(high) = found.above else {
                unfinished += 1;
                continue;
            };
            let (low, high) = (f64::from(found.low), f64::from(high));
            assert!(low <= f64::from(found.best) && f64::from(found.best) < high);
            covered += u32::from(low <= boundary && boundary <= high);
            widths.push((high - low) / boundary);
        }
        widths.sort_by(f64::total_cmp);
        let median = widths[widths.len() / 2];
        println!("noise {width}: covered {covered} of 300, {unfinished} open, width {median}");
        assert!(covered >= 270, "noise {width}: {covered} of 300");
        assert!(unfinished <= 6, "noise {width}: {unfinished}");
        assert!(median <= widest, "noise {width}: median width {median}");
    }
}

#[test]
fn bad_luck_on_the_way_up_does_not_hide_higher_levels() {
    let mut unlucky = [3_000, 2_500, 14_000].to_vec();
    let server = |level| {
        let hit = unlucky.iter().position(|unlucky| *unlucky == level);
        let luck = hit.map(|at| unlucky.remove(at)).is_none();
        passes(luck && level <= 14_500)
    };
    let (found, tries) = search(Search::new(1_000, Rise::Equal, 20_000), server);
    let found = found.unwrap();
    assert!(found.verified && found.low > 14_000, "{found:?} after {tries:?}");
    assert!(matches!(found.above, Above::Failed(14_501..=15_100)), "{found:?}");
}

#[test]
fn without_a_boundary_the_maximum_is_verified_and_reported() {
    let (found, tries) = search(Search::new(1_000, Rise::Equal, 4_500), |_| Shown::Passed);
    assert_eq!(found.unwrap().above, Above::End(4_500));
    assert_eq!((found.unwrap().low, found.unwrap().verified), (4_500, true));
    assert_eq!(tries.len(), 5 + 3, "{tries:?}");
    let far = Search::new(1, Rise::Equal, 1_000_000);
    assert_eq!(search(far, |_| Shown::Passed).0.unwrap().above, Above::End(1_000_000));
}

#[test]
fn a_limit_of_the_machine_ends_the_search() {
    let server = |level| match level {
        ..=2_700 => Shown::Passed,
        _ => Shown::Impossible { possible: 2_700 },
    };
    let (found, tries) = search(Search::new(1_000, Rise::Equal, 20_000), server);
    let expected = Found { best: 2_700, low: 2_700, above: Above::End(2_700), verified: true };
    assert_eq!(found, Some(expected));
    assert_eq!(tries.len(), 3 + 1 + 3, "{tries:?}");
    let nothing = |_| Shown::Impossible { possible: 0 };
    assert_eq!(search(Search::new(1_000, Rise::Equal, 20_000), nothing).0, None);
}

#[test]
fn an_unclear_level_is_not_an_upper_bound() {
    let server = |level| if level <= 3_200 { Shown::Passed } else { Shown::Unclear };
    let (found, tries) = search(Search::new(1_000, Rise::Equal, 20_000), server);
    let found = found.unwrap();
    assert!(found.verified && (3_100..=3_200).contains(&found.low), "{found:?}");
    assert!(matches!(found.above, Above::Unclear(3_201..=3_264)), "{found:?}");
    assert_eq!(tries[3..5], [(4_000, Why::StepUp); 2], "once may be a hiccup");
    // One hiccup on the way changes nothing.
    let mut hiccups = 1;
    let server = |level| match level {
        3_000 if hiccups == 1 => {
            hiccups = 0;
            Shown::Unclear
        }
        _ => passes(level <= 5_100),
    };
    let (found, _) = search(Search::new(1_000, Rise::Equal, 20_000), server);
    assert!(matches!(found.unwrap().above, Above::Failed(5_101..=5_202)), "{found:?}");
}

#[test]
fn nothing_is_found_if_every_level_fails() {
    let (found, tries) = search(Search::new(1_000, Rise::Equal, 20_000), |_| Shown::Failed);
    assert_eq!(found, None);
    assert_eq!(tries.last(), Some(&(1, Why::Bisect)));
    let (found, _) = search(Search::new(1_000, Rise::Equal, 20_000), |_| Shown::Unclear);
    assert_eq!(found, None);
}

#[test]
fn an_interrupted_search_reports_its_result_so_far() {
    let mut search = Search::new(1_000, Rise::Equal, 20_000);
    assert_eq!(search.found(), None);
    search.tell(1_000, Shown::Passed);
    let open = Found { best: 1_000, low: 1_000, above: Above::Open, verified: false };
    assert_eq!(search.found(), Some(open));
    search.tell(2_000, Shown::Failed);
    assert_eq!(search.found().unwrap().above, Above::Unverified(2_000));
}

#[test]
fn the_search_ends_for_a_server_that_passes_at_random() {
    for seed in 0..100 {
        let mut random = StdRng::seed_from_u64(seed);
        let server = |_| passes(random.random::<bool>());
        let (_, tries) = search(Search::new(1_000, Rise::Doubling, u32::MAX), server);
        assert!(tries.len() <= MOST_TRIES);
    }
}
