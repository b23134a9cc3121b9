//! Contenders whose work is done by a process outside their own, or on CPUs that were not assigned to
//! them; and memory that is not attributed to connections.

use crate::support::race::course::{Course, example, until};
use regatta_host::allowed_cpus;
use regatta_record::{Figure, Kind};
use regatta_testkit::{child::Killed, skip};
use std::process::Command;

/// Starts a daemon outside every race.
fn daemon(course: &Course) -> Killed {
    let path = course.path("daemon");
    let daemon = Killed::start(Command::new(example("handed_over")).arg("daemon").arg(&path));
    until("the daemon listens", || path.exists());
    daemon
}

/// Races a contender that hands its work over in this way. Checks that the verdict names the daemon.
fn assert_found(how: &str) {
    let course = Course::new();
    let daemon = daemon(&course);
    let (program, socket) = (example("handed_over"), course.path("daemon"));
    let contender = format!("bad={} {{port}} {} {how}", program.display(), socket.display());
    let ended = course.race_short(&contender).with_status(1);
    course.assert_nothing_left();
    let by =
        format!("is served by process {} (handed_over), which is not one of bad's", daemon.id());
    ended.assert_verdict("bad", Kind::ServerNotObserved, &["127.0.0.1:", &by]);
    let summary = ended.summary();
    let bad = summary.cells.iter().find(|cell| cell.contender == "bad").unwrap();
    assert!(bad.verdict.voids(Figure::Cost) && bad.verdict.voids(Figure::Memory), "{bad:?}");
    assert!(bad.requests > 0, "the daemon answered");
    assert_eq!((bad.band, bad.relation), (None, None), "it is ranked");
}

#[test]
fn a_daemon_that_listens_instead_of_the_contender_is_found() {
    assert_found("all");
}

#[test]
fn a_daemon_that_shares_the_port_is_found() {
    assert_found("beside");
}

#[test]
fn connections_passed_to_a_daemon_are_found() {
    assert_found("connections");
}

#[test]
fn a_contender_that_moves_to_other_cpus_is_found() {
    if allowed_cpus().unwrap().len() < 2 {
        return skip("there is only one CPU");
    }
    let course = Course::new();
    let ended = course.race_short("bad=sh -c 'exec \"$ILL\" {port} widens'").with_status(1);
    course.assert_nothing_left();
    ended.assert_verdict(
        "bad",
        Kind::OtherCpus,
        &["(ill_behaved) may run on CPUs ", "was put on "],
    );
}

#[test]
fn heap_that_a_load_leaves_behind_is_not_counted_as_memory_of_connections() {
    let course = Course::new();
    // Long enough for 20 MiB.
    let hoarder = "hoarder=sh -c 'exec \"$ILL\" {port} hoards'";
    course.write_race("'null'", "500ms", "connections = 64");
    let args = ["race.toml", "--out", "out", "--json", "-", "--contender", hoarder];
    let ended = course.race(&args);
    course.assert_nothing_left();
    let summary = ended.summary();
    let hoarder = summary.cells.iter().find(|cell| cell.contender == "hoarder").unwrap();
    let memory = hoarder.memory_bytes.unwrap();
    assert!(memory > 20 << 20, "{memory} bytes, with 16 KiB kept for each answer");
    let each = hoarder.user_bytes_per_connection.unwrap();
    assert!(each < 150_000.0, "{each} bytes for each of 64 connections");
}
