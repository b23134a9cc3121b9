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
fn a_rate_of_zero_is_not_steady() {
    let mut steadiness = Steadiness::default();
    assert!((0..10).all(|i| !steadiness.reached(i * SLICE, 7)));
}
