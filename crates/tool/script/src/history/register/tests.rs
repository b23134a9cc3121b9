//! Histories of a real register pass; injected faults are found; small histories of writes and reads
//! get the same verdict as trying every order.

use super::*;
use proptest::prelude::*;

fn event(call: Nanos, end: Nanos, did: Did) -> Event {
    Event { span: Span { call, end }, did }
}

/// An operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Does {
    Write,
    Read,
    Delete,
}

/// When an operation takes effect, how much earlier it is called, how much later its reply arrives,
/// whether it has a reply, and what it does.
type Planned = (Nanos, Nanos, Nanos, bool, Does);

/// Returns the history of a real register on which these operations take effect one after another.
fn played(mut plan: Vec<Planned>) -> Vec<Event> {
    plan.sort_unstable();
    let (mut holds, mut history) = (None, Vec::new());
    for (i, (at, before, after, answered, does)) in plan.into_iter().enumerate() {
        let did = match does {
            Does::Write => {
                holds = Some(i as u64);
                Did::Wrote(i as u64)
            }
            Does::Delete => {
                holds = None;
                Did::Deleted
            }
            Does::Read if !answered => continue,
            Does::Read => holds.map_or(Did::ReadNothing, Did::Read),
        };
        let end = if answered { 100 + at + after } else { Span::NEVER };
        history.push(event(100 + at - before, end, did));
    }
    history
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![3 => Just(Does::Write), 5 => Just(Does::Read), 1 => Just(Does::Delete)]
}

/// Histories of a real register; some operations have no reply.
fn real() -> impl Strategy<Value = Vec<Event>> {
    with_replies(0.9)
}

/// Histories of a real register in which this share of operations has a reply.
fn with_replies(share: f64) -> impl Strategy<Value = Vec<Event>> {
    let one = (0_u64..600, 0_u64..60, 0_u64..60, prop::bool::weighted(share), does());
    prop::collection::vec(one, 0..80).prop_map(played)
}

/// A time after the last reply of a generated history.
const LATER: Nanos = 10_000;

proptest! {
    #[test]
    fn a_real_register_has_an_explanation(history in real()) {
        prop_assert_eq!(check(&history), Ok(()));
    }

    #[test]
    fn finds_a_stale_read(mut history in with_replies(1.0)) {
        let at = history.len();
        history.extend([
            event(LATER, LATER + 1, Did::Wrote(1_000)),
            event(LATER + 2, LATER + 3, Did::Wrote(1_001)),
            event(LATER + 4, LATER + 5, Did::Read(1_000)),
        ]);
        let unexplained = check(&history).unwrap_err();
        prop_assert_eq!((unexplained.why, unexplained.event), (Why::Stale, at + 2));
        prop_assert_eq!(unexplained.other, Some(at + 1));
    }

    #[test]
    fn finds_a_lost_write(history in real(), which in any::<prop::sample::Index>()) {
        // A value that was read before is read again after another write.
        let read: Vec<Did> =
            history.iter().map(|one| one.did).filter(|did| matches!(did, Did::Read(_))).collect();
        prop_assume!(!read.is_empty());
        let mut history = history;
        history.push(event(LATER, LATER + 1, Did::Wrote(1_000)));
        history.push(event(LATER + 2, LATER + 3, read[which.index(read.len())]));
        prop_assert_eq!(check(&history).unwrap_err().why, Why::Stale);
    }

    #[test]
    fn finds_an_absent_key_after_a_write(mut history in with_replies(1.0)) {
        let at = history.len();
        history.push(event(LATER, LATER + 1, Did::Wrote(1_000)));
        history.push(event(LATER + 2, LATER + 3, Did::ReadNothing));
        let lost = Unexplained { why: Why::Lost, event: at + 1, other: Some(at) };
        prop_assert_eq!(check(&history), Err(lost));
    }

    #[test]
    fn finds_a_deletion_that_did_not_delete(mut history in real()) {
        let at = history.len();
        history.extend([
            event(LATER, LATER + 1, Did::Wrote(1_000)),
            event(LATER + 2, LATER + 3, Did::Deleted),
            event(LATER + 4, LATER + 5, Did::Read(1_000)),
        ]);
        let stale = Unexplained { why: Why::Stale, event: at + 2, other: Some(at + 1) };
        prop_assert_eq!(check(&history), Err(stale));
    }

    #[test]
    fn finds_the_reply_of_another_key(mut history in real()) {
        let at = history.len();
        history.push(event(LATER, LATER + 1, Did::Read(1_000)));
        let crossed = Unexplained { why: Why::NeverWritten, event: at, other: None };
        prop_assert_eq!(check(&history), Err(crossed));
    }

    /// Every small history of writes and reads of values gets the same verdict as trying every order.
    #[test]
    fn small_histories_are_decided_exactly(
        history in prop::collection::vec((0_u64..12, 0_u64..8, 0..6_u8, prop::bool::ANY), 0..7),
    ) {
        let history: Vec<Event> = history
            .into_iter()
            .enumerate()
            .map(|(i, (call, length, what, answered))| match what {
                0..3 => {
                    let end = if answered { call + length } else { Span::NEVER };
                    event(call, end, Did::Wrote(i as u64))
                }
                _ => event(call, call + length, Did::Read(u64::from(what) % 7)),
            })
            .collect();
        prop_assert_eq!(check(&history).is_ok(), has_an_order(&history), "{:?}", history);
    }

    /// With deletions, no error is reported falsely.
    #[test]
    fn never_rejects_a_history_that_has_an_order(
        history in prop::collection::vec((0_u64..12, 0_u64..8, 0..8_u8, prop::bool::ANY), 0..7),
    ) {
        let history: Vec<Event> = history
            .into_iter()
            .enumerate()
            .map(|(i, (call, length, what, answered))| {
                let end = if answered { call + length } else { Span::NEVER };
                match what {
                    0..2 => event(call, end, Did::Wrote(i as u64)),
                    2 => event(call, end, Did::Deleted),
                    3..5 => event(call, call + length, Did::ReadNothing),
                    _ => event(call, call + length, Did::Read(u64::from(what) - 5)),
                }
            })
            .collect();
        if has_an_order(&history) {
            prop_assert_eq!(check(&history), Ok(()), "{:?}", history);
        }
    }
}

