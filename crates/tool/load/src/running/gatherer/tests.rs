//! Tests of the seconds: none is lost, and each is returned when every source has handed it over.

use super::*;
use crate::counts::seconds::{SoFar, Ticking};

fn second(number: u32, requests: u64) -> SecondCounted {
    let mut latency = new_histogram();
    latency.record_n(1_000, requests).unwrap();
    SecondCounted { number, requests, errors: 0, refused: 0, latency }
}

fn numbers(seconds: &[SecondCounted]) -> Vec<(u32, u64, u64)> {
    seconds.iter().map(|second| (second.number, second.requests, second.latency.len())).collect()
}

#[test]
fn a_second_is_returned_once_when_all_threads_have_handed_it_over() {
    let shared = Shared::new(2, 1);
    let mut gatherer = Gatherer::new(2);
    shared.gauges[0].handed.push(second(0, 5));
    shared.gauges[0].handed.push(second(1, 6));
    assert_eq!(numbers(&gatherer.gather(&shared)), []);
    shared.gauges[1].handed.push(second(0, 7));
    assert_eq!(numbers(&gatherer.gather(&shared)), [(0, 12, 12)]);
    assert_eq!(numbers(&gatherer.gather(&shared)), []);
    assert_eq!(numbers(&gatherer.rest(&shared)), [(1, 6, 6)]);
    assert_eq!(gatherer.sum.len(), 18);
}

#[test]
fn a_second_in_which_a_thread_had_no_cpu_is_empty_and_not_missing() {
    let shared = Shared::new(1, 1);
    let mut gatherer = Gatherer::new(1);
    shared.gauges[0].handed.push(second(0, 5));
    shared.gauges[0].handed.push(second(3, 6));
    let all = numbers(&gatherer.gather(&shared));
    assert_eq!(all, [(0, 5, 5), (1, 0, 0), (2, 0, 0), (3, 6, 6)]);
}

#[test]
fn histograms_are_used_again_and_empty() {
    let shared = Shared::new(1, 1);
    let (handed, mut gatherer) = (&shared.gauges[0].handed, Gatherer::new(1));
    let mut ticking = Ticking::new();
    let mut current = new_histogram();
    for number in 0..5 {
        current.record_n(1_000, 10).unwrap();
        let requests = 10 * (u64::from(number) + 1);
        ticking.next(number + 1, SoFar { requests, ..SoFar::default() }, &mut current);
        assert!(ticking.has_over() && current.is_empty());
        ticking.hand_over(handed);
        assert!(!ticking.has_over());
        assert_eq!(numbers(&gatherer.gather(&shared)), [(number, 10, 10)]);
    }
    assert_eq!(gatherer.sum.len(), 50);
    // Two histograms are in use, and the others wait here.
    assert!(handed.spares() <= 2, "{}", handed.spares());
}
