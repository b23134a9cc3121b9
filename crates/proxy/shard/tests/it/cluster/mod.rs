//! The proxy before a Redis Cluster, in a seeded simulation. Slots move key by key and at once, masters hand over to
//! replicas, and nodes learn of that one after the other. In most histories no connection is lost, so each request has
//! exactly one right reply, and only few errors are permitted: see [`client`]. In others masters die, and their replicas may
//! lack some keys: then a request for one of their slots may fail, and what a client knows of these keys counts no longer.
//!
//! `CLUSTER_SEED=n` repeats one history and prints its events.

mod all_nodes;
mod client;
mod node;
mod world;

use regatta_testkit::{by_tier, histories, seen};
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
    /// A node carries out a script a second time that makes the error MOVED or ASK, as if the proxy followed that.
    WrongSlot,
    /// A node carries out a request for a slot of another node, as if it was not sent where MOVED says.
    WrongNode,
    /// A request with several keys that should get TRYAGAIN is carried out after a later one of the client, as if it was
    /// sent again while that was under way.
    TryAgainOvertaken,
}

impl Fault {
    const ALL: [Fault; 7] = [
        Fault::NoAsking,
        Fault::Overtaken,
        Fault::Twice,
        Fault::OldMap,
        Fault::WrongSlot,
        Fault::WrongNode,
        Fault::TryAgainOvertaken,
    ];
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
    /// Scripts that made errors of a cluster, and scripts that were not carried out because their slot was elsewhere.
    forged,
    refused_scripts,
    /// Masters that died, replicas of them that lacked keys, and errors because of that.
    deaths,
    lost_tails,
    down,
    questions,
);

fn play(fault: Option<Fault>) -> impl Fn(u64, &mut Seen) -> Result<(), String> + Sync {
    move |seed, seen| World::new(seed, fault, false).run(seen)
}

#[test]
fn each_request_has_its_one_right_reply_while_slots_move() {
    if let Some(seed) = histories::only("CLUSTER_SEED") {
        let found = World::new(seed, None, true).run(&mut Seen::default());
        panic!("seed {seed}: {found:?}");
    }
    let seen = histories::check("CLUSTER_SEED", by_tier(2_000, 100_000), play(None));
    seen.expect("no seed is named").assert_everything_happened();
}

#[test]
fn planted_faults_of_a_cluster_are_found() {
    for fault in Fault::ALL {
        histories::find(fault, by_tier(2_000, 10_000), play(Some(fault)));
    }
}
