//! The proxy before masters that Sentinels manage, in a seeded simulation. Masters die, are cut off, and come back as masters
//! before they are made replicas; Sentinels learn of a failover one after the other, are silent, refuse connections, or are
//! cut off and give the old master. See [`park`] for what is checked.
//!
//! `SENTINEL_SEED=n` repeats one history and prints its events.

mod client;
mod park;
mod world;

use regatta_testkit::{by_tier, histories, seen};
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

seen!(
    replies,
    errors,
    failovers,
    /// Old masters that died, that were cut off from the Sentinels, and that came back as masters.
    dead,
    isolated,
    back,
    demoted,
    /// Connections that were refused because the server was a replica, and requests that it refused.
    replicas,
    read_only,
    /// Sentinels that were silent, refused connections, or were cut off.
    silent,
    refusing,
    cut_off,
    announced,
    questions,
);

fn play(fault: Option<Fault>) -> impl Fn(u64, &mut Seen) -> Result<(), String> + Sync {
    move |seed, seen| World::new(seed, fault, false).run(seen)
}

#[test]
fn only_masters_that_a_majority_gives_are_used() {
    if let Some(seed) = histories::only("SENTINEL_SEED") {
        let found = World::new(seed, None, true).run(&mut Seen::default());
        panic!("seed {seed}: {found:?}");
    }
    let seen = histories::check("SENTINEL_SEED", by_tier(1_000, 100_000), play(None));
    seen.expect("no seed is named").assert_everything_happened();
}

/// In this history a master becomes a replica, refuses a write, and is elected again.
#[test]
fn requests_to_a_master_that_was_a_replica_do_not_overtake_those_before() {
    let mut seen = Seen::default();
    assert_eq!(play(None)(35_432, &mut seen), Ok(()));
    assert!(seen.read_only > 0);
}

#[test]
fn planted_faults_of_sentinels_are_found() {
    for fault in Fault::ALL {
        histories::find(fault, by_tier(1_000, 10_000), play(Some(fault)));
    }
}
