//! The proxy in a seeded simulation. Clients pipeline, read slowly, close and disappear. Nodes
//! crash, stall, reply in pieces and recover. The network splits bytes anywhere.
//!
//! Nodes are small Redis servers. Each client keeps a model of its own keys and checks every reply
//! against it: the model cannot explain a reply that is crossed, lost or duplicated. The seed of a
//! failure is printed; `SIMULATION_SEED=n` repeats that history alone and prints its events.

mod client;
mod cluster;
mod expect;
mod histories;
mod node;
mod pest;
mod seen;
mod sentinel;
mod wire;
mod world;

use histories::Counts;
use regatta_service::tls_engine::TlsEngine;
use regatta_shard::Proxy;
use regatta_testkit::by_tier;
use seen::{Fault, Seen};
use world::{Tested, World};

/// Number of histories. A planted fault must be found in as many.
fn histories() -> u64 {
    by_tier(1_200, 100_000)
}

fn run<E: Tested>(
    seeds: std::ops::Range<u64>,
    fault: Option<Fault>,
) -> (Option<(u64, String)>, Seen) {
    histories::run(seeds, |seed, seen| World::<E>::new(seed, fault, false).run(seen))
}

#[test]
fn no_reply_is_crossed_lost_or_duplicated() {
    if let Some(seed) = histories::only("SIMULATION_SEED") {
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
    if let Some(seed) = histories::only("TLS_SIMULATION_SEED") {
        let found = World::<TlsEngine<Proxy>>::new(seed, None, true).run(&mut Seen::default());
        panic!("seed {seed}: {found:?}");
    }
    let (found, _) = run::<TlsEngine<Proxy>>(0..histories() / 2, None);
    if let Some((seed, found)) = found {
        panic!("TLS_SIMULATION_SEED={seed}: {found}");
    }
}

#[test]
fn planted_faults_are_found() {
    for fault in Fault::ALL {
        let (found, _) = run::<Proxy>(0..histories(), Some(fault));
        let (seed, found) = found.unwrap_or_else(|| panic!("{fault:?} was not detected"));
        println!("{fault:?}: seed {seed}: {found}");
    }
}
