//! Connections that an engine opens, output that is written at once or taken and completed later,
//! and a late alarm.

use regatta_engine::{
    Conn, ConnInterest, Core, Effects, Engine, Flow, Limits, Never, Next, Now, Posted,
};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// An engine that runs a test's scripts, and records its events.
#[derive(Default)]
struct Scripted {
    seen: Vec<(&'static str, Conn)>,
    /// An alarm closes its connection.
    ends: bool,
}

/// What it does next. Scripts arrive as letters, which can be delivered at any time.
#[derive(Clone)]
struct Script(Arc<Step>);

type Step = dyn Fn(&mut Effects<Scripted>) + Send + Sync;

impl Script {
    fn new(what: impl Fn(&mut Effects<Scripted>) + Send + Sync + 'static) -> Script {
        Script(Arc::new(what))
    }
}

impl Posted for Script {}

impl Engine for Scripted {
    type Job = Never;
    type Letter = Script;
    const CONNECTS: bool = true;

    fn opened(&mut self, conn: Conn, _: &mut Effects<Self>) {
        self.seen.push(("opened", conn));
    }
    fn received(&mut self, conn: Conn, _: &mut [u8], _: &mut Effects<Self>) {
        self.seen.push(("received", conn));
    }
    fn alarm(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        self.seen.push(("alarm", conn));
        if self.ends {
            effects.close(conn, Flow::Close);
        }
    }
    fn room(&mut self, conn: Conn, _: &mut Effects<Self>) {
        self.seen.push(("room", conn));
    }
    fn ended(&mut self, _: Conn, _: &mut Effects<Self>) {}
    fn closed(&mut self, conn: Conn, _: &mut Effects<Self>) {
        self.seen.push(("closed", conn));
    }
    fn heard(&mut self, script: Script, effects: &mut Effects<Self>) {
        (script.0)(effects);
    }
}

fn core() -> Core<Scripted> {
    let now = Now { instant: Instant::now(), unix_s: 0 };
    Core::new(Scripted::default(), Limits::default(), now)
}

fn to(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// A core that connects to port 1.
fn connecting() -> (Core<Scripted>, Conn) {
    let mut core = core();
    core.heard(Script::new(|effects| {
        effects.connect(to(1));
    }));
    let upstream = core.next_changed().expect("its deadline must be set");
    (core, upstream)
}

#[test]
fn connections_are_opened_in_the_order_of_the_requests() {
    let mut core = core();
    core.heard(Script::new(|effects| {
        effects.connect(to(1));
        effects.connect(to(2));
    }));
    let ports: Vec<_> =
        std::iter::from_fn(|| core.next_connect()).map(|(_, to)| to.port()).collect();
    assert_eq!(ports, [1, 2]);
}

#[test]
fn output_of_a_connecting_connection_is_written_once_it_is_open() {
    let (mut core, upstream) = connecting();
    core.heard(Script::new(move |effects| {
        effects.out(upstream).expect("it has output").extend(b"early");
        assert_eq!(effects.pending(upstream), 5);
    }));
    assert_eq!(core.next(upstream, &()), Next::Wait);
    core.connected(upstream);
    assert_eq!(core.next(upstream, &()), Next::Write { last: false });
    assert_eq!(core.output(upstream), b"early");
}

#[test]
fn a_connection_abandoned_before_it_is_opened_is_never_opened() {
    let ways: [Script; 3] = [
        Script::new(|effects| {
            let upstream = effects.connect(to(1));
            effects.abort(upstream);
        }),
        Script::new(|effects| {
            let upstream = effects.connect(to(1));
            effects.close(upstream, Flow::Close);
        }),
        Script::new(|effects| {
            let upstream = effects.connect(to(1));
            effects.close(upstream, Flow::ClosedByClient);
        }),
    ];
    for way in ways {
        let mut core = core();
        core.heard(way);
        assert_eq!(core.next_connect(), None);
        let upstream = core.next_changed().unwrap();
        assert_eq!(core.next(upstream, &()), Next::Close);
        core.closed(upstream);
        assert_eq!(core.engine().seen, [("closed", upstream)]);
        assert_eq!(core.clients(), 0);
    }
}

#[test]
fn closing_a_connecting_connection_abandons_it_and_its_output() {
    let (mut core, upstream) = connecting();
    assert!(core.next_connect().is_some());
    core.heard(Script::new(move |effects| {
        effects.out(upstream).unwrap().extend(b"never sent");
        effects.close(upstream, Flow::Continue);
        effects.close(upstream, Flow::Close);
        assert!(effects.out(upstream).is_none());
    }));
    assert_eq!(core.next(upstream, &()), Next::Close);
    core.connected(upstream); // too late
    assert_eq!(core.next(upstream, &()), Next::Close);
}

#[test]
fn output_that_was_partly_written_at_once_is_not_taken_again() {
    let mut core = core();
    let client = core.accept();
    core.heard(Script::new(move |effects| {
        effects.set(client, ConnInterest { wants_drained: true, ..ConnInterest::default() });
        effects.out(client).unwrap().extend(b"0123456789");
    }));
    core.wrote(client, 3); // less than half: the rest has not been moved
    assert_eq!(core.take_output(client), b"3456789");
    core.completed(client, 4, None);
    assert_eq!(core.engine().seen.last(), Some(&("opened", client)));
    core.completed(client, 3, None);
    assert_eq!(core.engine().seen.last(), Some(&("room", client)));
}

/// Otherwise the alarm would wait forever if the peer sends requests faster than it reads replies.
#[test]
fn an_alarm_that_waited_for_buffer_space_rings_after_the_next_input() {
    for ends in [false, true] {
        let start = Now { instant: Instant::now(), unix_s: 0 };
        let alarm = start.instant + Duration::from_millis(20);
        let mut core =
            Core::new(Scripted { ends, ..Scripted::default() }, Limits::default(), start);
        let client = core.accept();
        core.heard(Script::new(move |effects| {
            effects.out(client).expect("it is open").resize(1 << 20, 0);
            effects.set(client, ConnInterest { alarm: Some(alarm), ..ConnInterest::default() });
        }));
        assert_eq!(core.next(client, &()), Next::Write { last: false });
        let output = core.take_output(client);
        core.turn(Now { instant: start.instant + Duration::from_millis(10), unix_s: 0 });
        core.received(client, &mut [0]);
        core.turn(Now { instant: start.instant + Duration::from_millis(30), unix_s: 0 });
        core.received(client, &mut [0]);
        core.completed(client, 1 << 20, Some(output));
        core.turn(Now { instant: start.instant + Duration::from_millis(40), unix_s: 0 });
        core.received(client, &mut [0]);
        core.received(client, &mut [0]);
        let seen: Vec<_> = core.engine().seen.iter().map(|(what, _)| *what).collect();
        let all = ["opened", "received", "received", "received", "alarm", "received"];
        let expected = if ends { &all[..5] } else { &all[..] };
        assert_eq!(seen, expected);
    }
}
