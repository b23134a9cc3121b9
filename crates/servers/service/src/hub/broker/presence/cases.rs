//! Single cases of the machine: backends that wait, many rooms, and what the broker refuses.

use super::{
    machine::{Command, Machine},
    note::{Changed, Note},
    room::Notice,
    state::State,
};
use regatta_engine::{RoomName, Ticket};
use std::time::{Duration, Instant};

const OTHER: u64 = 2;

/// A node at a broker that answers only what a test answers.
struct Alone {
    machine: Machine,
    now: Instant,
}

impl Alone {
    /// Its life has begun.
    fn new() -> Alone {
        let now = Instant::now();
        let mut machine = Machine::new(1, now);
        machine.is_up(now);
        machine.has_begun(1, now);
        let mut alone = Alone { machine, now };
        alone.commands();
        alone
    }

    /// So many milliseconds pass. Returns what it has sent.
    fn passes(&mut self, millis: u64) -> Vec<Command> {
        let mut all = Vec::new();
        for _ in 0..millis / 100 {
            self.now += Duration::from_millis(100);
            self.machine.tick(self.now);
            all.extend(self.commands());
        }
        all
    }

    fn commands(&mut self) -> Vec<Command> {
        std::iter::from_fn(|| self.machine.next_command(self.now)).collect()
    }

    fn asks(&mut self, room: &RoomName, count: u64) {
        self.machine.ask(room, Ticket { core: 0, count }, self.now);
    }

    /// Which backends were answered, and whether the members are known.
    fn answered(&mut self) -> Vec<(u64, bool)> {
        let all = self.machine.take_answered();
        all.into_iter().map(|(ticket, room)| (ticket.count, room.is_some())).collect()
    }

    /// A member enters a room.
    fn enters(&mut self, room: &RoomName) {
        self.machine.changes(room, State::of(1, 1, Vec::new()), self.now);
    }

    /// Another node is there, or has one member in a room.
    fn hears(&mut self, number: u64, room: Option<&RoomName>) {
        let state = State { version: number, ..State::of(1, 1, Vec::new()) };
        let change = room.map(|room| Changed::new(room.as_str(), &State::default(), &state));
        let note = Note { node: OTHER, life: 1, number, change };
        self.machine.hears(note.to_json().as_bytes(), self.now);
    }

    /// All reads are answered: these lives of the other node have stored these states in each room.
    fn reads(&mut self, commands: &[Command], stored: &[(u64, &str)]) {
        let stored: Vec<_> =
            stored.iter().map(|(life, value)| (OTHER, *life, value.as_bytes())).collect();
        for command in commands {
            if let Command::Read { room, stamp } = command {
                self.machine.has_read(0);
                self.machine.has_read_all(room, *stamp, &stored, self.now);
            }
        }
    }
}

fn rooms(count: usize) -> Vec<RoomName> {
    (0..count).map(|n| RoomName::of(&format!("r{n}"))).collect()
}

/// What the other node has stored.
fn stored(version: u64) -> String {
    State { version, ..State::of(1, 1, Vec::new()) }.to_json()
}

/// The stamp of the read of a room.
fn stamp(commands: &[Command]) -> u64 {
    let stamp = |command: &Command| match command {
        Command::Read { stamp, .. } => Some(*stamp),
        _ => None,
    };
    commands.iter().find_map(stamp).expect("a room is read")
}

#[test]
fn a_backend_does_not_wait_for_ever() {
    let (mut alone, room) = (Alone::new(), RoomName::of("red"));
    alone.asks(&room, 1);
    stamp(&alone.commands());
    alone.passes(1_900);
    assert!(alone.answered().is_empty());
    alone.passes(200);
    assert_eq!(alone.answered(), [(1, false)], "nothing was read");
    assert_eq!(alone.machine.rooms.len(), 0, "nothing is kept");
    alone.machine.has_read(0);
    alone.asks(&room, 2);
    // It is not known whether the other node lives.
    let read = alone.commands();
    alone.reads(&read, &[(1, stored(1).as_str())]);
    alone.passes(1_900);
    assert!(alone.answered().is_empty());
    alone.passes(200);
    assert_eq!(alone.answered(), [(2, false)], "no check was answered");
}

