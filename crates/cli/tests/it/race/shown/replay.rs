//! `regatta report --replay` prints the output of a race again from its stored events.

use crate::support::race::{
    course::{Course, until},
    started::Ended,
    terminal::{On, run_on_terminal},
};
use std::{
    fs::{self, OpenOptions},
    io::Write,
    process::Stdio,
};

/// A contender with a manifest that is not installed.
const NOBODY: &str = "name = 'nobody'\nabout = 'x'\nworkloads = ['double']\n\
                      needs = ['no-such-program']\nstart = ['no-such-program', '{port}']\n";
const GOOD: &str = "good=sh -c 'exec \"$ILL\" {port}'";
const WRONG: &str = "wrong=sh -c 'exec \"$ILL\" {port} wrong-at 50'";
const DIES: &str = "dies=sh -c 'exec \"$ILL\" {port} dies-at 50 3'";

/// Asserts that the replay of `out` prints the output of these runs of one race, one after another.
#[track_caller]
fn assert_replayed(course: &Course, runs: &[&Ended]) {
    let replay = course.replay("out").with_status(0);
    let printed = |of: fn(&Ended) -> &str| runs.iter().map(|run| of(run)).collect::<String>();
    assert_eq!(replay.stderr, printed(|run| &run.stderr));
    assert_eq!(replay.stdout, printed(|run| &run.stdout));
}

#[test]
fn a_race_is_replayed_byte_for_byte() {
    let course = Course::new();
    // A contender that is not installed, an impossible load, two contenders that fail, and two passes.
    course.write("peers/nobody/manifest.toml", NOBODY);
    course.write_quiet_race("'null', 'nobody'", "300ms", "connections = 4\ncores = [1, 9999]");
    let args = ["race.toml", "--rounds", "2", "--out", "out"];
    let contenders = ["--contender", GOOD, "--contender", WRONG, "--contender", DIES];
    let ended = course.race(&[&args[..], &contenders].concat()).with_status(1);
    ended.assert_printed(&["skipped: nobody:", "left out: ", "life 2: ", "disqualified: wrong"]);
    ended.assert_printed(&["failed: dies", "\n  received  "]);
    assert!(ended.stdout.ends_with("\nreport: out/report.html\n"), "{}", ended.stdout);
    assert_replayed(&course, &[&ended]);
    // The replay needs neither the rounds nor the summary.
    fs::remove_file(course.out().join("rounds.jsonl")).unwrap();
    fs::remove_file(course.out().join("summary.json")).unwrap();
    assert_replayed(&course, &[&ended]);
}

#[test]
fn json_and_markdown_on_stdout_are_replayed() {
    for form in ["--json", "--md"] {
        let course = Course::new();
        course.write_quiet_race("'null'", "300ms", "connections = 4");
        let args = ["race.toml", "--out", "out", form, "-", "--contender", GOOD];
        let ended = course.race(&args);
        assert!(!ended.stdout.contains("report: "), "{}", ended.stdout);
        assert_replayed(&course, &[&ended]);
    }
}

#[test]
fn an_interrupted_and_resumed_race_is_replayed_whole() {
    let course = Course::in_rounds();
    course.write_quiet_race("'null'", "300ms", "connections = [8, 16]");
    let race = course.start(&["race.toml", "--out", "out", "--contender", GOOD]);
    until("a round is stored and the next contender is up", || {
        !course.rounds().is_empty() && !course.listening().is_empty()
    });
    race.signal("INT");
    let first = race.ended().with_status(130);
    assert_replayed(&course, &[&first]);
    let second = course.race(&["--resume", "out"]);
    course.assert_nothing_left();
    second.assert_printed(&["round 1: "]);
    assert_replayed(&course, &[&first, &second]);
}

#[test]
fn a_killed_race_is_replayed_without_its_incomplete_last_line() {
    let course = Course::in_rounds();
    course.write_quiet_race("'null'", "300ms", "connections = [8, 16]");
    let mut race = course.start(&["race.toml", "--out", "out", "--contender", GOOD]);
    until("a round is stored and the next contender is up", || {
        !course.rounds().is_empty() && !course.listening().is_empty()
    });
    race.child.kill().unwrap();
    let first = race.ended();
    course.assert_nothing_left_soon();
    assert!(first.stderr.starts_with("round 1: 0 of 4 starts are done, "), "{}", first.stderr);
    assert_replayed(&course, &[&first]);
    // As if the machine had stopped in the middle of a write.
    let path = course.out().join("events.jsonl");
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"format\":1,\"ns\":99999999999,\"event\":\"round-en").unwrap();
    assert_replayed(&course, &[&first]);

    let second = course.race(&["--resume", "out"]);
    course.assert_nothing_left();
    assert_replayed(&course, &[&first, &second]);
    assert!(!fs::read_to_string(path).unwrap().contains("\"round-en{"));
}

