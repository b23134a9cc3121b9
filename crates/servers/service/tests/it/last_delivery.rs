//! How long the hub says that deliveries to the last member take, on two cores with sockets that accept nothing for a
//! while.

use crate::hub::OPENING;
use regatta_engine::{Conn, Core, Limits, Next, Now, Policy, Sessions};
use regatta_proto::{
    http1::{Date, Terms, Version},
    websocket::Frame,
};
use regatta_service::{
    http::Resource,
    hub::{Hub, Settings},
};
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// The numbers of the first messages that are sampled.
const SAMPLED: [usize; 5] = [0, 34, 89, 178, 233];

thread_local! {
    /// The time that the hub reads at the end of a delivery.
    static CLOCK: Cell<Option<Instant>> = const { Cell::new(None) };
}

fn clock() -> Instant {
    CLOCK.get().expect("the clock is set")
}

/// A hub on two cores.
struct World {
    hub: Hub,
    cores: [Core<Sessions<Hub>>; 2],
    now: Instant,
}

impl World {
    fn new(policy: Policy) -> World {
        let mut settings = Settings { clock: Some(clock), ping: None, ..Settings::default() };
        (settings.backlog.policy, settings.backlog.pushes) = (policy, 5);
        let (hub, now) = (Hub::new(settings), Instant::now());
        let mut number = 0;
        let cores = [(); 2].map(|()| {
            let at = Now { instant: now, unix_s: 0 };
            let mut core = Core::new(Sessions::new(hub.clone()), Limits::default(), at);
            core.set_core(number, 2);
            number += 1;
            core
        });
        CLOCK.set(Some(now));
        World { hub, cores, now }
    }

    fn passes(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        CLOCK.set(Some(self.now));
        self.cores.iter_mut().for_each(|core| core.turn(Now { instant: self.now, unix_s: 0 }));
    }

    /// A member on this core.
    fn joins(&mut self, core: usize) -> Conn {
        let conn = self.cores[core].accept();
        self.cores[core].received(conn, &mut OPENING.to_vec());
        self.writes(core, conn, usize::MAX);
        conn
    }

    /// The socket of a member accepts at most so many bytes.
    fn writes(&mut self, core: usize, conn: Conn, mut most: usize) {
        while let Next::Write { .. } = self.cores[core].next(conn, &()) {
            let written = self.cores[core].output(conn).len().min(most);
            self.cores[core].wrote(conn, written);
            most -= written;
            if most == 0 {
                return;
            }
        }
    }

    fn broadcasts(&mut self, core: usize, conn: Conn, padding: usize) {
        let text = format!(r#"{{"type":"broadcast","payload":"{}"}}"#, "x".repeat(padding));
        let mut bytes = Vec::new();
        Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut bytes);
        self.cores[core].received(conn, &mut bytes);
    }

    /// The letters of a core reach the other one.
    fn mails(&mut self, from: usize) {
        let letters: Vec<_> = self.cores[from].letters().collect();
        letters.into_iter().for_each(|letter| self.cores[1 - from].heard(letter));
    }

    /// The number of recorded deliveries, their sum in milliseconds, and how many are pending.
    fn metrics(&self) -> [u64; 3] {
        let mut page = Vec::new();
        let terms = Terms { version: Version::Http11, head_only: false, keep_alive: false };
        self.hub.metrics().get(&mut (), None, terms, &Date::at(0), &mut page);
        let page = String::from_utf8(page).unwrap();
        let value = |name: &str| -> f64 {
            let name = format!("regatta_hub_last_delivery_{name} ");
            page.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
        };
        let sum_ms = (value("seconds_sum") * 1e3).round();
        [value("seconds_count") as u64, sum_ms as u64, value("pending") as u64]
    }
}

#[test]
fn a_delivery_ends_when_the_last_core_has_written_it() {
    let mut world = World::new(Policy::Close);
    let (sender, near, far) = (world.joins(0), world.joins(0), world.joins(1));
    world.broadcasts(0, sender, 1);
    world.passes(1);
    world.writes(0, sender, usize::MAX);
    world.writes(0, near, usize::MAX);
    assert_eq!(world.metrics(), [0, 0, 1], "a letter is on its way");
    world.passes(2);
    world.mails(0);
    assert_eq!(world.metrics(), [0, 0, 1], "the socket has not accepted it");
    world.passes(4);
    world.writes(1, far, usize::MAX);
    assert_eq!(world.metrics(), [1, 7, 0]);
    // The next 33 are not sampled.
    for _ in 0..SAMPLED[1] - 1 {
        world.broadcasts(0, sender, 1);
        world.mails(0);
    }
    assert_eq!(world.metrics(), [1, 7, 0]);
    world.broadcasts(0, sender, 1);
    assert_eq!(world.metrics()[2], 1);
}

