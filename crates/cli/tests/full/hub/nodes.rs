//! Three hubs, their broker, and 3,000 members, while the broker is killed and restarted, and while it is stopped.
//!
//! The load checks every delivery: exactly once, in one order for all members at all hubs; a loss must be announced
//! by a gap. Its counts are compared with those of the hubs. A failover between brokers is a further row, once hubs
//! follow one.

use crate::support::hubs::{Hubs, Outcome, Shape};
use regatta_testkit::machine;
use std::{thread, time::Duration};

const SHAPE: Shape = Shape { members: 3_000, rate: "20/s", length: "45s" };
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

type Fault = (&'static str, fn(&mut Hubs));

const FAULTS: [Fault; 3] =
    [("left alone", |_| {}), ("killed and restarted", killed), ("stopped for 10 s", stopped)];

#[test]
fn every_loss_is_announced_and_the_order_is_one_whatever_the_broker_does() {
    let _turn = machine::alone();
    let members = SHAPE.members;
    println!(
        "\n| the broker is | deliveries | gaps | missed with a gap | missed without | doubled or in another order \
         | not published | unknown |\n|---|---|---|---|---|---|---|---|"
    );
    for (fault, run) in FAULTS {
        let outcome = Hubs::start().load(SHAPE, run);
        let lost = outcome.lost(members);
        let Outcome { deliveries, gaps, missed, not_published, unknown, wrong, .. } = outcome;
        println!(
            "| {fault} | {deliveries} | {gaps} | {missed} | {lost} | {wrong} | {not_published} | {unknown} |"
        );
        assert_eq!((lost, wrong), (0, 0), "{fault}: {outcome:?}");
        assert!(deliveries >= DELIVERIES, "{fault}: {outcome:?}");
        let outages = u64::from(fault != "left alone");
        assert!(gaps >= outages * members && (outages == 1 || gaps == 0), "{fault}: {outcome:?}");
    }
}