#[test]
fn a_backend_learns_at_once_that_the_broker_refuses_to_read_a_room() {
    let (mut alone, room) = (Alone::new(), RoomName::of("red"));
    alone.asks(&room, 1);
    let read = stamp(&alone.commands());
    alone.machine.has_read(0);
    alone.machine.read_is_refused(&room, read, alone.now);
    assert_eq!((alone.answered(), alone.machine.rooms.len()), (vec![(1, false)], 0));
    // Members stay, and are not read for each backend.
    alone.enters(&room);
    let read = stamp(&alone.commands());
    alone.asks(&room, 2);
    alone.machine.has_read(0);
    alone.machine.read_is_refused(&room, read, alone.now);
    alone.asks(&room, 3);
    assert_eq!(alone.answered(), [(2, false), (3, false)]);
    // It is tried again.
    let sent = alone.passes(6_100);
    alone.reads(&sent, &[]);
    alone.asks(&room, 4);
    assert_eq!(alone.answered(), [(4, true)]);
}

#[test]
fn only_rooms_that_were_touched_are_looked_at() {
    let (mut alone, rooms) = (Alone::new(), rooms(3_000));
    rooms.iter().for_each(|room| alone.enters(room));
    alone.hears(0, None);
    alone.machine.take_notices();
    alone.machine.looks = 0;
    (1..=100).for_each(|number| alone.hears(number, Some(&rooms[number as usize])));
    alone.hears(100, None);
    let lists = |alone: &mut Alone| {
        let list = |(_, notice): &(RoomName, Notice)| matches!(notice, Notice::List { .. });
        alone.machine.take_notices().iter().filter(|one| list(one)).count()
    };
    let read = alone.commands();
    alone.reads(&read, &[]);
    let were_read = lists(&mut alone);
    assert!((1..=16).contains(&were_read), "{were_read}");
    assert!(alone.machine.looks < 200, "{}", alone.machine.looks);
    // After a second all have a list, but not all in one tick.
    alone.passes(900);
    assert_eq!(lists(&mut alone), 0);
    let all = [(); 4].map(|()| {
        alone.passes(100);
        lists(&mut alone)
    });
    assert!(all[0] > 900 && all[0] <= 1_000, "{all:?}");
    assert_eq!(all.iter().sum::<usize>(), 3_000 - were_read, "{all:?}");
}

#[test]
fn what_is_refused_in_a_room_is_tried_again_there_alone_and_less_and_less_often() {
    let (mut alone, rooms) = (Alone::new(), rooms(3));
    rooms.iter().for_each(|room| alone.enters(room));
    let start = alone.now;
    let mut written = Vec::new();
    while alone.now < start + Duration::from_secs(120) {
        let sent = alone.passes(100);
        alone.reads(&sent, &[]);
        for command in sent {
            match command {
                Command::Write(write) if write.room == rooms[1] => {
                    written.push((alone.now - start).as_secs());
                    alone.machine.is_refused(&write.room, alone.now);
                }
                Command::Write(write) => {
                    assert!(alone.now < start + Duration::from_secs(1), "{write:?}");
                    alone.machine.has_written(&write.room, write.number);
                }
                Command::Keep { life } => assert!(!alone.machine.is_kept(life, true, alone.now)),
                Command::Begin { .. } => panic!("another life begins"),
                Command::Read { room, .. } => {
                    let is_first = alone.now < start + Duration::from_secs(1);
                    assert!(is_first || room == rooms[1], "{room:?}");
                }
                _ => {}
            }
        }
    }
    assert_eq!(written, [0, 6, 18, 42, 90]);
}

#[test]
fn what_cannot_be_removed_is_tried_again_and_then_another_life_begins() {
    let (mut alone, room) = (Alone::new(), RoomName::of("red"));
    alone.enters(&room);
    alone.passes(200);
    alone.machine.changes(&room, State::default(), alone.now);
    let (mut removals, mut lives) = (0, 0);
    for _ in 0..600 {
        for command in alone.passes(1_000) {
            if let Command::Write(write) = command {
                assert!(write.value.is_none() && alone.machine.rooms.len() == 1);
                removals += 1;
                alone.machine.is_refused(&room, alone.now);
            } else if matches!(command, Command::Begin { .. }) {
                lives += 1;
            }
        }
    }
    assert_eq!((removals, lives, alone.machine.rooms.len()), (9, 1, 0));
}