#[test]
fn a_pilot_pass_is_replayed() {
    let course = Course::new();
    let load = "connections = 4\nrate = '10% of slowest'";
    course.write_race("'null'", "300ms", load);
    let ended = course.race(&["race.toml", "--out", "out", "--contender", GOOD]);
    course.assert_nothing_left();
    let pilot = "pilot: short rounds, each once its rate is steady, to determine the rates: 1\n";
    ended.assert_printed(&[pilot, "\nlife 1: "]);
    assert_replayed(&course, &[&ended]);
}

#[test]
fn an_interrupt_in_the_pilot_pass_leaves_nothing_to_replay() {
    let course = Course::new();
    course.write_race("'null'", "300ms", "connections = 4\nrate = '10% of slowest'");
    let slow = "bad=sh -c 'echo $$ starts >> \"$ILL_BEHAVED_LOG\"; exec sleep 1000' {port}";
    let race = course.start(&["race.toml", "--out", "out", "--contender", slow]);
    until("it is started", || !course.log().is_empty());
    race.signal("INT");
    let ended = race.ended().with_status(130);
    course.assert_nothing_left();
    ended.assert_printed(&["interrupted in the pilot pass; nothing is saved"]);
    assert!(!course.out().exists());
    course
        .replay("out")
        .with_status(2)
        .assert_printed(&["cannot read out/race.toml: No such file"]);
}

#[test]
fn on_a_terminal_the_last_screen_is_the_same() {
    let course = Course::in_rounds();
    course.write("peers/nobody/manifest.toml", NOBODY);
    course.write_quiet_race("'null', 'nobody'", "300ms", "connections = [4, 8]");
    let args = ["race.toml", "--out", "out", "--contender", GOOD, "--contender", DIES];
    let race = run_on_terminal(course.command(&args), On::Both);
    course.assert_nothing_left();
    let replay = run_on_terminal(course.regatta(&["report", "--replay", "out"]), On::Both);
    assert!(replay.status.success(), "{}", replay.text());

    let screen = race.screen();
    for seen in ["skipped: nobody", "failed: dies", "report: out/report.html"] {
        assert!(screen.contains(seen), "no {seen:?} in {screen}");
    }
    // The progress line was drawn and then removed.
    assert!(race.text().contains("stopping") && !screen.contains("stopping"), "{screen}");
    assert!(!screen.contains("starts are done"), "{screen}");
    assert_eq!(replay.screen(), screen);
}

#[test]
fn a_result_of_an_earlier_regatta_can_be_resumed_but_not_replayed() {
    let course = Course::new();
    course.write_quiet_race("'null'", "300ms", "connections = 4");
    let args = ["race.toml", "--rounds", "2", "--out", "out", "--contender", GOOD];
    course.race(&args);
    let events = course.out().join("events.jsonl");
    fs::remove_file(&events).unwrap();
    let rounds = course.rounds();
    let first = rounds.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    fs::write(course.out().join("rounds.jsonl"), &rounds[..first]).unwrap();

    let said = ["out holds no events to replay", "an earlier regatta", "regatta report out`"];
    course.replay("out").with_status(2).assert_printed(&said);
    assert!(!events.exists(), "the replay created a file");
    let resumed = course.race(&["--resume", "out"]);
    resumed.assert_printed(&["note: this race has no events of earlier rounds; a replay starts"]);
    assert_replayed(&course, &[&resumed]);
    course.assert_nothing_left();
}

#[test]
fn damaged_events_are_replayed_up_to_the_damage() {
    let course = Course::new();
    course.write_quiet_race("'null'", "300ms", "connections = 4");
    course.race(&["race.toml", "--out", "out", "--contender", GOOD]);
    let path = course.out().join("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains("\"judged\"")).unwrap();
    let damaged = [&lines[..at], &["\0\0\0"], &lines[at..]].concat().join("\n");
    fs::write(&path, damaged).unwrap();
    let ended = course.replay("out").with_status(2);
    let line = format!("out/events.jsonl cannot be understood: line {}: ", at + 1);
    ended.assert_printed(&["life 1: 0 of 2 starts are done, ", &line]);
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_replay_succeeds_if_its_output_is_closed() {
    let course = Course::new();
    course.write_quiet_race("'null'", "300ms", "connections = 4");
    course.race(&["race.toml", "--out", "out", "--contender", GOOD]);
    let mut replay = course.regatta(&["report", "--replay", "out"]);
    let mut replay = replay.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((replay.stdout.take(), replay.stderr.take()));
    until("the replay ends", || replay.try_wait().unwrap().is_some());
    assert_eq!(replay.wait().unwrap().code(), Some(0));
}
