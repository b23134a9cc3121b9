//! An agent, or the leader, of a load over a standing fleet is killed.

use super::{
    GONE_WITHIN, REPORTED_WITHIN, Row,
    fleet::{Fleet, kill},
    print,
};
use crate::support::{until, until_within};
use serde_json::Value;
use std::{
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// The phases of a load, each with a text that is on its way then, and at which of its occurrences.
pub const PHASES: [(&str, (&str, usize)); 9] = [
    ("setting the lease", (r#""lease":"#, 2)),
    // Of 64 for each agent.
    ("comparing clocks", (r#""t1_ns""#, 100)),
    ("preparing", (r#""prepare":"#, 2)),
    ("connecting", (r#""order":"connect""#, 2)),
    ("warming up", (r#""entered":"warm-up""#, 2)),
    ("window is ordered", (r#""order":"open-window""#, 2)),
    ("measuring", (r#""entered":"open-window""#, 6)),
    ("counting", (r#""counted":"#, 1)),
    ("comparing clocks again", (r#""t1_ns""#, 164)),
];

/// The result of a load in its file. `None`: there is none. The file is made before anything starts.
pub fn result(fleet: &Fleet) -> Option<Value> {
    let text = fs::read_to_string(fleet.course.path("out.json")).ok()?;
    (!text.is_empty()).then(|| serde_json::from_str(&text).unwrap())
}

/// Waits until nothing is left of a load. Returns how long that took.
pub fn gone(fleet: &Fleet, phase: &str, killed_at: Instant) -> Duration {
    let mut left = Vec::new();
    while killed_at.elapsed() < GONE_WITHIN {
        left = fleet.left();
        if left.is_empty() {
            return killed_at.elapsed();
        }
    }
    panic!("{phase}: {GONE_WITHIN:?} after the kill, there are still {left:?}");
}

/// Waits until a trap was sprung.
pub fn sprung(phase: &str, trap: &Mutex<Option<Instant>>) -> Instant {
    until(phase, || trap.lock().unwrap().is_some());
    trap.lock().unwrap().unwrap()
}

/// The last line of a text, which is the error of a command.
pub fn last(text: &str) -> String {
    text.lines().last().unwrap_or_default().to_owned()
}

/// Kills what `victim` returns in each phase of a load.
fn kill_agents(what: &str, victim: impl Fn(&Fleet) -> Box<dyn FnOnce() -> u32 + Send>) {
    let mut fleet = Fleet::new();
    let mut rows = Vec::new();
    for (phase, text) in PHASES {
        fleet.make_ready();
        let _ = fs::remove_file(fleet.course.path("out.json"));
        let victim = victim(&fleet);
        let trap = fleet.trap(text, move || kill(victim()));
        let leader = fleet.course.started(fleet.load());
        let killed_at = sprung(phase, &trap);
        let ended = leader.ended();
        let reported = killed_at.elapsed();
        assert_eq!(ended.status.code(), Some(2), "{phase}: {}", ended.stderr);
        let outcome = last(&ended.stderr);
        assert!(outcome.contains("agent gen2 "), "{phase}: {}", ended.stderr);
        assert!(reported < REPORTED_WITHIN, "{phase}: reported after {reported:?}: {outcome}");
        match result(&fleet) {
            Some(result) => {
                let void = result["void"].as_str().unwrap_or_default();
                assert!(void.starts_with("agent gen2 "), "{phase}: {result:#}");
            }
            // The load did not begin.
            None => assert_eq!(phase, "setting the lease", "no result: {outcome}"),
        }
        rows.push(Row { phase, reported, gone: gone(&fleet, phase, killed_at), outcome });
    }
    print(what, &rows);
    fleet.end();
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn an_agent_that_is_killed_in_any_phase_is_named_and_voids_the_load() {
    kill_agents("the standing agent", |fleet| {
        let pid = fleet.standing("gen2");
        Box::new(move || pid)
    });
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn the_agent_of_a_session_that_is_killed_in_any_phase_voids_the_load() {
    kill_agents("the agent of the session", |fleet| {
        let standing = fleet.standing("gen2");
        Box::new(move || child_of(standing))
    });
}

/// The only child of a process.
fn child_of(pid: u32) -> u32 {
    let children = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let children = children.map(|task| fs::read_to_string(task.path().join("children")).unwrap());
    let children = children.collect::<Vec<_>>().join(" ");
    let children: Vec<u32> = children.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(children.len(), 1, "the children of the standing agent");
    children[0]
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn nothing_is_left_of_a_leader_that_is_killed_in_any_phase() {
    let mut fleet = Fleet::new();
    let mut rows = Vec::new();
    for (phase, text) in PHASES {
        fleet.make_ready();
        let _ = fs::remove_file(fleet.course.path("out.json"));
        let pid = Arc::new(AtomicU32::new(0));
        let of_leader = pid.clone();
        let trap = fleet.trap(text, move || {
            until("the leader was started", || of_leader.load(SeqCst) > 0);
            kill(of_leader.load(SeqCst));
        });
        let over = fleet.sessions_over();
        let leader = fleet.course.started(fleet.load());
        pid.store(leader.child.id(), SeqCst);
        let killed_at = sprung(phase, &trap);
        let ended = leader.ended();
        assert_eq!(ended.status.code(), None, "{phase}: {ended:?}");
        until_within(REPORTED_WITHIN, "both agents log that the session ends", || {
            fleet.sessions_over() == over + 2
        });
        let reported = killed_at.elapsed();
        assert!(result(&fleet).is_none(), "{phase}: a result that nobody finished");
        let gone = gone(&fleet, phase, killed_at);
        let outcome = "no result; both agents log the end of the session".to_owned();
        rows.push(Row { phase, reported, gone, outcome });
    }
    print("the leader", &rows);
    fleet.end();
}