#[test]
fn a_slow_member_counts_until_its_socket_has_accepted_the_message() {
    // More than fits into the output before the sampled message, so that it waits in the queue of the member.
    for padding in [1, 70_000] {
        let mut world = World::new(Policy::Close);
        let (sender, slow) = (world.joins(0), world.joins(1));
        world.broadcasts(0, sender, 1);
        world.mails(0);
        world.writes(0, sender, usize::MAX);
        world.writes(1, slow, usize::MAX);
        assert_eq!(world.metrics(), [1, 0, 0]);
        for _ in 0..SAMPLED[1] - 2 {
            world.broadcasts(0, sender, 1);
            world.mails(0);
            world.writes(1, slow, usize::MAX);
        }
        world.broadcasts(0, sender, padding);
        world.broadcasts(0, sender, 1);
        world.mails(0);
        world.writes(0, sender, usize::MAX);
        world.passes(3_000);
        world.writes(1, slow, 10);
        assert_eq!(world.metrics(), [1, 0, 1], "{padding}: only a part is written");
        world.passes(2_000);
        world.writes(1, slow, usize::MAX);
        assert_eq!(world.metrics(), [2, 5_000, 0], "{padding}");
    }
}

/// A socket accepts as much as is appended, and its output is never empty.
#[test]
fn a_member_that_keeps_up_without_ever_catching_up_counts_only_until_its_message_is_written() {
    let mut world = World::new(Policy::Close);
    let (sender, busy) = (world.joins(0), world.joins(0));
    let mut length = 0;
    for n in 0..640 {
        world.broadcasts(0, sender, 1_000);
        world.mails(0);
        world.writes(0, sender, usize::MAX);
        let output = world.cores[0].output(busy).len();
        if n == 0 {
            length = output;
        } else if n >= 10 {
            // Ten messages are pending at any time.
            world.writes(0, busy, length);
        }
        world.passes(1);
    }
    let [recorded, sum_ms, pending] = world.metrics();
    assert_eq!(
        (recorded + pending, recorded),
        (11, 11),
        "the last sample was more than ten messages before"
    );
    // A member notices with the next message that one is written.
    assert!((11 * 10..=11 * 12).contains(&sum_ms), "{sum_ms}");
}

#[test]
fn a_member_that_leaves_counts_until_then() {
    let mut world = World::new(Policy::Close);
    let (sender, gone) = (world.joins(0), world.joins(0));
    world.broadcasts(0, sender, 1);
    world.mails(0);
    world.writes(0, sender, usize::MAX);
    world.passes(9_000);
    assert_eq!(world.metrics(), [0, 0, 1]);
    world.cores[0].failed(gone);
    assert_eq!(world.cores[0].next(gone, &()), Next::Close);
    world.cores[0].closed(gone);
    assert_eq!(world.metrics(), [1, 9_000, 0]);
}

#[test]
fn a_message_that_a_slow_member_misses_does_not_wait_for_it() {
    let mut world = World::new(Policy::Conflate);
    let (sender, slow) = (world.joins(0), world.joins(0));
    for n in 0..200 {
        world.broadcasts(0, sender, 20_000);
        world.mails(0);
        world.writes(0, sender, usize::MAX);
        world.passes(1);
        // Of the sampled ones, the first is in its output, and the others are replaced by newer ones.
        let [recorded, _, pending] = world.metrics();
        let sampled = SAMPLED.iter().filter(|one| **one <= n).count() as u64;
        assert!(recorded + pending == sampled && pending <= 2, "{n}: {recorded}, {pending}");
    }
    world.writes(0, slow, usize::MAX);
    let [recorded, sum_ms, pending] = world.metrics();
    assert_eq!((recorded, pending), (4, 0));
    // The first took all the time, and none longer.
    assert!((200..1_000).contains(&sum_ms), "{sum_ms}");
}
