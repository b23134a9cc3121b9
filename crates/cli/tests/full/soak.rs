//! Many starts and stops of every model under changing loads leave no process, port or descriptor.
//!
//! Each pass has a round for every model and load; `REGATTA_TESTS=full` makes more than a thousand rounds.

use crate::support::race::course::{Course, until};
use regatta_testkit::is_full;
use std::fs;

/// Loads with few connections, with many pipelined ones, and with a connection per request.
const LOADS: &str = "connections = 4\n\
    [[load]]\nconnections = 200\npipeline = 8\n\
    [[load]]\nconnections = 16\nchurn = true";

#[test]
fn a_soak_leaves_no_process_no_port_and_no_descriptor() {
    let passes: usize = if is_full() { 28 } else { 4 };
    let models = regatta_serve::Model::ALL;
    let names: Vec<String> = models.iter().map(|model| format!("'{}'", model.name())).collect();
    let course = Course::new();
    course.write_race(&names.join(", "), "50ms", LOADS);
    let mut race = course.start(&["race.toml", "--rounds", &passes.to_string(), "--out", "out"]);
    // The number of descriptors of `race` after each stored round.
    let mut open = Vec::new();
    // The first model has a twin.
    let rounds = (models.len() + 1) * 3 * passes;
    for stored in 1..=rounds {
        until("another round is stored, or the race has ended", || {
            let lines = course.rounds().iter().filter(|byte| **byte == b'\n').count();
            lines >= stored || race.child.try_wait().unwrap().is_some()
        });
        if let Ok(fds) = fs::read_dir(format!("/proc/{}/fd", race.child.id())) {
            open.push(fds.count());
        }
    }
    let ended = race.ended();
    let stored = String::from_utf8(course.rounds()).unwrap();
    assert_eq!(stored.lines().count(), rounds, "{}", ended.stderr);
    let unfinished: Vec<&str> =
        stored.lines().filter(|line| !line.contains(r#""outcome":{"kind":"finished"}"#)).collect();
    assert!(unfinished.is_empty(), "{unfinished:#?}");
    course.assert_nothing_left();
    // More are open during a round. Between rounds their number must not grow.
    let (first, last) = open.split_at(open.len() / 2);
    let least = |part: &[usize]| part.iter().copied().min().unwrap_or_default();
    assert!(least(last) <= least(first) + 2, "descriptors of the race: {open:?}");
}
