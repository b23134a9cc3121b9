use super::*;

#[test]
fn a_rate_is_steady_when_three_slices_lie_within_a_tenth() {
    let mut steadiness = Steadiness::default();
    let mut replies = 0;
    let mut reached = Vec::new();
    for (i, rate) in [0, 100, 500, 1_000, 950, 980, 970].into_iter().enumerate() {
        replies += rate;
        reached.push(steadiness.reached(i as Nanos * SLICE, replies));
    }
    assert_eq!(reached, [false, false, false, false, false, true, true]);
}

#[test]
fn a_server_that_only_loses_requests_is_dead_after_the_patience() {
    let sums = |replies, settled| Sums {
        replies,
        settled,
        awaited: 4,
        refused: 0,
        dropped: 0,
        owed_ends: 0,
        errors: 0,
        open: 4,
        all_entered: true,
    };
    let mut pulse = Pulse { patience: 10 * SECOND, ..Pulse::default() };
    pulse.restart(0);
    // A loss every second, and a reply in the fifth.
    let alive: Vec<bool> =
        (1..=17).map(|i| pulse.is_alive(i * SECOND, &sums(u64::from(i >= 5), i))).collect();
    assert_eq!(alive.iter().position(|alive| !alive), Some(14), "15 s: 10 s after the reply");
}

#[test]
fn a_rate_of_zero_is_not_steady() {
    let mut steadiness = Steadiness::default();
    assert!((0..10).all(|i| !steadiness.reached(i * SLICE, 7)));
}
