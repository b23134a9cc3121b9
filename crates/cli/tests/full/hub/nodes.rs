//! Three hubs, their broker, and 3,000 members, while the broker is killed and restarted, while it is stopped, and while
//! Sentinels or a cluster replace it.
//!
//! The load checks every delivery: exactly once, in one order for all members at all hubs; a loss must be announced
//! by a gap. It continues after a wrong delivery, and the table shows its counts, and how they compare with those of
//! the hubs. `it/hub/load_on_nodes` shows that each of these columns finds a lie.

use crate::support::{
    hubs::{HubCluster, Hubs, Outcome, Shape},
    shard::sentinel::Park,
};
use regatta_testkit::machine;
use std::{thread, time::Duration};

const SHAPE: Shape = Shape { members: 3_000, rate: "20/s", length: "45s", timeout: "30s" };
/// Deliveries of each load, at least.
const DELIVERIES: u64 = 1_000_000;
/// How long the broker is stopped.
const STOPPED: Duration = Duration::from_secs(10);

fn killed(hubs: &mut Hubs) {
    hubs.broker.kill();
    hubs.see_the_broker(false);
    hubs.broker.revive();
    hubs.see_the_broker(true);
    hubs.deliver(100 * SHAPE.members);
}

fn stopped(hubs: &mut Hubs) {
    hubs.broker.signal("STOP");
    hubs.see_the_broker(false);
    // The fault itself takes this long.
    thread::sleep(STOPPED);
    hubs.broker.signal("CONT");
    hubs.see_the_broker(true);
    hubs.deliver(100 * SHAPE.members);
}

fn killed_for_good(hubs: &mut Hubs<Park>) {
    hubs.broker.kill_master();
    hubs.see_the_failover();
    hubs.deliver(100 * SHAPE.members);
}

fn replaced(hubs: &mut Hubs<Park>) {
    hubs.broker.replace();
    hubs.see_the_failover();
    hubs.deliver(100 * SHAPE.members);
}

fn killed_in_cluster(hubs: &mut Hubs<HubCluster>) {
    hubs.broker.kill_master();
    hubs.see_the_failover();
    hubs.deliver(100 * SHAPE.members);
}

fn replaced_in_cluster(hubs: &mut Hubs<HubCluster>) {
    hubs.broker.replace();
    hubs.see_the_failover();
    hubs.deliver(100 * SHAPE.members);
}

/// Runs a load, and prints its row. Returns what is wrong with it.
fn row<B>(fault: &str, mut hubs: Hubs<B>, run: fn(&mut Hubs<B>)) -> Option<String> {
    let outcome = hubs.load(SHAPE, run);
    let counts = outcome.counts().map(|(_, count)| count.to_string());
    let faults = outcome.faults().map(|(_, count)| count.to_string());
    println!("| {fault} | {} | {} |", counts.join(" | "), faults.join(" | "));
    let Outcome { deliveries, gaps, .. } = outcome;
    let has_outage = fault != "left alone";
    let has_gaps = if has_outage { gaps >= SHAPE.members } else { gaps == 0 };
    let is_right = outcome.is_right() && deliveries >= DELIVERIES && has_gaps;
    (!is_right).then(|| format!("{fault}: {outcome:?}"))
}

#[test]
fn every_loss_is_announced_and_the_order_is_one_whatever_the_broker_does() {
    let _turn = machine::alone();
    let empty = Outcome::default();
    let heads = empty.counts().map(|(head, _)| head).into_iter();
    let heads: Vec<_> = heads.chain(empty.faults().map(|(head, _)| head)).collect();
    println!("\n| the broker is | {} |", heads.join(" | "));
    println!("|{}", "---|".repeat(1 + heads.len()));
    // All rows are printed before one of them fails the test.
    let wrong = [
        row("left alone", Hubs::start(), |_| {}),
        row("killed and restarted", Hubs::start(), killed),
        row("stopped for 10 s", Hubs::start(), stopped),
        row("killed, and its replica follows", Hubs::start_at_sentinels(), killed_for_good),
        row("replaced by its replica", Hubs::start_at_sentinels(), replaced),
        row("killed in a cluster", Hubs::start_in_cluster(), killed_in_cluster),
        row("replaced in a cluster", Hubs::start_in_cluster(), replaced_in_cluster),
    ];
    assert_eq!(wrong.into_iter().flatten().collect::<Vec<_>>(), [""; 0]);
}
