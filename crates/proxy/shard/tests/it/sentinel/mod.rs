//! The proxy before masters that Sentinels manage, in a seeded simulation. Masters die, are cut off, and come back as masters
//! before they are made replicas; Sentinels learn of a failover one after the other, are silent, refuse connections, or are
//! cut off and give the old master. See [`park`] for what is checked.
//!
//! `SENTINEL_SEED=n` repeats one history and prints its events.

mod client;
mod park;
mod world;

use regatta_testkit::by_tier;
use std::{
    env,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};
use world::World;

/// A fault that the checks must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// All Sentinels give what one of them knows, as if the proxy acted on that one alone.
    Minority,
    /// Sentinels give what they knew first now and then, as if answers of different moments were added.
    OldAnswers,
    /// A server says that it is a master whatever it is, as if it was not asked.
    NoRole,
    /// A server swaps two replies, as if the proxy mixed them up.
    Crossed,
}

impl Fault {
    const ALL: [Fault; 4] = [Fault::Minority, Fault::OldAnswers, Fault::NoRole, Fault::Crossed];
}

/// How often each event occurred, over all histories.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub replies: u64,
    pub errors: u64,
    pub failovers: u64,
    /// Old masters that died, that were cut off from the Sentinels, and that came back as masters.
    pub dead: u64,
    pub isolated: u64,
    pub back: u64,
    pub demoted: u64,
    /// Connections that were refused because the server was a replica, and requests that it refused.
    pub replicas: u64,
    pub read_only: u64,
    /// Sentinels that were silent, refused connections, or were cut off.
    pub silent: u64,
    pub refusing: u64,
    pub cut_off: u64,
    pub announced: u64,
    pub questions: u64,
}

impl Seen {
    fn all(&mut self) -> [&mut u64; 14] {
        [
            &mut self.replies,
            &mut self.errors,
            &mut self.failovers,
            &mut self.dead,
            &mut self.isolated,
            &mut self.back,
            &mut self.demoted,
            &mut self.replicas,
            &mut self.read_only,
            &mut self.silent,
            &mut self.refusing,
            &mut self.cut_off,
            &mut self.announced,
            &mut self.questions,
        ]
    }
}

/// Runs these histories on all cores. Returns the lowest failing seed found with its error.
fn run(most: u64, fault: Option<Fault>) -> (Option<(u64, String)>, Seen) {
    let next = AtomicU64::new(0);
    let work = || {
        let mut seen = Seen::default();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= most {
                return (None, seen);
            }
            if let Err(found) = World::new(seed, fault, false).run(&mut seen) {
                next.store(most, Relaxed);
                return (Some((seed, found)), seen);
            }
        }
    };
    thread::scope(|scope| {
        let count = thread::available_parallelism().map_or(2, usize::from);
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        let mut all = (None::<(u64, String)>, Seen::default());
        for worker in workers {
            let (found, mut seen) = worker.join().expect("a history does not panic");
            all.1.all().into_iter().zip(seen.all()).for_each(|(sum, more)| *sum += *more);
            all.0 = all.0.into_iter().chain(found).min();
        }
        all
    })
}

#[test]
fn only_masters_that_a_majority_gives_are_used() {
    if let Ok(seed) = env::var("SENTINEL_SEED") {
        let seed = seed.parse().expect("SENTINEL_SEED must be a number");
        let found = World::new(seed, None, true).run(&mut Seen::default());
        panic!("seed {seed}: {found:?}");
    }
    let (found, mut seen) = run(by_tier(2_000, 100_000), None);
    println!("{seen:#?}");
    if let Some((seed, found)) = found {
        panic!("SENTINEL_SEED={seed}: {found}");
    }
    assert!(seen.all().into_iter().all(|count| *count > 0), "something never happened");
}

#[test]
fn planted_faults_of_sentinels_are_found() {
    for fault in Fault::ALL {
        let (found, _) = run(10_000, Some(fault));
        let (seed, found) = found.unwrap_or_else(|| panic!("{fault:?} was not detected"));
        println!("{fault:?}: seed {seed}: {found}");
    }
}