#[test]
fn a_refusal_long_after_others_is_tried_again_soon() {
    let (mut alone, room) = (Alone::new(), RoomName::of("red"));
    alone.enters(&room);
    // For a while all is refused.
    for _ in 0..600 {
        for command in alone.passes(1_000) {
            if matches!(command, Command::Write(_)) && alone.machine.rooms[&room].refusals < 8 {
                alone.machine.is_refused(&room, alone.now);
            }
        }
    }
    alone.machine.changes(&room, State::default(), alone.now);
    alone.passes(200);
    alone.machine.is_refused(&room, alone.now);
    let writes = |sent: &[Command]| sent.iter().any(|one| matches!(one, Command::Write(_)));
    assert!(!writes(&alone.passes(5_800)) && writes(&alone.passes(400)), "after 6 s");
}

#[test]
fn a_node_whose_key_is_gone_again_and_again_waits_before_another_life() {
    let mut alone = Alone::new();
    let (start, mut begun) = (alone.now, Vec::new());
    for _ in 0..600 {
        for command in alone.passes(100) {
            match command {
                Command::Keep { life } => {
                    let waits = alone.machine.is_kept(life, false, alone.now);
                    assert_eq!(waits, !begun.is_empty());
                    // The first time it begins at once.
                    for command in alone.commands() {
                        if let Command::Begin { life } = command {
                            begun.push((alone.now - start).as_secs());
                            alone.machine.has_begun(life, alone.now);
                        }
                    }
                }
                Command::Begin { life } => {
                    begun.push((alone.now - start).as_secs());
                    alone.machine.has_begun(life, alone.now);
                }
                _ => {}
            }
        }
    }
    assert_eq!(begun, [3, 18, 45]);
}

#[test]
fn backends_that_are_answered_at_once_leave_nothing_behind() {
    let (mut alone, room) = (Alone::new(), RoomName::of("red"));
    alone.enters(&room);
    let read = alone.commands();
    alone.reads(&read, &[]);
    for count in 0..50_000 {
        alone.now += Duration::from_micros(10);
        alone.asks(&room, count);
    }
    assert_eq!(alone.answered().len(), 50_000);
    assert!(alone.machine.deadlines.len() < 10, "{}", alone.machine.deadlines.len());
}

#[test]
fn a_node_whose_key_is_refused_ends_its_life_and_begins_another_one_later() {
    let mut alone = Alone::new();
    alone.enters(&RoomName::LOBBY);
    let (start, mut begun) = (alone.now, Vec::new());
    for _ in 0..1_000 {
        for command in alone.passes(100) {
            match command {
                Command::Keep { life } => alone.machine.life_is_refused(life, alone.now),
                Command::Begin { life } => {
                    begun.push((alone.now - start).as_secs());
                    alone.machine.life_is_refused(life, alone.now);
                }
                Command::Publish(note) => assert!(begun.is_empty(), "{note}"),
                _ => {}
            }
        }
    }
    assert_eq!(begun, [9, 21, 45, 93]);
    alone.machine.has_begun(alone.machine.life, alone.now);
    assert!(alone.commands().iter().any(|one| matches!(one, Command::Write(_))));
}

/// The other node lives, as its key says.
fn checks(alone: &mut Alone, sent: Vec<Command>) {
    for command in sent {
        match command {
            Command::Check(of, asked) => {
                let lasts = vec![true; of.len()];
                alone.machine.has_checked((&of, asked), &lasts, alone.now);
            }
            Command::Keep { life } => assert!(!alone.machine.is_kept(life, true, alone.now)),
            _ => {}
        }
    }
}

#[test]
fn a_node_that_is_silent_is_not_shown_whatever_its_key_says_until_it_is_heard() {
    let (mut alone, room) = (Alone::new(), RoomName::LOBBY);
    alone.enters(&room);
    alone.hears(1, Some(&room));
    let (read, one) = (alone.commands(), stored(1));
    alone.reads(&read, &[(1, one.as_str())]);
    let others = |alone: &Alone| alone.machine.others(&RoomName::LOBBY).count();
    let passes = |alone: &mut Alone, steps: usize| {
        for _ in 0..steps {
            let sent = alone.passes(100);
            checks(alone, sent);
        }
    };
    for _ in 0..5 {
        passes(&mut alone, 30);
        alone.hears(1, None);
    }
    passes(&mut alone, 120);
    assert_eq!(others(&alone), 1, "12 s are not over");
    passes(&mut alone, 25);
    assert_eq!(others(&alone), 0);
    // Backends do not wait for it.
    let blue = RoomName::of("blue");
    alone.asks(&blue, 1);
    let read = alone.commands();
    alone.reads(&read, &[(1, one.as_str())]);
    let sent = alone.commands();
    checks(&mut alone, sent);
    assert_eq!((alone.answered(), alone.machine.others(&blue).count()), (vec![(1, true)], 0));
    // It is heard again.
    alone.hears(1, None);
    let read = alone.passes(3_100);
    alone.reads(&read, &[(1, one.as_str())]);
    assert_eq!(others(&alone), 1);
}

