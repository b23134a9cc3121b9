//! Letterboxes in seeded histories: cores that receive more slowly than others send, on real
//! descriptors and in one thread. A core sleeps unless it has something to do, and only its bell
//! wakes it.

use super::*;
use regatta_engine::{Letter, Push, RoomName, simulator::Random};
use regatta_sys::{Event, epoll::Epoll};
use std::time::Duration;

/// A push of this size, without its bytes.
#[derive(Clone, Debug)]
struct Sized(usize);

impl Push for Sized {
    fn size(&self) -> usize {
        self.0
    }
}

/// Maximum size of the push of a letter, and number of letters that one input causes.
const LONGEST: usize = 200_000;
const INPUT: usize = 8;

struct Core {
    letters: Letters<Letter<Sized>>,
    epoll: Epoll,
    unheard: std::vec::IntoIter<Letter<Sized>>,
    /// Number of letters that its clients still cause, and number of those caused.
    work: u64,
    posted: u64,
    /// Number of the next letter of each core.
    next: Vec<u64>,
    /// Number of answers that it has received.
    answers: u64,
    asleep: bool,
    /// How rarely it runs.
    slowness: usize,
}

impl Core {
    fn turn(&mut self, random: &mut Random) {
        let own = self.letters.own as u32;
        if self.unheard.len() == 0 {
            self.unheard = self.letters.take().into_iter();
        }
        for letter in self.unheard.by_ref().take(1 + random.below(20)) {
            match letter {
                Letter::Counted { from, count, .. } => {
                    let next = &mut self.next[from as usize];
                    assert_eq!(count, *next, "the letters of a core arrive in order, once");
                    *next += 1;
                    let answer = Letter::Queued { to: from, count, members: 1 };
                    self.letters.post([answer].into_iter());
                }
                Letter::Queued { to, .. } => {
                    assert_eq!(to, own, "an answer goes to the core that waits for it");
                    self.answers += 1;
                }
                _ => unreachable!("no other is posted"),
            }
        }
        if self.work > 0 && !self.letters.is_full() {
            let some = self.work.min(1 + random.below(INPUT) as u64);
            let size = random.magnitude(1, LONGEST as u64) as usize;
            let letter = |count| {
                let (room, push) = (RoomName::LOBBY, Sized(size));
                Letter::Counted { room, push, from: own, count }
            };
            let letters: Vec<_> = (self.posted..self.posted + some).map(letter).collect();
            (self.work, self.posted) = (self.work - some, self.posted + some);
            self.letters.post(letters.into_iter());
        }
        self.letters.settle();
        let reads = self.work > 0 && !self.letters.is_full();
        self.asleep = !(self.unheard.len() > 0 || self.letters.has_any() || reads);
    }

    fn is_woken(&mut self) -> bool {
        let mut events: Vec<Event> = Vec::new();
        self.epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
        !events.is_empty()
    }
}

/// Runs a history. Returns how often a core had to wait for room.
fn history(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let count = 2 + random.below(3);
    let work = random.magnitude(1, 400);
    let core = |letters: Letters<_>| {
        let mut epoll = Epoll::edge_triggered().unwrap();
        letters.watch(&mut epoll, 0).unwrap();
        let work = if random.chance(700) { work } else { 0 };
        let slowness = random.pick(&[1, 1, 10, 100]);
        let (unheard, next) = (Vec::new().into_iter(), vec![0; count]);
        let asleep = work == 0;
        let (posted, answers) = (0, 0);
        Core { letters, epoll, unheard, work, posted, next, answers, asleep, slowness }
    };
    let mut all: Vec<Core> = Letters::new(count).unwrap().into_iter().map(core).collect();
    let mut waits = 0;
    loop {
        let mut can_run: Vec<usize> = Vec::new();
        for (index, core) in all.iter_mut().enumerate() {
            core.asleep &= !core.is_woken();
            if !core.asleep {
                can_run.push(index);
            }
        }
        if can_run.is_empty() {
            break;
        }
        let weights: Vec<_> = can_run.iter().map(|index| 100 / all[*index].slowness).collect();
        let index = can_run[random.weighted(&weights)];
        all[index].turn(&mut random);
        waits += u64::from(all[index].work > 0 && all[index].asleep);
        // All other cores may fill a box at the same time; answers are few bytes.
        let answer = size_of::<Letter<Sized>>();
        let answers = all.iter().map(|core| core.posted as usize).sum::<usize>() * answer;
        let most = FULL + (count - 1) * INPUT * (LONGEST + answer) + answers;
        for letterbox in &*all[0].letters.all {
            let bytes = letterbox.lock().bytes;
            assert!(bytes <= most, "history {seed}: a box has {bytes} bytes");
        }
    }
    let posted: Vec<u64> = all.iter().map(|core| core.posted).collect();
    for (own, core) in all.iter().enumerate() {
        assert_eq!(core.work, 0, "history {seed}: core {own} waits for room forever");
        assert_eq!(core.answers, posted[own] * (count as u64 - 1), "history {seed}");
        for (other, next) in core.next.iter().enumerate().filter(|(other, _)| *other != own) {
            assert_eq!(*next, posted[other], "history {seed}: core {own} heard all of {other}");
        }
        assert!(!core.letters.is_full());
    }
    waits
}

#[test]
fn boxes_stay_bounded_lose_nothing_and_wake_those_who_wait_for_room() {
    let waits: u64 = (0..200).map(history).sum();
    println!("{waits} waits for room");
    assert!(waits > 100, "{waits}");
}

#[test]
fn a_core_without_clients_is_needed_until_the_last_one_has_none() {
    let mut all: Vec<Letters<()>> = Letters::new(3).unwrap();
    let mut epoll = Epoll::edge_triggered().unwrap();
    all[0].watch(&mut epoll, 0).unwrap();
    assert!(all[0].is_needed() && all[1].is_needed() && all[0].is_needed());
    let mut events: Vec<Event> = Vec::new();
    epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
    assert!(events.is_empty());
    // The last one ends, with an error or because it has no clients.
    if !all[2].is_needed() {
        epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert!(!events.is_empty(), "the others are woken");
    }
    assert!(!all[0].is_needed() && !all[1].is_needed());
    all[0].take();
    drop(all.pop());
    all[0].post([()].into_iter());
    epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
    assert!(!events.is_empty(), "a core that ends wakes the others");
}
