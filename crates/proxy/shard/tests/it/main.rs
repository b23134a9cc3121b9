//! The proxy in a seeded simulation. Clients pipeline, read slowly, close and disappear. Nodes
//! crash, stall, reply in pieces and recover. The network splits bytes anywhere.
//!
//! Nodes are small Redis servers. Each client keeps a model of its own keys and checks every reply
//! against it: the model cannot explain a reply that is crossed, lost or duplicated. The seed of a
//! failure is printed; `SIMULATION_SEED=n` repeats that history alone and prints its events.

mod client;
mod cluster;
mod expect;
mod node;
mod pest;
mod seen;
mod sentinel;
mod wire;
mod world;

use regatta_service::tls_engine::TlsEngine;
use regatta_shard::Proxy;
use regatta_testkit::by_tier;
use seen::{Fault, Seen};
use std::{
    env,
    panic::{self, AssertUnwindSafe},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};
use world::{Tested, World};

fn histories() -> u64 {
    by_tier(10_000, 100_000)
}

/// Runs these histories on all cores, until one fails. Returns the lowest failing seed found with its
/// error, and the counts of all events.
fn run<E: Tested>(
    seeds: std::ops::Range<u64>,
    fault: Option<Fault>,
) -> (Option<(u64, String)>, Seen) {
    let next = AtomicU64::new(seeds.start);
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        let work = || {
            let mut seen = Seen::default();
            loop {
                let seed = next.fetch_add(1, Relaxed);
                if seed >= seeds.end {
                    return (None, seen);
                }
                let history = || World::<E>::new(seed, fault, false).run(&mut seen);
                let ended = panic::catch_unwind(AssertUnwindSafe(history));
                let ended = ended.unwrap_or_else(|_| Err("it panics".into()));
                if let Err(found) = ended {
                    next.store(seeds.end, Relaxed);
                    return (Some((seed, found)), seen);
                }
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = (None::<(u64, String)>, Seen::default());
        for worker in workers {
            let (found, seen) = worker.join().expect("a history does not panic");
            all.1.add(&seen);
            if let Some(found) = found
                && all.0.as_ref().is_none_or(|first| found.0 < first.0)
            {
                all.0 = Some(found);
            }
        }
        all
    })
}

#[test]
fn no_reply_is_crossed_lost_or_duplicated() {
    if let Ok(seed) = env::var("SIMULATION_SEED") {
        let seed = seed.parse().expect("SIMULATION_SEED must be a number");
        let found = World::<Proxy>::new(seed, None, true).run(&mut Seen::default());
        panic!("seed {seed}: {found:?}");
    }
    let (found, seen) = run::<Proxy>(0..histories(), None);
    println!("{seen:#?}");
    if let Some((seed, found)) = found {
        panic!("SIMULATION_SEED={seed}: {found}");
    }
    seen.assert_everything_happened();
}

/// The engine for TLS passes everything on as it is, in the same histories.
#[test]
fn the_same_holds_inside_the_engine_for_tls() {
    if let Ok(seed) = env::var("TLS_SIMULATION_SEED") {
        let seed = seed.parse().expect("TLS_SIMULATION_SEED must be a number");
        let found = World::<TlsEngine<Proxy>>::new(seed, None, true).run(&mut Seen::default());
        panic!("seed {seed}: {found:?}");
    }
    let (found, _) = run::<TlsEngine<Proxy>>(0..histories() / 4, None);
    if let Some((seed, found)) = found {
        panic!("TLS_SIMULATION_SEED={seed}: {found}");
    }
}

#[test]
fn planted_faults_are_found() {
    for fault in Fault::ALL {
        let (found, _) = run::<Proxy>(0..20_000, Some(fault));
        let (seed, found) = found.unwrap_or_else(|| panic!("{fault:?} was not detected"));
        println!("{fault:?}: seed {seed}: {found}");
    }
}
