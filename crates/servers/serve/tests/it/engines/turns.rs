//! Turns of a driver: all requests of an engine are carried out without waiting for the next event,
//! and endless requests do not keep a turn from ending.

use crate::{
    DEADLINE,
    models::{on_engine_models, tests_of},
    server::{Server, Setting},
};
use regatta_engine::{Conn, Effects, Engine, Never};
use regatta_serve::Model;
use regatta_testkit::deadline::until_within;
use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

on_engine_models!(connects_that_fail_at_once_do_not_delay_clients_or_a_stop,);
// The other models bound the reads of a turn themselves; here the kernel decides how often a receive completes.
tests_of!(a_client_that_floods_gets_its_share_of_a_turn_only: uring Uring);

/// An echo engine that constantly tries to connect to an address that always fails.
struct Storm;

impl Storm {
    fn connect(effects: &mut Effects<Self>) {
        // TCP does not connect to a broadcast address: this fails at once.
        effects.connect(([255, 255, 255, 255], 1).into());
    }
}

impl Engine for Storm {
    type Job = Never;
    type Letter = Never;
    const CONNECTS: bool = true;

    fn opened(&mut self, _: Conn, effects: &mut Effects<Self>) {
        Storm::connect(effects);
    }
    fn received(&mut self, conn: Conn, bytes: &mut [u8], effects: &mut Effects<Self>) {
        effects.out(conn).expect("it is open").extend_from_slice(bytes);
    }
    fn room(&mut self, _: Conn, _: &mut Effects<Self>) {}
    fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        effects.abort(conn);
    }
    fn closed(&mut self, _: Conn, effects: &mut Effects<Self>) {
        Storm::connect(effects);
    }
}

fn connects_that_fail_at_once_do_not_delay_clients_or_a_stop(model: Model) {
    let server = Server::of_engines(model, &Setting::default(), || Storm);
    let mut client = server.client();
    for _ in 0..100 {
        client.send("x\n");
        assert_eq!(client.line(), "x");
    }
    server.stop();
    client.expect_gone();
    server.join();
}

/// An engine that takes its time over what it receives, and counts its turns.
#[derive(Default)]
struct Slow {
    turn: Option<Instant>,
    /// How many bytes came in this turn.
    bytes: usize,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    bytes: AtomicUsize,
    turns: AtomicUsize,
    /// Turns in which more than one read came, and more than [`SHARE`].
    long: AtomicUsize,
}

/// Several times what a completion has.
const SHARE: usize = 100 * 1024;

impl Engine for Slow {
    type Job = Never;
    type Letter = Never;

    fn opened(&mut self, _: Conn, _: &mut Effects<Self>) {}
    fn received(&mut self, _: Conn, bytes: &mut [u8], effects: &mut Effects<Self>) {
        if self.turn.replace(effects.now().instant) != self.turn {
            self.seen.turns.fetch_add(1, Relaxed);
            self.bytes = 0;
        }
        let before = self.bytes;
        self.bytes += bytes.len();
        let is_long = (1..=SHARE).contains(&before) && self.bytes > SHARE;
        self.seen.long.fetch_add(usize::from(is_long), Relaxed);
        // The work on these bytes, in which more arrive.
        thread::sleep(Duration::from_micros(200));
        self.seen.bytes.fetch_add(bytes.len(), Relaxed);
    }
    fn room(&mut self, _: Conn, _: &mut Effects<Self>) {}
    fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        effects.abort(conn);
    }
    fn closed(&mut self, _: Conn, _: &mut Effects<Self>) {}
}

fn a_client_that_floods_gets_its_share_of_a_turn_only(model: Model) {
    const ALL: usize = 16 << 20;
    let seen = Arc::<Seen>::default();
    let by = Arc::clone(&seen);
    let engine = move || Slow { seen: Arc::clone(&by), ..Slow::default() };
    let server = Server::of_engines(model, &Setting::default(), engine);
    let mut client = server.client();
    client.stream.write_all(&vec![b'x'; ALL]).unwrap();
    until_within(DEADLINE, "it receives everything", || seen.bytes.load(Relaxed) == ALL);
    let (turns, long) = (seen.turns.load(Relaxed), seen.long.load(Relaxed));
    assert!(turns > 20 && long < turns / 5, "{long} of {turns} turns are long");
}

/// An engine that aborts its client at the end of the turn of the first byte, and posts when the
/// client is closed.
struct Poster {
    heard: Arc<AtomicUsize>,
    due: Option<(Instant, Conn)>,
}

impl Engine for Poster {
    type Job = Never;
    type Letter = ();
    const POSTS: bool = true;

    fn opened(&mut self, _: Conn, _: &mut Effects<Self>) {}
    fn received(&mut self, conn: Conn, _: &mut [u8], effects: &mut Effects<Self>) {
        self.due = Some((effects.now().instant, conn));
    }
    fn room(&mut self, _: Conn, _: &mut Effects<Self>) {}
    fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        effects.abort(conn);
    }
    fn closed(&mut self, _: Conn, effects: &mut Effects<Self>) {
        effects.post(());
    }
    fn due(&self) -> Option<Instant> {
        self.due.map(|(at, _)| at)
    }
    fn tick(&mut self, effects: &mut Effects<Self>) {
        if let Some((_, conn)) = self.due.take() {
            effects.abort(conn);
        }
    }
    fn heard(&mut self, (): (), _: &mut Effects<Self>) {
        self.heard.fetch_add(1, Relaxed);
    }
}

fn a_letter_posted_at_the_end_of_a_turn_is_sent_in_that_turn(model: Model) {
    let heard = Arc::<AtomicUsize>::default();
    let by = Arc::clone(&heard);
    let setting = Setting { cores: 2, ..Setting::default() };
    let server =
        Server::of_engines(model, &setting, move || Poster { heard: Arc::clone(&by), due: None });
    let mut client = server.client();
    client.send("x");
    client.expect_gone();
    until_within(DEADLINE, "the other core receives it", || heard.load(Relaxed) > 0);
}

// Models that serve on several cores.
tests_of!(a_letter_posted_at_the_end_of_a_turn_is_sent_in_that_turn: percore Percore, uring Uring);
