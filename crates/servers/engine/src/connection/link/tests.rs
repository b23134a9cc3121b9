//! The lifecycle of a connection as tables: events, and the states and steps that follow.

use super::{deadline::AGAIN, *};
use std::time::Duration;

/// A socket with fixed answers.
#[derive(Clone, Copy, Default)]
struct Known {
    unacknowledged: usize,
    readable: bool,
    gone: bool,
    ended: bool,
}

impl SocketProbe for Known {
    fn unacknowledged(&self, _: Conn) -> usize {
        self.unacknowledged
    }

    fn is_readable(&self, _: Conn) -> bool {
        self.readable
    }

    fn is_gone(&self, _: Conn) -> bool {
        self.gone
    }

    fn has_ended(&self, _: Conn) -> bool {
        self.ended
    }
}

const CONN: fn() -> Conn = || Conn::new(0, 1);

fn limits() -> Limits {
    Limits { idle: Duration::from_secs(8), request: Duration::from_secs(2) }
}

fn client(now: Instant) -> Link {
    Link::new(1, Side::Client, now)
}

#[test]
fn take_returns_only_unwritten_output() {
    let now = Instant::now();
    let mut link = client(now);
    link.out().extend_from_slice(b"0123456789");
    assert!(!link.wrote(now, 3));
    assert_eq!(link.take(now), b"3456789");
    assert_eq!(link.pending(), 7);
    assert!(link.completed(7));
}

#[test]
fn a_timeout_with_unread_input_is_checked_again_later() {
    let start = Instant::now();
    let mut link = client(start);
    let over = start + limits().idle;
    let readable = Known { readable: true, ..Known::default() };
    link.look(over, &limits(), CONN(), &readable);
    assert!(link.is_open());
    assert_eq!(link.deadline(&limits()), Some((over + AGAIN, Timer::Idle)));
    link.look(over + AGAIN, &limits(), CONN(), &Known::default());
    assert_eq!(link.state(), State::Closed(End::Idle));
}

#[test]
fn idle_time_counts_from_the_reply_of_the_engine() {
    let start = Instant::now();
    let at = |s| start + Duration::from_secs(s);
    let mut link = client(start);
    link.set_status(at(1), ConnInterest::default());
    assert_eq!(link.deadline(&limits()), Some((at(8), Timer::Idle)), "it did not wait");
    link.set_status(at(1), ConnInterest { waits: true, ..ConnInterest::default() });
    link.look(at(100), &limits(), CONN(), &Known::default());
    assert!(link.is_open(), "it waits for the engine");
    link.set_status(at(100), ConnInterest::default());
    assert_eq!(link.deadline(&limits()), Some((at(108), Timer::Idle)));
}

#[test]
fn sending_more_does_not_delay_the_timeout_of_a_stalled_peer() {
    let start = Instant::now();
    let at = |s| start + Duration::from_secs(s);
    let mut link = client(start);
    let mut held = 0;
    for second in 1..20 {
        link.out().extend_from_slice(b"more");
        held += link.take(at(second)).len();
        link.completed(4);
        let holds = Known { unacknowledged: held, ..Known::default() };
        while let Some((due, _)) = link.deadline(&limits())
            && due <= at(second)
        {
            link.look(at(second), &limits(), CONN(), &holds);
        }
        if !link.is_open() {
            assert_eq!(link.state(), State::Closed(End::Idle));
            assert!((8..=12).contains(&second), "closed after {second} s");
            return;
        }
    }
    panic!("it was never closed");
}

// ---- event → next step ----

fn at(start: Instant, s: u64) -> Instant {
    start + Duration::from_secs(s)
}

