//! A fixed rate: as many are sent as were asked for, and what could not be sent is counted.

mod common;

use common::{Server, assert_undisturbed, double, plan, run};
use regatta_load::{Error, Plan, Until, WarmUp};
use std::{num::NonZeroU32, time::Duration};

const RATE: u32 = 1_000;

fn at_rate(server: &Server) -> Plan {
    Plan { rate: NonZeroU32::new(RATE), ..plan(server.address) }
}

/// A window of 300 ms. All pipelines together hold more than is due in it, so that a stall of
/// whatever length changes nothing.
#[test]
fn as_many_are_sent_as_the_rate_asks_for() {
    for threads in [1, 2] {
        let server = Server::double();
        let plan = Plan { connections: 60, pipeline: 8, threads, ..at_rate(&server) };
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        assert_eq!(tally.unsent, 0);
        // Beside the opening requests; a thread may send once in a warm-up of no length.
        let sent = server.requests() - 60;
        assert!((300..=300 + threads as u64).contains(&sent), "{sent}");
        assert!(tally.requests <= sent, "{}", tally.requests);
    }
}

#[test]
fn the_warm_up_has_the_same_rate() {
    let server = Server::double();
    let warm_up = WarmUp::Fixed(Duration::from_millis(200));
    let plan = Plan { connections: 60, pipeline: 10, warm_up, ..at_rate(&server) };
    let tally = run(&plan).unwrap();
    assert_undisturbed(&tally);
    let before = server.requests() - 60 - 300;
    let due = tally.warm_up_ns / (1_000_000_000 / u64::from(RATE)) + 2;
    assert!((150..=due).contains(&before), "{before} of {due}");
}

#[test]
fn the_load_sleeps_between_requests() {
    let server = Server::double();
    let rate = NonZeroU32::new(20);
    let until = Until::Elapsed(Duration::from_secs(1));
    let tally = run(&Plan { connections: 4, rate, until, ..at_rate(&server) }).unwrap();
    assert_undisturbed(&tally);
    assert!((15..=21).contains(&tally.requests), "{}", tally.requests);
    assert!(tally.load_cpu_ns < tally.window_ns / 4, "it spun for {} ns", tally.load_cpu_ns);
}

#[test]
fn what_a_slow_server_leaves_no_place_for_is_counted_and_never_exceeds_the_pipeline() {
    for threads in [1, 2] {
        let server = Server::lines(|_, line| {
            std::thread::sleep(Duration::from_millis(10));
            Some(double(line))
        });
        let plan = Plan { connections: 2, pipeline: 2, threads, ..at_rate(&server) };
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        // Two connections answer at most every 10 ms each, and 300 were due.
        assert!(tally.requests <= 2 * 31 + 4, "{}", tally.requests);
        let sent = server.requests() - 2;
        let due = sent + tally.unsent;
        // What was sent in a warm-up of no length is not due in the window.
        assert!((300..=300 + threads as u64).contains(&due), "{sent} + {}", tally.unsent);
        assert!(tally.unsent > 200);
    }
}

#[test]
fn a_lost_connection_leaves_the_schedule_to_the_others() {
    let server = Server::lines(|i, line| (i < 20).then(|| double(line)));
    let tally = run(&Plan { connections: 30, pipeline: 4, ..at_rate(&server) }).unwrap();
    assert_eq!(tally.first_wrong, None);
    assert!(tally.requests > 100, "{}", tally.requests);
    assert_eq!(tally.histogram.len(), tally.requests);
}

#[test]
fn a_rate_needs_a_window_of_time_and_connections_that_are_kept() {
    let server = Server::double();
    let plan = at_rate(&server);
    for refused in
        [Plan { churn: true, ..plan.clone() }, Plan { until: Until::Requests(100), ..plan.clone() }]
    {
        match run(&refused) {
            Err(Error::Plan(why)) => assert!(why.contains("a rate needs a window"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(server.requests(), 0);
}
