//! Histories of a real counter pass; injected faults are found.

use super::*;
use proptest::prelude::*;

fn increment(call: Nanos, end: Nanos, count: u64) -> Increment {
    Increment { span: Span { call, end }, count: Some(count) }
}

/// A history of a real counter: each increment takes effect at its moment, and some have no reply.
fn real() -> impl Strategy<Value = Vec<Increment>> {
    let one = (0_u64..1_000, 0_u64..60, 0_u64..60, 0..10_u8);
    prop::collection::vec(one, 1..60).prop_map(|mut all| {
        all.sort_unstable();
        let each = all.into_iter().enumerate();
        each.map(|(i, (at, before, after, kind))| {
            let answered = kind > 0;
            let end = if answered { 100 + at + after } else { Span::NEVER };
            let span = Span { call: 100 + at - before, end };
            Increment { span, count: answered.then_some(i as u64 + 1) }
        })
        .collect()
    })
}

proptest! {
    #[test]
    fn a_real_counter_has_an_explanation(history in real()) {
        prop_assert_eq!(check(&history), Ok(()));
    }

    #[test]
    fn finds_a_duplicate_count(history in real(), which in any::<prop::sample::Index>()) {
        let mut history = history;
        let again = history[which.index(history.len())];
        prop_assume!(again.count.is_some());
        history.push(again);
        prop_assert!(check(&history).is_err());
    }

    #[test]
    fn finds_an_increment_that_was_applied_twice(
        mut history in real(),
        from in any::<prop::sample::Index>(),
    ) {
        history.retain(|one| one.count.is_some());
        prop_assume!(!history.is_empty());
        let from = from.index(history.len());
        for one in &mut history[from..] {
            one.count = one.count.map(|count| count + 1);
        }
        // The count of the last increment exceeds the number of increments.
        prop_assert!(check(&history).is_err());
    }

    #[test]
    fn finds_a_lost_increment(mut history in real()) {
        let count = history.iter().filter_map(|one| one.count).max().unwrap_or(0);
        prop_assume!(count > 0);
        history.push(increment(10_000, 10_001, count));
        prop_assert!(check(&history).is_err());
    }
}

#[test]
fn names_each_kind_of_fault() {
    let first = increment(1, 2, 1);
    for (second, why) in [
        (increment(3, 4, 1), Why::TooLow { least: 2 }),
        (increment(2, 4, 1), Why::Twice { other: 0 }),
        (increment(3, 4, 3), Why::TooHigh { most: 2 }),
    ] {
        assert_eq!(check(&[first, second]), Err(Unexplained { why, event: 1 }));
    }
    let pending = Increment { span: Span { call: 1, end: Span::NEVER }, count: None };
    let history = [pending, pending, increment(1, 2, 3), increment(3, 4, 2)];
    let why = Why::Backwards { other: 2 };
    assert_eq!(check(&history), Err(Unexplained { why, event: 3 }));
    // An increment without a reply may or may not have been applied.
    assert_eq!(check(&[pending, increment(3, 4, 1)]), Ok(()));
    assert_eq!(check(&[pending, increment(3, 4, 2)]), Ok(()));
}
