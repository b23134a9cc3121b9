use super::{super::packet::SEGMENT, *};
use proptest::prelude::*;
use std::{collections::VecDeque, ops::Range};

const MS: u64 = 1_000_000;

fn message(n: usize) -> Vec<u8> {
    (0..n * 13 % 101).map(|byte| (byte * n) as u8).collect()
}

/// Moves all segments of `from` to `to` without a loss. Returns the messages.
fn move_all(from: &mut Stream, to: &mut Stream, now_ns: u64) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Some(segment) = from.segment(now_ns) {
        messages.extend(to.receive(&segment, now_ns).unwrap());
    }
    messages
}

#[test]
fn a_long_message_crosses_in_segments_of_at_most_the_limit() {
    let (mut a, mut b) = (Stream::new(1_000), Stream::new(1_000));
    let long = vec![7; 50_000];
    a.write(&long);
    let (mut messages, mut segments) = (Vec::new(), 0);
    while !a.is_delivered() {
        let mut sent = 0;
        while let Some(segment) = a.segment(0) {
            assert!(segment.bytes.len() <= 1_000);
            messages.extend(b.receive(&segment, 0).unwrap());
            (sent, segments) = (sent + 1, segments + 1);
        }
        assert!((1..=4).contains(&sent), "{sent} segments without an acknowledgement");
        assert!(move_all(&mut b, &mut a, 0).is_empty());
    }
    assert_eq!((messages, segments), (vec![long], 51));
}

#[test]
fn what_is_new_is_seen_and_repetitions_and_acknowledgements_are_not() {
    let (mut a, mut b) = (Stream::new(1_000), Stream::new(1_000));
    a.write(&[7; 20_000]);
    let mut new = 0;
    while let Some(segment) = a.segment(0) {
        for is_new in [true, false] {
            let before = b.received();
            b.receive(&segment, 0).unwrap();
            assert_eq!(b.received() > before, is_new, "{before} bytes");
            new += usize::from(is_new);
        }
        assert!(move_all(&mut b, &mut a, 0).is_empty());
        assert_eq!(a.received(), 0);
    }
    assert_eq!(new, 21);
}

/// What a slow way made of a message.
#[derive(Debug)]
struct Crossed {
    took_ns: u64,
    /// Longest time without anything new at the other end.
    longest_gap_ns: u64,
    carried: u64,
}

/// Sends a message of this length over a way that carries so many bytes per second, one after the other, and takes
/// them all. Acknowledgements take `back_ms`. What is sent in `lost_ms` is lost.
fn over_way(bytes_per_s: u64, length: usize, back_ms: u64, lost_ms: Range<u64>) -> Crossed {
    let (mut a, mut b) = (Stream::new(SEGMENT), Stream::new(SEGMENT));
    a.write(&vec![7; length]);
    let (mut there, mut back) = (VecDeque::new(), VecDeque::new());
    let (mut now_ns, mut free_ns, mut last_ns) = (0, 0, 0);
    let mut crossed = Crossed { took_ns: 0, longest_gap_ns: 0, carried: 0 };
    while !a.is_delivered() {
        while let Some(segment) = a.segment(now_ns) {
            let bytes = segment.bytes.len() as u64 + 17;
            free_ns = now_ns.max(free_ns) + bytes * 1_000 * MS / bytes_per_s;
            crossed.carried += bytes;
            if !lost_ms.contains(&(now_ns / MS)) {
                there.push_back((free_ns, segment));
            }
        }
        let arrives = [&there, &back].map(|way| way.front().map(|(at_ns, _)| *at_ns));
        let next_ns = arrives.into_iter().chain([a.due_ns()]).flatten().min().unwrap();
        now_ns = now_ns.max(next_ns);
        while let Some((_, segment)) = there.pop_front_if(|(at_ns, _)| *at_ns <= now_ns) {
            let before = b.received();
            b.receive(&segment, now_ns).unwrap();
            if b.received() > before {
                crossed.longest_gap_ns = crossed.longest_gap_ns.max(now_ns - last_ns);
                last_ns = now_ns;
            }
            back.extend(b.segment(now_ns).map(|ack| (now_ns + back_ms * MS, ack)));
        }
        while let Some((_, ack)) = back.pop_front_if(|(at_ns, _)| *at_ns <= now_ns) {
            a.receive(&ack, now_ns).unwrap();
        }
    }
    Crossed { took_ns: now_ns, ..crossed }
}