/// Returns whether some order of the operations explains all replies, by trying them all.
fn has_an_order(history: &[Event]) -> bool {
    fn goes_on(history: &[Event], done: &mut Vec<bool>, holds: Option<u64>) -> bool {
        let left = || (0..history.len()).filter(|i| !done[*i]);
        if left().all(|i| history[i].span.end == Span::NEVER) {
            return true;
        }
        let first_end = left().map(|i| history[i].span.end).min().unwrap_or(Span::NEVER);
        // An operation that ended before another was called comes first.
        let next: Vec<usize> = left().filter(|i| history[*i].span.call <= first_end).collect();
        next.into_iter().any(|i| {
            let after = match history[i].did {
                Did::Wrote(value) => Some(value),
                Did::Deleted => None,
                Did::Read(value) if holds == Some(value) => holds,
                Did::ReadNothing if holds.is_none() => None,
                Did::Read(_) | Did::ReadNothing => return false,
            };
            done[i] = true;
            let explained = goes_on(history, done, after);
            done[i] = false;
            explained
        })
    }
    goes_on(history, &mut vec![false; history.len()], None)
}

#[test]
fn an_operation_without_a_reply_may_take_effect_later_or_never() {
    let pending = event(1, Span::NEVER, Did::Wrote(1));
    let second = event(2, 3, Did::Wrote(2));
    let reads = |values: &[u64]| {
        let read = |(i, value): (usize, &u64)| {
            let at = 10 + 2 * i as u64;
            event(at, at + 1, Did::Read(*value))
        };
        let mut history = vec![pending, second];
        history.extend(values.iter().enumerate().map(read));
        check(&history).map_err(|unexplained| unexplained.why)
    };
    assert_eq!(reads(&[2, 2]), Ok(()));
    assert_eq!(reads(&[2, 1, 1]), Ok(()));
    assert_eq!(reads(&[1, 1]), Ok(()));
    assert_eq!(reads(&[2, 1, 2]), Err(Why::Stale));
    let nothing = event(10, 11, Did::ReadNothing);
    assert_eq!(check(&[pending, nothing]), Ok(()));
    assert_eq!(check(&[second, nothing]).unwrap_err().why, Why::Lost);
    let deleted = event(1, Span::NEVER, Did::Deleted);
    assert_eq!(check(&[second, deleted, nothing]), Ok(()));
}

#[test]
fn finds_a_read_before_its_write() {
    let history = [event(1, 2, Did::Read(7)), event(3, 4, Did::Wrote(7))];
    let early = Unexplained { why: Why::NotWrittenYet, event: 0, other: Some(1) };
    assert_eq!(check(&history), Err(early));
}
