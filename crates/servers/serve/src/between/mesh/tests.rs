//! Tests of the mesh over real sockets and a real epoll. Each process is a thread of a test, or
//! runs turn by turn.

use super::*;
use regatta_engine::{Push, RoomName};
use regatta_sys::epoll::Epoll;
use std::{
    ops::Range,
    time::{Duration, Instant},
};

/// Bytes that start with an 8-byte number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bytes(Vec<u8>);

impl Push for Bytes {}

impl Wire for Bytes {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= 8).then(|| Bytes(bytes.to_vec()))
    }
}

/// A process, and the letters that it has received.
struct Process {
    mesh: Mesh<Bytes>,
    epoll: Epoll,
    events: Vec<Event>,
    heard: Vec<Letter<Bytes>>,
}

const TOKEN: u64 = 7;

fn meshes(count: usize) -> Vec<Mesh<Bytes>> {
    Sockets::new(count).unwrap().each()
}

fn processes(count: usize) -> Vec<Process> {
    meshes(count).into_iter().map(Process::new).collect()
}

impl Process {
    fn new(mesh: Mesh<Bytes>) -> Process {
        let mut epoll = Epoll::edge_triggered().unwrap();
        mesh.watch(&mut epoll, TOKEN).unwrap();
        Process { mesh, epoll, events: Vec::new(), heard: Vec::new() }
    }

    /// Posts letters with consecutive numbers to all others.
    fn post(&mut self, numbers: Range<u64>, size: usize) {
        let from = self.mesh.own as u32;
        let letter = |count: u64| {
            let push = Bytes([&count.to_le_bytes()[..], &vec![from as u8; size]].concat());
            Letter::Counted { room: RoomName::of("red"), push, from, count }
        };
        let letters: Vec<_> = numbers.map(letter).collect();
        self.mesh.post(letters.into_iter());
    }

    /// Runs a turn like a reactor. Returns whether anything happened.
    fn turn(&mut self, wait: Duration) -> bool {
        self.mesh.settle(&mut self.epoll, TOKEN).unwrap();
        let wait = if self.mesh.has_any() { Duration::ZERO } else { wait };
        self.epoll.wait(&mut self.events, Some(wait)).unwrap();
        for event in &self.events {
            self.mesh.ready((event.token - TOKEN) as usize, event);
        }
        let before = self.heard.len();
        if !self.events.is_empty() || self.mesh.has_any() {
            self.heard.extend(self.mesh.take().unwrap());
        }
        !self.events.is_empty() || self.heard.len() > before
    }

    /// Returns the numbers of the letters received from another process.
    fn heard_of(&self, other: u32) -> Vec<u64> {
        let number = |letter: &Letter<Bytes>| match letter {
            Letter::Counted { room, push, from, count } if *from == other => {
                assert_eq!((room, &push.0[..8]), (&RoomName::of("red"), &count.to_le_bytes()[..]));
                assert!(push.0[8..].iter().all(|byte| u32::from(*byte) == other));
                Some(*count)
            }
            _ => None,
        };
        self.heard.iter().filter_map(number).collect()
    }

    /// Posts until clients would not be read. Returns the number of letters.
    fn fill(&mut self, size: usize) -> u64 {
        let (mut posted, most) = (0, 64 * (1 << 20) / size as u64);
        while !self.mesh.is_full() {
            assert!(posted < most, "not full after 64 MiB");
            self.post(posted..posted + 1, size);
            posted += 1;
        }
        posted
    }

    fn waiting(&self) -> usize {
        self.mesh.siblings.iter().flatten().map(Sibling::waiting).sum()
    }
}

/// Runs turns of all processes until nothing happens.
fn settle(all: &mut [Process]) {
    let until = Instant::now() + Duration::from_secs(20);
    let mut any = true;
    while any {
        any = false;
        for one in &mut *all {
            any |= one.turn(Duration::ZERO);
        }
        assert!(Instant::now() < until, "the processes never become idle");
    }
}

#[test]
fn a_letter_is_visible_as_soon_as_it_is_posted() {
    let mut all = processes(3);
    assert!(all.iter().all(|one| !one.mesh.has_any()));
    assert_eq!(all[2].mesh.seat(), (2, 3));
    all[0].post(1..2, 10);
    assert!(!all[0].mesh.has_any() && all[1].mesh.has_any() && all[2].mesh.has_any());
    let heard = all[1].mesh.take().unwrap();
    assert_eq!(heard.len(), 1);
    assert!(!all[1].mesh.has_any() && all[2].mesh.has_any());
}

#[test]
fn an_answer_goes_only_to_the_process_that_waits_for_it() {
    let mut all = processes(3);
    let answer = Letter::Queued { to: 2, count: 5, members: 9 };
    all[0].mesh.post([answer.clone()].into_iter());
    settle(&mut all);
    assert!(all[1].heard.is_empty());
    assert_eq!(all[2].heard, [answer]);
}

