//! The proxy before a Redis Cluster, in a seeded simulation. Slots move key by key and at once, masters hand over to
//! replicas, and nodes learn of that one after the other. No connection is lost, so each request has exactly one right
//! reply, and only few errors are permitted: see [`client`].
//!
//! `CLUSTER_SEED=n` repeats one history and prints its events.

mod all_nodes;
mod client;
mod node;
mod world;

use crate::histories::{self, Counts, seen};
use regatta_testkit::by_tier;
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

seen!(
    replies,
    moved,
    ask,
    try_again,
    /// Slots that moved key by key, and at once; masters that handed over.
    migrations,
    atomic,
    handovers,
    /// Errors that clients got: of transactions, TRYAGAIN in a pipeline, and because a later command was first.
    aborted,
    passed,
    overtaken,
    transactions,
    questions,
);

/// Runs histories. A planted fault must be found in as many as the others.
fn run(fault: Option<Fault>) -> (Option<(u64, String)>, Seen) {
    histories::run(0..by_tier(1_200, 100_000), |seed, seen| {
        World::new(seed, fault, false).run(seen)
    })
}

#[test]
fn each_request_has_its_one_right_reply_while_slots_move() {
    if let Some(seed) = histories::only("CLUSTER_SEED") {
        let found = World::new(seed, None, true).run(&mut Seen::default());
        panic!("seed {seed}: {found:?}");
    }
    let (found, seen) = run(None);
    println!("{seen:#?}");
    if let Some((seed, found)) = found {
        panic!("CLUSTER_SEED={seed}: {found}");
    }
    seen.assert_everything_happened();
}

#[test]
fn planted_faults_of_a_cluster_are_found() {
    for fault in Fault::ALL {
        let (found, _) = run(Some(fault));
        let (seed, found) = found.unwrap_or_else(|| panic!("{fault:?} was not detected"));
        println!("{fault:?}: seed {seed}: {found}");
    }
}