#[test]
fn a_slow_way_is_used_well_and_never_silent_for_long() {
    // From an old mobile network to a local one.
    for bytes_per_s in [20_000, 100_000, 1_000_000, 10_000_000, 100_000_000] {
        let length = bytes_per_s as usize * 20;
        let crossed = over_way(bytes_per_s, length.min(20_000_000), 10, 0..0);
        let ideal_ns = length.min(20_000_000) as u64 * 1_000 * MS / bytes_per_s;
        assert!(crossed.took_ns < ideal_ns * 3 / 2 + 500 * MS, "{bytes_per_s}: {crossed:?}");
        assert!(crossed.longest_gap_ns < 2_000 * MS, "{bytes_per_s}: {crossed:?}");
        assert!(crossed.carried < length as u64 * 3 / 2, "{bytes_per_s}: {crossed:?}");
    }
}

#[test]
fn after_a_loss_a_long_way_is_soon_used_well_again() {
    let without = over_way(10_000_000, 20_000_000, 100, 0..0);
    let with = over_way(10_000_000, 20_000_000, 100, 1_000..1_300);
    // What was lost, the time until that is noticed, and a slow start.
    let more_ms = (with.took_ns - without.took_ns) / MS;
    assert!((300..3_000).contains(&more_ms), "{more_ms} ms: {with:?} {without:?}");
}

#[test]
fn what_is_not_acknowledged_is_sent_again_later_and_later() {
    let mut a = Stream::new(100);
    a.write(b"hello");
    let first = a.segment(0).unwrap();
    for (due_ms, again_ms) in [(250, 250), (750, 750), (1_750, 1_750), (2_750, 2_800)] {
        assert_eq!(a.due_ns(), Some(due_ms * MS));
        assert_eq!(a.segment(due_ms * MS - 1), None);
        assert_eq!(a.segment(again_ms * MS).as_ref(), Some(&first));
    }
    let ack = Segment { offset: 0, ack: first.bytes.len() as u64, bytes: Vec::new() };
    assert_eq!(a.receive(&ack, 0), Ok(Vec::new()));
    assert!(a.is_delivered() && a.due_ns().is_none() && a.segment(9_000 * MS).is_none());
}

#[test]
fn after_an_interruption_everything_is_sent_again_at_once() {
    let (mut a, mut b) = (Stream::new(10), Stream::new(10));
    a.write(b"hello");
    while a.segment(0).is_some() {}
    a.reconnected();
    let mut messages = Vec::new();
    while !a.is_delivered() {
        messages.extend(move_all(&mut a, &mut b, 1));
        move_all(&mut b, &mut a, 1);
    }
    assert_eq!(messages, [b"hello"]);
}

#[test]
fn a_full_stream_asks_for_no_more() {
    let mut a = Stream::new(100);
    a.write(&vec![0; FULL]);
    assert!(!a.has_room());
}

#[test]
fn impossible_segments_are_errors() {
    let error = |bytes: Vec<u8>, ack| {
        Stream::new(100).receive(&Segment { offset: 0, ack, bytes }, 0).unwrap_err()
    };
    assert_eq!(error(Vec::new(), 1), "it acknowledged 1 bytes of 0");
    assert_eq!(error(vec![b'x'; 10], u64::MAX), format!("it acknowledged {} bytes of 0", u64::MAX));
    let long = (LONGEST as u32 + 1).to_le_bytes().to_vec();
    assert!(error(long, 0).starts_with("it began a message of 268435457 bytes"));
    let mut other = Stream::new(100);
    other.write(b"hello");
    let mut changed = other.segment(0).unwrap().bytes;
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(error(changed, 0), "it sent a message whose SHA-256 is wrong");
}

