//! The proxy before a Redis Cluster, in a seeded simulation. Slots move key by key and at once, masters hand over to
//! replicas, and nodes learn of that one after the other. No connection is lost, so each request has exactly one right
//! reply, and only few errors are permitted: see [`client`].
//!
//! `CLUSTER_SEED=n` repeats one history and prints its events.

mod all_nodes;
mod client;
mod node;
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
    /// A node does not see ASKING, as if it was not sent directly before the request.
    NoAsking,
    /// A node carries out two requests of a client in the other order, as if they were sent again in that order.
    Overtaken,
    /// A node that gets a slot carries out a request a second time, as if it was sent again although it was applied.
    Twice,
    /// A node reports its first view of the cluster with the present epoch, as if the proxy adopted an old one.
    OldMap,
}

impl Fault {
    const ALL: [Fault; 4] = [Fault::NoAsking, Fault::Overtaken, Fault::Twice, Fault::OldMap];
}

/// How often each event occurred, over all histories.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub replies: u64,
    pub moved: u64,
    pub ask: u64,
    pub try_again: u64,
    /// Slots that moved key by key, and at once; masters that handed over.
    pub migrations: u64,
    pub atomic: u64,
    pub handovers: u64,
    /// Errors that clients got: of transactions, TRYAGAIN in a pipeline, and because a later command was first.
    pub aborted: u64,
    pub passed: u64,
    pub overtaken: u64,
    pub transactions: u64,
    pub questions: u64,
}

impl Seen {
    fn all(&mut self) -> [&mut u64; 12] {
        [
            &mut self.replies,
            &mut self.moved,
            &mut self.ask,
            &mut self.try_again,
            &mut self.migrations,
            &mut self.atomic,
            &mut self.handovers,
            &mut self.aborted,
            &mut self.passed,
            &mut self.overtaken,
            &mut self.transactions,
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
fn each_request_has_its_one_right_reply_while_slots_move() {
    if let Ok(seed) = env::var("CLUSTER_SEED") {
        let seed = seed.parse().expect("CLUSTER_SEED must be a number");
        let found = World::new(seed, None, true).run(&mut Seen::default());
        panic!("seed {seed}: {found:?}");
    }
    let (found, mut seen) = run(by_tier(10_000, 100_000), None);
    println!("{seen:#?}");
    if let Some((seed, found)) = found {
        panic!("CLUSTER_SEED={seed}: {found}");
    }
    assert!(seen.all().into_iter().all(|count| *count > 0), "something never happened");
}

#[test]
fn planted_faults_of_a_cluster_are_found() {
    for fault in Fault::ALL {
        let (found, _) = run(10_000, Some(fault));
        let (seed, found) = found.unwrap_or_else(|| panic!("{fault:?} was not detected"));
        println!("{fault:?}: seed {seed}: {found}");
    }
}
