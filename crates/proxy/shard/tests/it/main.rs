//! The proxy in a seeded simulation. Clients pipeline, read slowly, close and disappear. Nodes
//! crash, stall, reply in pieces and recover. The network splits bytes anywhere.
//!
//! Nodes are small Redis servers. Each client keeps a model of its own keys and checks every reply
//! against it: the model cannot explain a reply that is crossed, lost or duplicated. The seed of a
//! failure is printed; `SIMULATION_SEED=n` repeats that history alone and prints its events.

mod client;
mod cluster;
mod driver;
mod expect;
mod node;
mod pest;
mod seen;
mod sentinel;
mod wire;
mod world;

use regatta_service::tls_engine::TlsEngine;
use regatta_shard::Proxy;
use regatta_testkit::{by_tier, histories};
use seen::{Fault, Seen};
use world::{Tested, World};

fn play<E: Tested>(fault: Option<Fault>) -> impl Fn(u64, &mut Seen) -> Result<(), String> + Sync {
    move |seed, seen| World::<E>::new(seed, fault, false).run(seen)
}

/// Plays the histories. If this variable of the environment has the seed of one, plays that alone, and prints its events.
fn check<E: Tested>(variable: &str, every_change: u64) -> Seen {
    if let Some(seed) = histories::only(variable) {
        let found = World::<E>::new(seed, None, true).run(&mut Seen::default());
        panic!("seed {seed}: {found:?}");
    }
    let seen = histories::check(variable, by_tier(every_change, 100_000), play::<E>(None));
    seen.expect("no seed is named")
}

#[test]
fn no_reply_is_crossed_lost_or_duplicated() {
    check::<Proxy>("SIMULATION_SEED", 1_200).assert_everything_happened();
}

/// The engine for TLS passes everything on as it is, in the same histories.
#[test]
fn the_same_holds_inside_the_engine_for_tls() {
    check::<TlsEngine<Proxy>>("TLS_SIMULATION_SEED", 600);
}

#[test]
fn planted_faults_are_found() {
    for fault in Fault::ALL {
        histories::find(fault, by_tier(1_200, 10_000), play::<Proxy>(Some(fault)));
    }
}