#[test]
fn segments_from_before_or_beyond_are_dropped_and_answered() {
    let mut a = Stream::new(100);
    for offset in [1, u64::MAX] {
        let beyond = Segment { offset, ack: 0, bytes: vec![1] };
        assert_eq!(a.receive(&beyond, 0), Ok(Vec::new()));
        assert_eq!(a.segment(0), Some(Segment { offset: 0, ack: 0, bytes: Vec::new() }));
    }
}

/// What happens to a segment.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    ArrivesTwice,
    IsLost,
    /// It arrives after all others of its turn.
    IsLate,
    /// The carrier is interrupted before it.
    Interrupted,
}

fn fate() -> impl Strategy<Value = Fate> {
    use Fate::*;
    prop::sample::select(vec![Arrives, Arrives, Arrives, ArrivesTwice, IsLost, IsLate, Interrupted])
}

/// A turn in which one side sends all that it may.
fn turn(
    from: &mut Stream,
    to: &mut Stream,
    now_ns: u64,
    fates: &mut impl Iterator<Item = Fate>,
) -> Vec<Vec<u8>> {
    let (mut messages, mut late, mut is_interrupted) = (Vec::new(), Vec::new(), false);
    while let Some(segment) = from.segment(now_ns) {
        let times = match fates.next().unwrap_or(Fate::Arrives) {
            Fate::Arrives => 1,
            Fate::ArrivesTwice => 2,
            Fate::IsLost => 0,
            Fate::IsLate => {
                late.push(segment.clone());
                0
            }
            Fate::Interrupted => {
                is_interrupted = true;
                0
            }
        };
        for _ in 0..times {
            messages.extend(to.receive(&segment, now_ns).unwrap());
        }
    }
    for segment in late {
        messages.extend(to.receive(&segment, now_ns).unwrap());
    }
    if is_interrupted {
        from.reconnected();
        to.reconnected();
    }
    messages
}

proptest! {
    /// With any length of segments, and any loss, repetition and order, all messages arrive once and in order.
    #[test]
    fn all_messages_arrive_once_and_in_order(
        longest in 1..200_usize,
        counts in (0..30_usize, 0..30_usize),
        fates in prop::collection::vec(fate(), 0..200),
        later_ms in prop::collection::vec(0..400_u64, 1..50),
    ) {
        let (mut a, mut b) = (Stream::new(longest), Stream::new(longest));
        let (of_a, of_b): (Vec<_>, Vec<_>) =
            ((0..counts.0).map(message).collect(), (0..counts.1).map(message).collect());
        let (mut unwritten_a, mut unwritten_b) = (of_a.iter(), of_b.iter());
        let (mut at_a, mut at_b) = (Vec::new(), Vec::new());
        let (mut fates, mut later_ms, mut now_ns) = (fates.into_iter(), later_ms.iter().cycle(), 0);
        for nth in 0.. {
            unwritten_a.next().into_iter().for_each(|message| a.write(message));
            unwritten_b.next().into_iter().for_each(|message| b.write(message));
            at_b.extend(turn(&mut a, &mut b, now_ns, &mut fates));
            at_a.extend(turn(&mut b, &mut a, now_ns, &mut fates));
            now_ns += (later_ms.next().unwrap() + 20) * MS;
            if nth > 30 && a.is_delivered() && b.is_delivered() {
                break;
            }
            prop_assert!(nth < 100_000, "it never ends");
        }
        prop_assert_eq!(at_b, of_a);
        prop_assert_eq!(at_a, of_b);
    }
}