#[test]
fn a_life_that_has_ended_never_comes_back() {
    let (mut alone, room) = (Alone::new(), RoomName::LOBBY);
    alone.enters(&room);
    alone.hears(1, Some(&room));
    let (asked, one) = (alone.passes(6_000), stored(1));
    alone.reads(&asked, &[(1, one.as_str())]);
    alone.machine.has_checked((&[(OTHER, 1)], alone.now), &[false], alone.now);
    let others = |alone: &Alone| alone.machine.others(&RoomName::LOBBY).count();
    assert_eq!(others(&alone), 0);
    // It was stopped, and has not looked at its key yet.
    alone.hears(1, None);
    alone.hears(2, Some(&room));
    checks(&mut alone, asked);
    alone.machine.changes(&room, State::default(), alone.now);
    alone.enters(&room);
    let (read, two) = (alone.passes(100), stored(2));
    assert!(stamp(&read) > 0);
    alone.reads(&read, &[(1, two.as_str())]);
    assert_eq!(others(&alone), 0);
    let removes = |one: &Command| matches!(one, Command::Remove { node: OTHER, life: 1, .. });
    assert!(alone.passes(100).iter().any(removes));
    let state = State { version: 3, ..State::of(1, 1, Vec::new()) };
    let change = Some(Changed::new("", &State::default(), &state));
    let note = Note { node: OTHER, life: 2, number: 3, change };
    alone.machine.hears(note.to_json().as_bytes(), alone.now);
    assert_eq!(others(&alone), 1, "another life");
    // Many nodes come and go: what is remembered of them is bounded.
    for node in 10..1_000 {
        let note = Note { node, life: 1, number: 0, change: None };
        alone.machine.hears(note.to_json().as_bytes(), alone.now);
        alone.now += Duration::from_secs(10);
        alone.machine.has_checked((&[(node, 1)], alone.now), &[false], alone.now);
        assert!(alone.machine.peers.len() <= 256 && alone.machine.peers.contains_key(&node));
    }
    assert_eq!(others(&alone), 1);
}

#[test]
fn a_node_that_was_stopped_itself_does_not_take_others_for_dead() {
    let (mut alone, room) = (Alone::new(), RoomName::LOBBY);
    alone.enters(&room);
    alone.hears(1, Some(&room));
    let asked = alone.passes(2_100);
    alone.now += Duration::from_secs(30);
    // The answer to what it asked before is the first that it gets.
    checks(&mut alone, asked);
    let asked = alone.passes(100);
    alone.hears(1, None);
    checks(&mut alone, asked);
    assert_eq!(alone.machine.others(&room).count(), 1);
}

#[test]
fn rooms_for_which_somebody_waits_are_read_first() {
    let (mut alone, rooms) = (Alone::new(), rooms(300));
    rooms.iter().for_each(|room| alone.enters(room));
    let read = alone.commands();
    alone.reads(&read, &[]);
    while alone.machine.has_commands() {
        let read = alone.passes(100);
        alone.reads(&read, &[]);
    }
    // Notes of another node are missing, so all are read again.
    alone.hears(1, None);
    alone.hears(7, None);
    let last = RoomName::of("z");
    alone.passes(2_900);
    alone.asks(&last, 1);
    let sent = alone.passes(200);
    let first = sent.iter().find_map(|command| match command {
        Command::Read { room, .. } => Some(room),
        _ => None,
    });
    assert_eq!(first, Some(&last));
}

#[test]
fn a_node_that_is_silent_is_not_shown_if_the_broker_does_not_say_who_lives() {
    let (mut alone, room) = (Alone::new(), RoomName::LOBBY);
    alone.enters(&room);
    alone.hears(1, Some(&room));
    let (mut shown, start) = (0, alone.now);
    while alone.now < start + Duration::from_secs(20) {
        for command in alone.passes(100) {
            match command {
                Command::Check(of, asked) => {
                    alone.machine.check_is_refused((&of, asked), alone.now);
                }
                Command::Keep { life } => assert!(!alone.machine.is_kept(life, true, alone.now)),
                _ => {}
            }
        }
        shown += alone.machine.others(&room).count();
    }
    assert!((120..=150).contains(&shown), "for {shown} × 100 ms");
}