/// Letters have sizes around the read size and the queue limit. A seed decides the order of posts
/// and turns.
#[test]
fn all_letters_arrive_once_and_in_order_per_sender() {
    for seed in 0..60_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = |below: u64| {
            // xorshift64 (Marsaglia, 2003)
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut all = processes(2 + (seed % 3) as usize);
        let mut posted = vec![0; all.len()];
        for _ in 0..80 {
            let one = random(all.len() as u64) as usize;
            if random(3) == 0 || all[one].mesh.is_full() {
                all[one].turn(Duration::ZERO);
                continue;
            }
            let (many, size) = match random(4) {
                0 => (1, random(300_000)),
                1 => (1 + random(3), READ as u64 - 40 + random(80)),
                _ => (1 + random(200), random(200)),
            };
            all[one].post(posted[one]..posted[one] + many, size as usize);
            posted[one] += many;
        }
        settle(&mut all);
        for (own, process) in all.iter().enumerate() {
            for (other, posted) in posted.iter().enumerate() {
                let expected: Vec<u64> = if own == other { vec![] } else { (0..*posted).collect() };
                assert_eq!(process.heard_of(other as u32), expected, "seed {seed}");
            }
            assert!(!process.mesh.has_any() && !process.mesh.is_full(), "seed {seed}");
            assert_eq!(process.waiting(), 0, "seed {seed}");
        }
    }
}

#[test]
fn a_stalled_sibling_fills_a_bounded_queue_and_receives_everything_later() {
    for size in [10, 1000, 100_000] {
        let mut all = processes(3);
        let posted = all[0].fill(size);
        // The third process reads, so nothing is pending for it.
        let until = Instant::now() + Duration::from_secs(20);
        while all[2].turn(Duration::ZERO) || all[0].mesh.siblings[2].as_ref().unwrap().waiting() > 0
        {
            assert!(Instant::now() < until, "letters are pending for the third process");
            all[0].turn(Duration::ZERO);
        }
        assert_eq!(all[2].heard_of(0).len() as u64, posted);
        let waiting = all[0].waiting();
        assert!((FULL..FULL + size + 100).contains(&waiting), "{waiting} bytes pending");
        assert!(all[0].mesh.is_full());
        // It still receives letters from the others.
        all[2].post(0..1, size);
        all[0].turn(Duration::ZERO);
        assert_eq!(all[0].heard_of(2), [0]);
        settle(&mut all);
        assert_eq!(all[1].heard_of(0), (0..posted).collect::<Vec<_>>());
        assert!(!all[0].mesh.is_full());
        let capacity: usize =
            all[0].mesh.siblings.iter().flatten().map(|one| one.out.capacity()).sum();
        assert!(capacity <= 2 * FULL, "{capacity} bytes allocated");
    }
}

/// Both processes write until neither has room. Then each answers all letters that it reads.
#[test]
fn processes_that_write_to_each_other_do_not_deadlock() {
    let mut all = processes(2);
    let posted = [all[0].fill(500), all[1].fill(500)];
    let mut answered = [0, 0];
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let mut any = false;
        for own in [0, 1] {
            any |= all[own].turn(Duration::ZERO);
            let to = 1 - own as u32;
            let counts = all[own].heard_of(to).split_off(answered[own]);
            answered[own] += counts.len();
            let answers: Vec<_> =
                counts.into_iter().map(|count| Letter::Queued { to, count, members: 1 }).collect();
            all[own].mesh.post(answers.into_iter());
            assert!(all[own].waiting() < 2 * FULL);
        }
        if !any {
            break;
        }
        assert!(Instant::now() < until);
    }
    for own in [0, 1] {
        let answers =
            all[own].heard.iter().filter(|letter| letter.to() == Some(own as u32)).count();
        assert_eq!(answers as u64, posted[own]);
        assert_eq!(all[own].heard_of(1 - own as u32).len() as u64, posted[1 - own]);
        assert!(!all[own].mesh.is_full());
    }
}

#[test]
fn a_dead_sibling_is_dropped_and_keeps_no_process_busy() {
    let mut all = processes(3);
    all[1].post(0..3, 100);
    all[0].fill(1000);
    let dead = all.remove(1);
    drop(dead);
    settle(&mut all);
    assert_eq!(all[0].heard_of(1), [0, 1, 2], "its last letters are received");
    assert!(!all[0].mesh.is_full(), "nothing is pending for it");
    assert_eq!(all[0].waiting(), 0);
    let before = all[1].heard.len();
    all[0].post(7..8, 1000);
    settle(&mut all);
    assert_eq!(all[1].heard.len(), before + 1, "the others continue");
    assert!(all.iter().all(|one| !one.mesh.has_any()));
}

#[test]
fn a_waiting_process_is_woken_by_a_letter_and_by_room() {
    let mut meshes = meshes(2);
    let mut other = Process::new(meshes.remove(1));
    let one = meshes.remove(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let mut one = Process::new(one);
            for n in 0..20_000 {
                one.post(n..n + 1, 1000);
                while one.mesh.is_full() {
                    assert!(one.turn(Duration::from_secs(20)), "no room in 20 s");
                }
            }
            while one.waiting() > 0 {
                assert!(one.turn(Duration::from_secs(20)), "no room in 20 s");
            }
            one.mesh // keep it open until everything is read
        });
        while other.heard.len() < 20_000 {
            assert!(other.turn(Duration::from_secs(20)), "no letter in 20 s");
        }
        drop(writer.join().unwrap());
    });
    assert_eq!(other.heard_of(0), (0..20_000).collect::<Vec<_>>());
}

#[test]
fn bytes_that_are_not_a_letter_are_an_error() {
    let mut all = processes(2);
    let socket = &all[0].mesh.siblings[1].as_ref().unwrap().socket;
    assert_eq!(net::write(socket, b"\x01\0\0\0\xff").unwrap(), 5);
    assert!(all[1].mesh.take().is_err());
}
