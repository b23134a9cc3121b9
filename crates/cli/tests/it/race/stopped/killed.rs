//! `race` is killed by SIGKILL in the middle of a round: no process of the contender remains, and
//! `--resume` loses at most that round.

use crate::support::race::course::{Course, until};
use std::{fs::OpenOptions, io::Write};

/// The loads for one contender; each is one round.
const LOADS: &str = "connections = [8, 16, 24]";
const ROUNDS: usize = 3;

#[test]
#[cfg_attr(not(has_node), ignore = "node is not installed (scripts/setup)")]
fn a_killed_race_of_node_cluster_leaves_no_process() {
    let course = Course::in_rounds();
    course.write_quiet_race("'node-cluster'", "1s", LOADS);
    kill_in_mid_round_and_resume(&course, &[], 1);
}

#[test]
fn a_killed_race_leaves_no_daemon_of_a_contender() {
    let course = Course::in_rounds();
    course.write_quiet_race("'null'", "1s", LOADS);
    // Two children in new sessions, one of them without the mark of the course in its environment. Both
    // would exit on a signal.
    let bad = "bad=sh -c '(setsid env -i ILL_BEHAVED_LOG=\"$ILL_BEHAVED_LOG\" \"$ILL\" 0 &)
        (setsid \"$ILL\" 0 &)
        exec \"$ILL\" {port}'";
    kill_in_mid_round_and_resume(&course, &["--skip", "null", "--contender", bad], 2);
    // The stored rounds, and at most one that was lost. None was lost if the kill came between the end
    // of one round and the start of the next.
    let starts = course.log().len();
    assert!((3 * ROUNDS..=3 * (ROUNDS + 1)).contains(&starts), "{starts} processes were started");
}

/// `listeners` is the number of listening ports of a contender that has started, without those of
/// processes that lack the mark of the course in their environment.
fn kill_in_mid_round_and_resume(course: &Course, more: &[&str], listeners: usize) {
    let mut race = course.start(&[&["race.toml", "--out", "out"][..], more].concat());
    until("a round is stored and the next contender is up", || {
        !course.rounds().is_empty() && course.listening().len() == listeners
    });
    let ports = course.listening();
    race.child.kill().unwrap();
    race.child.wait().unwrap();
    course.assert_nothing_left_soon();
    ports.into_iter().for_each(|port| course.assert_free(port));

    let before = course.rounds();
    let stored = lines(&before);
    assert!((1..ROUNDS).contains(&stored), "{stored} rounds were stored");
    assert!(before.ends_with(b"\n"));
    // As if the machine had stopped in the middle of a write.
    let path = course.out().join("rounds.jsonl");
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"{\"format\":1,\"round\":1,\"contend").unwrap();

    let ended = course.race(&["--resume", "out", "--json", "-"]).raced();
    course.assert_nothing_left();
    let after = course.rounds();
    assert!(after.starts_with(&before), "stored rounds have changed");
    assert_eq!(lines(&after), ROUNDS);
    let summary = ended.summary();
    assert!(summary.complete);
    assert!(summary.cells.iter().all(|cell| cell.rounds == 1), "{:?}", summary.cells);
}

fn lines(text: &[u8]) -> usize {
    text.iter().filter(|b| **b == b'\n').count()
}
