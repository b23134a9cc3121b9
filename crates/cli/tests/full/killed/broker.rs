//! The broker of a standing fleet is killed during a load, and comes back soon or stays away.

use super::{
    GONE_WITHIN, Row,
    fleet::Fleet,
    loads::{PHASES, gone, last, result, sprung},
    print,
};
use std::{fs, thread, time::Duration};

/// How long the broker is away, if it comes back.
const AWAY: Duration = Duration::from_secs(1);

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_load_counts_if_its_broker_is_killed_in_any_phase_and_is_back_soon() {
    let mut fleet = Fleet::new();
    let mut rows = Vec::new();
    for (phase, text) in PHASES {
        fleet.make_ready();
        let _ = fs::remove_file(fleet.course.path("out.json"));
        let broker = fleet.broker.clone();
        let trap = fleet.trap(text, move || broker.kill());
        let leader = fleet.course.started(fleet.load());
        let killed_at = sprung(phase, &trap);
        // The outage is what is tested.
        thread::sleep(AWAY);
        fleet.broker.start();
        let ended = leader.ended();
        let reported = killed_at.elapsed();
        assert_eq!(ended.status.code(), Some(0), "{phase}: {}", ended.stderr);
        let result = result(&fleet).expect("a result");
        let agents = result["agents"]["agents"].as_array().unwrap();
        let sum: u64 = agents.iter().map(|agent| agent["requests"].as_u64().unwrap()).sum();
        // 400 per second, for 2 s.
        assert_eq!((&result["requests"], result["failed"].as_f64()), (&sum.into(), Some(0.0)));
        assert!(sum >= 700, "{phase}: {result:#}");
        let gone = gone(&fleet, phase, killed_at);
        rows.push(Row { phase, reported, gone, outcome: format!("counted: {sum} requests") });
    }
    print("the broker, which is back after 1 s", &rows);
    fleet.end();
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_load_is_void_if_its_broker_is_killed_in_any_phase_and_stays_away() {
    // At once, because each takes as long as the lease.
    let phases = PHASES.map(|phase| thread::spawn(move || without_broker(phase)));
    let rows = phases.map(|phase| phase.join().expect("the message is above"));
    print("the broker, which stays away", &rows);
}

fn without_broker((phase, text): (&'static str, (&'static str, usize))) -> Row {
    let fleet = Fleet::new();
    let broker = fleet.broker.clone();
    let trap = fleet.trap(text, move || broker.kill());
    let leader = fleet.course.started(fleet.load());
    let killed_at = sprung(phase, &trap);
    let ended = leader.ended();
    let reported = killed_at.elapsed();
    let outcome = last(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{phase}: {}", ended.stderr);
    let expected = ": the broker could not be reached for 10s";
    assert!(outcome.ends_with(expected), "{phase}: {}", ended.stderr);
    // After the lease, because it may come back until then.
    assert!(reported < GONE_WITHIN, "{phase}: reported after {reported:?}: {outcome}");
    if let Some(result) = result(&fleet) {
        assert!(result["void"].is_string(), "{phase}: {result:#}");
    }
    let gone = gone(&fleet, phase, killed_at);
    fleet.end();
    Row { phase, reported, gone, outcome }
}
