//! `race` is killed by SIGKILL in the middle of a round: nothing is left of the contender, and
//! `--resume` loses no more than that round.

use crate::course::{Course, until};
use std::{env, fs::OpenOptions, io::Write};

/// So many loads for one contender: so many rounds.
const LOADS: &str = "connections = [8, 16, 24]";
const ROUNDS: usize = 3;

#[test]
fn node_cluster() {
    let path = env::var_os("PATH").unwrap_or_default();
    if !env::split_paths(&path).any(|folder| folder.join("node").exists()) {
        eprintln!("skipped: node is not on PATH (scripts/setup)");
        return;
    }
    let course = Course::new();
    course.write_race("'node-cluster'", "200ms", LOADS);
    kill_in_mid_round_and_resume(&course, &[], 1);
}

#[test]
fn one_with_daemons_below_it() {
    let course = Course::new();
    course.write_race("'null'", "500ms", LOADS);
    // A child in a session of its own, and another that forgot where it came from. Both would end
    // if they were asked to.
    let bad = "bad=sh -c '(setsid env -i ILL_BEHAVED_LOG=\"$ILL_BEHAVED_LOG\" \"$ILL\" 0 &)
        (setsid \"$ILL\" 0 &)
        exec \"$ILL\" {port}'";
    kill_in_mid_round_and_resume(&course, &["--skip", "null", "--contender", bad], 2);
    // The rounds that are stored, and at most one that was lost: none, where the kill came between
    // the end of one round and the start of the next.
    let starts = course.log().len();
    assert!((3 * ROUNDS..=3 * (ROUNDS + 1)).contains(&starts), "{starts} processes were started");
}

/// `listeners` are the ports that show that a contender is up, all but those of processes that
/// wiped their environment.
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

    let ended = course.race(&["--resume", "out", "--json", "-"]).with_status(0);
    course.assert_nothing_left();
    let after = course.rounds();
    assert!(after.starts_with(&before), "what was stored has changed");
    assert_eq!(lines(&after), ROUNDS);
    let summary = ended.summary();
    assert!(summary.complete);
    assert!(summary.cells.iter().all(|cell| cell.rounds == 1), "{:?}", summary.cells);
}

fn lines(text: &[u8]) -> usize {
    text.iter().filter(|b| **b == b'\n').count()
}