fn in_state(state: State, start: Instant) -> Link {
    Link { state, ..client(start) }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of events and states")]
fn each_event_leads_to_the_expected_state() {
    let start = Instant::now();
    let until = start + Duration::from_secs(5);
    let lingers = start + Limits::LINGER;
    let lingering = |bytes| State::Lingering { until: lingers, bytes };
    let (open, delivering) = (State::Open, State::Delivering);
    let (closing, parting) = (State::Closing { part: false }, State::Closing { part: true });
    let connecting = State::Connecting { until };
    let full = lingering(Limits::LINGER_BYTES);
    let closed = |end| State::Closed(end);
    let idle = closed(End::Idle);

    type Event = fn(&mut Link, Instant) -> bool;
    let unit = |event: Event| event;
    let connected = unit(|link, now| link.connected(now));
    let received = unit(|link, now| link.received(now, 10));
    let flooded = unit(|link, now| link.received(now, Limits::LINGER_BYTES));
    let ended = unit(|link, _| link.ended());
    let ended_twice = unit(|link, _| link.ended() & link.ended());
    let fails = unit(|link, _| {
        link.end(End::Failed);
        false
    });
    let close = unit(|link, now| {
        link.close(now, Flow::Close);
        false
    });
    let part = unit(|link, now| {
        link.close(now, Flow::ClosedByClient);
        false
    });
    let goes_on = unit(|link, now| {
        link.close(now, Flow::Continue);
        false
    });
    let finished = unit(|link, now| {
        link.shutdown_completed(now, true);
        false
    });
    let unfinished = unit(|link, now| {
        link.shutdown_completed(now, false);
        false
    });

    let failed = closed(End::Failed);
    let left = Limits::LINGER_BYTES - 10;
    for (name, event, table) in [
        (
            "connected",
            connected,
            vec![
                (connecting, open, true),
                (open, open, false),
                (closing, closing, false),
                (full, full, false),
                (delivering, delivering, false),
                (idle, idle, false),
            ],
        ),
        (
            "received",
            received,
            vec![
                (connecting, connecting, false),
                (open, open, true),
                (closing, closing, false),
                (parting, parting, false),
                (full, lingering(left), false),
                (lingering(10), closed(End::Flooded), false),
                (delivering, delivering, false),
                (idle, idle, false),
            ],
        ),
        ("flooded", flooded, vec![(open, open, true), (full, closed(End::Flooded), false)]),
        (
            "ended",
            ended,
            vec![
                (connecting, connecting, false),
                (open, open, true),
                (closing, closing, false),
                (parting, parting, false),
                (full, closed(End::Close), false),
                (delivering, delivering, false),
                (idle, idle, false),
            ],
        ),
        ("ended twice", ended_twice, vec![(open, open, false)]),
        (
            "failed",
            fails,
            vec![
                (connecting, failed, false),
                (open, failed, false),
                (closing, failed, false),
                (full, failed, false),
                (delivering, failed, false),
                (idle, idle, false),
            ],
        ),
        (
            "close",
            close,
            vec![
                (connecting, closed(End::Aborted), false),
                (open, closing, false),
                (parting, parting, false),
                (full, full, false),
                (delivering, delivering, false),
                (idle, idle, false),
            ],
        ),
        ("part", part, vec![(open, parting, false), (closing, closing, false)]),
        ("goes on", goes_on, vec![(open, open, false), (closing, closing, false)]),
        (
            "finished",
            finished,
            vec![(closing, full, false), (parting, closed(End::ClosedByClient), false)],
        ),
        ("not finished", unfinished, vec![(closing, failed, false), (parting, failed, false)]),
    ] {
        for (before, after, result) in table {
            let mut link = in_state(before, start);
            assert_eq!(event(&mut link, start), result, "{name} in {before:?}");
            assert_eq!(link.state(), after, "{name} in {before:?}");
        }
    }
}

#[test]
fn every_step() {
    let start = Instant::now();
    let (closing, parting) = (State::Closing { part: false }, State::Closing { part: true });
    let lingering = State::Lingering { until: start, bytes: 1 };
    let write = |last| Step::Write { last };
    let closed = |end| State::Closed(end);
    // State, output, in flight, ended, draining, unacknowledged → step, state.
    for (before, out, in_flight, ended, draining, unacknowledged, step, after) in [
        (State::Open, 0, 0, false, false, 0, Step::Wait, State::Open),
        (State::Open, 1, 0, false, false, 0, write(false), State::Open),
        (State::Open, 1, 1, false, false, 0, Step::Wait, State::Open),
        (State::Open, 1, 0, true, true, 9, write(false), State::Open),
        (closing, 1, 0, false, false, 0, write(true), closing),
        (closing, 1, 1, false, false, 0, Step::Wait, closing),
        (closing, 0, 1, true, true, 0, Step::Wait, closing),
        (closing, 0, 0, false, false, 9, Step::ShutdownWrite, closing),
        (parting, 0, 0, false, false, 9, Step::ShutdownWrite, parting),
        (closing, 0, 0, true, false, 9, Step::Close, closed(End::HalfClosed)),
        (closing, 0, 0, false, true, 0, Step::Close, closed(End::Drained)),
        (closing, 0, 0, true, true, 0, Step::Close, closed(End::Drained)),
        (closing, 0, 0, true, true, 1, Step::Wait, State::Delivering),
        // No FIN follows, so the kernel would hold the output back for 200 ms.
        (closing, 1, 0, true, true, 1, write(false), closing),
        (lingering, 0, 0, false, true, 1, Step::Wait, lingering),
        (State::Delivering, 0, 0, true, true, 1, Step::Wait, State::Delivering),
        (closed(End::Idle), 1, 1, true, true, 1, Step::Close, closed(End::Idle)),
    ] {
        let mut link = Link { out: vec![0; out], in_flight, ended, ..in_state(before, start) };
        let socket = Known { unacknowledged, ..Known::default() };
        let case = format!("{before:?} {out} {in_flight} {ended} {draining} {unacknowledged}");
        assert_eq!(link.step(draining, CONN(), &socket), step, "{case}");
        assert_eq!(link.state(), after, "{case}");
    }
}

#[test]
fn reads_while_open_and_lingering() {
    let start = Instant::now();
    let lingering = State::Lingering { until: start, bytes: 1 };
    for (state, reads, ended, out, in_flight, expected) in [
        (State::Open, true, false, 0, 0, true),
        (State::Open, false, false, 0, 0, false),
        (State::Open, true, true, 0, 0, false),
        (State::Open, true, false, 65_535, 0, true),
        (State::Open, true, false, 65_536, 0, false),
        (State::Open, true, false, OUTPUT_FULL - 1, 1, false),
        (State::Closing { part: false }, true, false, 0, 0, false),
        (lingering, false, false, OUTPUT_FULL, 0, true),
        (State::Delivering, true, false, 0, 0, false),
        (State::Closed(End::Idle), true, false, 0, 0, false),
    ] {
        let status = ConnInterest { reads, ..ConnInterest::default() };
        let out = vec![0; out];
        let link = Link { status, ended, out, in_flight, ..in_state(state, start) };
        assert_eq!(link.wants_read(), expected, "{link:?}");
    }
}

#[test]
fn deadlines_and_what_they_find() {
    let start = Instant::now();
    let at = |ms: u64| start + Duration::from_millis(ms);
    let none = Known::default();
    let holds = Known { unacknowledged: 7, ..none };
    let gone = Known { gone: true, ..none };
    let readable = Known { readable: true, ..none };
    let alarmed = ConnInterest { alarm: Some(at(30)), ..ConnInterest::default() };
    let inside = ConnInterest { inside: Some(at(1000)), ..ConnInterest::default() };
    let since_0 = ConnInterest { inside: Some(at(0)), ..ConnInterest::default() };
    let late = State::Closed(End::Request);
    let waits = ConnInterest { waits: true, ..ConnInterest::default() };
    let pauses = ConnInterest { reads: false, ..ConnInterest::default() };
    let cut = ConnInterest { cut_at: Some(at(30)), ..ConnInterest::default() };
    let full = |link: Link| Link { out: vec![0; OUTPUT_FULL], ..link };
    let ends = ConnInterest { gone_at_end: Some(at(0)), ..pauses };
    let ended = Known { ended: true, ..Known::default() };
    let (open, closing) = (State::Open, State::Closing { part: false });
    let stuck = |link: Link| Link { stuck: Some(at(100)), ..link };
    let owes = |link: Link| Link { owes: true, ..link };
    let new = |state, status| Link { status, ..in_state(state, start) };
    let plain = ConnInterest::default();
    let lingering = State::Lingering { until: at(2000), bytes: 1 };
    let closed = |end| State::Closed(end);
    // The link; its deadline in ms, and what it is for; a socket; the state after the check at that
    // time.
    for (mut link, due, timer, socket, after) in [
        (
            new(State::Connecting { until: at(5000) }, plain),
            5000,
            Timer::Connect,
            none,
            closed(End::Connect),
        ),
        (new(lingering, plain), 2000, Timer::Linger, none, closed(End::Linger)),
        (new(State::Delivering, plain), 5, Timer::Delivery, holds, State::Delivering),
        (new(State::Delivering, plain), 5, Timer::Delivery, none, closed(End::Delivered)),
        (new(open, plain), 8000, Timer::Idle, none, closed(End::Idle)),
        (new(open, plain), 8000, Timer::Idle, readable, open),
        (new(closing, plain), 8000, Timer::Idle, none, closed(End::Idle)),
        (new(open, inside), 3000, Timer::Request, none, closed(End::Request)),
        (new(open, inside), 3000, Timer::Request, readable, open),
        (new(open, waits), 250, Timer::HeldUp, none, open),
        (new(open, waits), 250, Timer::HeldUp, gone, closed(End::Gone)),
        (new(open, pauses), 250, Timer::HeldUp, gone, closed(End::Gone)),
        (new(open, ends), 250, Timer::HeldUp, ended, closed(End::Gone)),
        (new(open, pauses), 250, Timer::HeldUp, ended, open),
        (Link { ended: true, ..new(open, plain) }, 250, Timer::HeldUp, gone, closed(End::Gone)),
        (owes(new(open, plain)), 2000, Timer::Owed, holds, open),
        (owes(new(open, inside)), 2000, Timer::Owed, holds, open),
        (owes(Link { heard: at(1000), ..new(open, since_0) }), 2000, Timer::Request, holds, late),
        (stuck(new(open, plain)), 1100, Timer::Progress, holds, open),
        (stuck(new(closing, waits)), 1100, Timer::Progress, gone, closing),
        (stuck(full(new(open, cut))), 30, Timer::Alarm, holds, closed(End::Aborted)),
        (stuck(new(closing, cut)), 30, Timer::Alarm, holds, closed(End::Aborted)),
        (new(open, cut), 8000, Timer::Idle, none, closed(End::Idle)),
        (new(lingering, cut), 2000, Timer::Linger, none, closed(End::Linger)),
        (new(open, alarmed), 30, Timer::Alarm, none, open),
        (stuck(new(open, alarmed)), 30, Timer::Alarm, none, open),
        (new(closing, alarmed), 8000, Timer::Idle, none, closed(End::Idle)),
    ] {
        let case = format!("{link:?}");
        assert_eq!(link.deadline(&limits()), Some((at(due), timer)), "{case}");
        assert_eq!(link.sooner_due(&limits()), Some(at(due)), "{case}");
        assert_eq!(link.sooner_due(&limits()), None, "no earlier than before: {case}");
        link.look(at(due), &limits(), CONN(), &socket);
        assert_eq!(link.state(), after, "{case}");
        assert_eq!(link.sooner_due(&limits()).is_some(), !matches!(after, State::Closed(_)));
    }
    assert_eq!(new(closed(End::Idle), plain).deadline(&limits()), None);
}

#[test]
fn a_peer_that_acknowledges_slowly_is_not_stalled() {
    let start = Instant::now();
    let mut link = client(start);
    link.out().extend_from_slice(&[0; 100]);
    assert!(!link.wrote(start, 60));
    assert_eq!(link.output().len(), 40);
    let mut unacknowledged = 60;
    for second in 1..=20 {
        let socket = Known { unacknowledged, ..Known::default() };
        link.look(at(start, second), &limits(), CONN(), &socket);
        assert!(link.is_open(), "it has acknowledged something at second {second}");
        unacknowledged -= 1;
    }
    let socket = Known { unacknowledged, ..Known::default() };
    for second in 21..=28 {
        link.look(at(start, second), &limits(), CONN(), &socket);
        assert!(link.is_open(), "{second}");
    }
    link.look(at(start, 29), &limits(), CONN(), &socket);
    assert_eq!(link.state(), State::Closed(End::Stalled));
}

#[test]
fn output_is_counted_whether_written_or_taken() {
    let start = Instant::now();
    let mut link = client(start);
    link.out().extend_from_slice(b"0123456789");
    assert!(!link.wrote(start, 5), "half or less is written: the rest is not moved");
    assert_eq!((link.output(), link.pending(), link.out.len()), (&b"56789"[..], 5, 10));
    assert!(!link.wrote(start, 1), "more than half is written: the rest is moved");
    assert_eq!((link.output(), link.pending(), link.out.len()), (&b"6789"[..], 4, 4));
    assert!(link.stuck.is_some() && link.owes);
    assert!(link.wrote(start, 4));
    assert_eq!((link.pending(), link.sent, link.stuck), (0, 10, None));
    assert!(link.take_unused().is_some(), "an unused buffer can be taken");
    assert!(link.take_unused().is_none());

    link.out().extend_from_slice(b"abc");
    assert!(link.take_unused().is_none(), "it is in use");
    assert_eq!(link.take(at(start, 1)), b"abc");
    assert_eq!((link.pending(), link.stuck), (3, Some(at(start, 1))));
    link.out().extend_from_slice(b"de");
    assert_eq!(link.pending(), 5);
    assert!(!link.completed(1));
    assert!(link.stuck.is_some());
    assert!(!link.completed(2), "the rest was not taken yet");
    assert_eq!((link.pending(), link.stuck, link.sent), (2, None, 13));
}

#[test]
fn an_alarm_rings_once_and_only_while_open() {
    let start = Instant::now();
    let status =
        ConnInterest { alarm: Some(at(start, 3)), wants_drained: true, ..ConnInterest::default() };
    let mut link = Link { status, ..client(start) };
    assert!(!link.rings(at(start, 2)));
    assert!(link.rings(at(start, 3)));
    assert!(!link.rings(at(start, 3)));
    assert!(link.wants_drained());
    let of_alarm = |s| ConnInterest { alarm: Some(at(start, s)), ..ConnInterest::default() };
    let due = |s| Link { status: of_alarm(s), ..client(start) }.deadline(&limits());
    assert_eq!(due(7), Some((at(start, 7), Timer::Alarm)));
    assert_eq!(due(8), Some((at(start, 8), Timer::Idle)), "what ends the connection comes first");
    let mut link = Link { status, ..in_state(State::Closing { part: false }, start) };
    assert!(!link.rings(at(start, 3)) && !link.wants_drained());
}

#[test]
fn a_deadline_is_reported_only_when_it_may_be_earlier() {
    let start = Instant::now();
    let mut link = client(start);
    assert!(link.sooner_due(&limits()).is_some(), "a new one");
    link.set_status(start, ConnInterest::default());
    assert!(link.sooner_due(&limits()).is_none(), "the same status");
    link.set_status(start, ConnInterest { inside: Some(start), ..ConnInterest::default() });
    assert!(link.sooner_due(&limits()).is_some(), "another status");
    link.received(start, 1);
    assert!(link.sooner_due(&limits()).is_none(), "the idle timeout moves later");
    link.out().push(0);
    link.wrote(start, 1);
    assert!(link.sooner_due(&limits()).is_some(), "the peer owes an acknowledgement");
    link.out().push(0);
    link.wrote(start, 1);
    assert!(link.sooner_due(&limits()).is_none(), "as before");
    link.ended();
    assert!(link.sooner_due(&limits()).is_some(), "the peer's presence is checked");
    let mut upstream = Link::new(1, Side::Upstream, start);
    assert_eq!(upstream.sooner_due(&limits()), Some(start + Limits::CONNECT));
    assert!(upstream.connected(at(start, 1)));
    assert_eq!(upstream.sooner_due(&limits()), Some(at(start, 9)));
}

#[test]
fn a_stall_starts_with_the_first_unacknowledged_byte() {
    let start = Instant::now();
    let mut link = client(start);
    link.out().push(0);
    assert!(link.wrote(start, 1));
    link.look(at(start, 1), &limits(), CONN(), &Known::default());
    // Until now the peer had acknowledged everything.
    link.out().push(0);
    assert!(link.wrote(at(start, 3), 1));
    let holds = Known { unacknowledged: 1, ..Known::default() };
    link.look(at(start, 4), &limits(), CONN(), &holds);
    link.out().extend_from_slice(&[0; 100]);
    assert!(!link.wrote(at(start, 5), 60));
    let holds = Known { unacknowledged: 61, ..Known::default() };
    link.look(at(start, 10), &limits(), CONN(), &holds);
    assert!(link.is_open());
    link.look(at(start, 11), &limits(), CONN(), &holds);
    assert_eq!(link.state(), State::Closed(End::Stalled));
}

#[test]
fn acknowledgements_are_checked_until_nothing_is_pending() {
    let start = Instant::now();
    let mut link = client(start);
    link.out().push(0);
    link.wrote(start, 1);
    let holds = Known { unacknowledged: 1, ..Known::default() };
    link.look(at(start, 1), &limits(), CONN(), &holds);
    assert_eq!(link.deadline(&limits()), Some((at(start, 3), Timer::Owed)));
    link.look(at(start, 3), &limits(), CONN(), &Known::default());
    assert_eq!(
        link.deadline(&limits()),
        Some((at(start, 11), Timer::Idle)),
        "it acknowledged at 3 s"
    );
}
