//! Ctrl-C in the middle of a round.

use crate::support::race::course::{Course, until};
use regatta_record::Summary;

#[test]
fn the_first_ctrl_c_stops_gracefully_and_the_race_can_be_resumed() {
    let course = Course::in_rounds();
    course.write_quiet_race("'null'", "1s", "connections = [8, 16]");
    let good = "good=sh -c 'exec \"$ILL\" {port}'";
    let race = course.start(&["race.toml", "--out", "out", "--contender", good]);
    until("a round is stored and the next contender is up", || {
        !course.rounds().is_empty() && !course.listening().is_empty()
    });
    race.signal("INT");
    let ended = race.ended().with_status(130);
    course.assert_nothing_left();

    let before = course.rounds();
    let stored = before.iter().filter(|b| **b == b'\n').count();
    ended
        .assert_printed(&[&format!("interrupted; {stored} starts are saved"), "race --resume out"]);
    let saved = std::fs::read_to_string(course.out().join("summary.json")).unwrap();
    let saved: Summary = serde_json::from_str(&saved).unwrap();
    assert!(!saved.complete);
    assert!(!ended.stdout.contains("(skipped)"), "{}", ended.stdout);
    assert_eq!(saved.cells.iter().map(|cell| cell.rounds as usize).sum::<usize>(), stored);

    let ended = course.race(&["--resume", "out", "--json", "-"]).raced();
    course.assert_nothing_left();
    assert!(course.rounds().starts_with(&before));
    let summary = ended.summary();
    assert!(summary.complete);
    assert!(summary.cells.iter().all(|cell| cell.rounds == 1), "{:?}", summary.cells);
}

#[test]
fn a_round_that_is_interrupted_under_load_is_not_stored() {
    const CONNECTIONS: usize = 8;
    let course = Course::in_rounds();
    course.write_quiet_race("'null'", "30s", &format!("connections = {CONNECTIONS}"));
    let good = "good=sh -c 'exec \"$ILL\" {port}'";
    let args = ["race.toml", "--skip", "null", "--out", "out", "--contender", good];
    let race = course.start(&args);
    // State 01 is ESTABLISHED (proc_net_tcp(5)).
    let is_served = |port: u16| {
        let local = format!(":{port:04X}");
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let served = sockets.lines().filter(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields[1].ends_with(&local) && fields[3] == "01"
        });
        served.count() >= CONNECTIONS
    };
    until("all connections are open", || course.listening().into_iter().any(is_served));
    race.signal("INT");
    race.ended().with_status(130).assert_printed(&["interrupted; 0 starts are saved"]);
    course.assert_nothing_left();
    assert!(course.rounds().is_empty());
}

#[test]
fn ctrl_c_is_handled_while_a_contender_starts() {
    let course = Course::new();
    let bad = "bad=sh -c 'echo $$ starts >> \"$ILL_BEHAVED_LOG\"; exec sleep 1000' {port}";
    course.write_quiet_race("'null'", "300ms", "connections = 8");
    let race = course.start(&["race.toml", "--skip", "null", "--contender", bad]);
    until("it is started", || !course.log().is_empty());
    race.signal("INT");
    let ended = race.ended().with_status(130);
    course.assert_nothing_left();
    ended.assert_printed(&["interrupted; 0 starts are saved", "race --resume results/"]);
    assert!(ended.stdout.contains("\nNot raced yet.\n"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("(skipped)") && !ended.stdout.contains("\ncontender "));
}

#[test]
fn the_second_ctrl_c_ends_the_race_at_once() {
    let course = Course::new();
    course.write_quiet_race("'null'", "30s", "connections = 8");
    let deaf = "bad=sh -c 'exec \"$ILL\" {port} deaf'";
    let args = ["race.toml", "--skip", "null", "--out", "out", "--contender", deaf];
    let race = course.start(&args);
    until("it listens", || !course.log().is_empty());
    race.signal("INT");
    until("it is asked to end", || course.log().iter().any(|(_, what)| what == "asked"));
    race.signal("INT");
    let ended = race.ended().with_status(130);
    assert!(!ended.stderr.contains("interrupted"), "it waited for the contender: {}", ended.stderr);
    course.assert_nothing_left_soon();
}
