//! Races with a workload file: custom requests to custom servers.

use crate::support::race::course::Course;
use regatta_record::Kind;
use std::fs;

const WORKLOAD: &str = "protocol = 'line'\n\
    [[request]]\nsend = '{n=int:-99..99}'\nexact = '{n*2}'\n\
    [[request]]\nsend = '{line:numbers.txt}'\nregex = '-?[0-9]+'\n";
const RACE: &str = "name = 'test'\nworkload = '../mine.toml'\nrounds = 1\nwindow = '1s'\n\
    warm_up = '0s'\ntwin_of = 'nobody'\n[[load]]\nconnections = 8\npipeline = 4\n";

/// A course with two peers, one of which serves the workload, and with the race file in a subfolder.
fn course(workload: &str) -> Course {
    let course = Course::new();
    for (name, serves) in [("willing", "mine"), ("other", "double")] {
        let manifest = format!(
            "name = '{name}'\nabout = 'a server'\nworkloads = ['{serves}']\n\
             start = ['sh', '-c', 'exec \"$ILL\" {{port}}']\n"
        );
        course.write(&format!("peers/{name}/manifest.toml"), &manifest);
    }
    course.write("mine.toml", workload);
    course.write("numbers.txt", "1\n22\n333\n");
    course.write("races/race.toml", RACE);
    course
}

#[test]
fn contenders_that_list_the_workload_or_are_given_race_and_the_result_needs_no_other_file() {
    let course = course(WORKLOAD);
    let given = "given=sh -c 'exec \"$ILL\" {port}'";
    let args = ["races/race.toml", "--out", "out", "--contender", given, "--json", "-"];
    let summary = course.race(&args).raced().summary();
    course.assert_nothing_left();
    assert_eq!(summary.asked.workload, "mine");
    assert_eq!(summary.asked.contenders, ["null", "willing", "given"]);
    for cell in &summary.cells {
        assert!(cell.requests > 0 && !matches!(cell.verdict.kind(), Kind::Failed), "{cell:?}");
    }

    // Remove all rounds except one, and the files.
    let rounds = course.rounds();
    let rounds: Vec<&[u8]> = rounds.split_inclusive(|byte| *byte == b'\n').collect();
    fs::write(course.out().join("rounds.jsonl"), rounds[0]).unwrap();
    for file in ["mine.toml", "numbers.txt", "races/race.toml"] {
        fs::remove_file(course.path(file)).unwrap();
    }
    let again = course.race(&["--resume", "out", "--json", "-"]).raced().summary();
    course.assert_nothing_left();
    assert!(again.complete);
    assert_eq!(again.asked, summary.asked);
}

#[test]
fn a_contender_that_answers_otherwise_is_disqualified_with_the_expected_reply() {
    let course = course(&WORKLOAD.replace("-?[0-9]+", "[a-z]+"));
    let args = ["races/race.toml", "--out", "out", "--json", "-"];
    let ended = course.race(&args).with_status(1);
    course.assert_nothing_left();
    let said = ["a reply was wrong", "expected a line matching [a-z]+"];
    ended.assert_verdict("willing", Kind::Disqualified, &said);
    assert_ne!(ended.verdict("null").kind(), Kind::Disqualified);
}

#[test]
fn a_workload_file_over_http_can_be_raced() {
    let http = |exact: &str| {
        format!(
            "name = 'mine'\nprotocol = 'http'\n[[request]]\npath = '/?q={{line:numbers.txt}}'\n\
             method = 'GET'\nbody_file = 'body'\nexpect_headers = {{ Date = true }}\n{exact}\n"
        )
    };
    for (exact, status) in [("regex = 'Hello.*[0-9]+'", 0), ("exact = 'Hello.'", 1)] {
        let course = course(&http(exact));
        course.write("body", "{ some body }");
        let given = "given={regatta} serve hello --model threads --listen 127.0.0.1:{port}";
        let only = ["--only", "null,given", "--contender", given];
        let args = [&["races/race.toml", "--out", "out", "--json", "-"][..], &only].concat();
        let ended = course.race(&args);
        let ended = if status == 0 { ended.raced() } else { ended.with_status(status) };
        course.assert_nothing_left();
        assert_ne!(ended.verdict("null").kind(), Kind::Disqualified);
        match status {
            0 => assert!(ended.summary().cells.iter().all(|cell| cell.requests > 0)),
            _ => {
                let said = ["a reply was wrong", "the content Hello."];
                ended.assert_verdict("given", Kind::Disqualified, &said);
            }
        }
    }
}

#[test]
fn errors_in_a_workload_file_are_reported_before_anything_starts() {
    let wrong = course(&WORKLOAD.replace("{n*2}", "{m*2}"));
    let cannot_run = "the race races/race.toml cannot be run: the workload races/../mine.toml: ";
    let ended = wrong.race(&["races/race.toml", "--out", "out"]).with_status(2);
    ended.assert_printed(&[cannot_run, "request 1: `exact`", "captured so far: n"]);

    let missing = course(WORKLOAD);
    fs::remove_file(missing.path("mine.toml")).unwrap();
    let ended = missing.race(&["races/race.toml", "--out", "out"]).with_status(2);
    ended.assert_printed(&[cannot_run, "cannot read races/../mine.toml: No such file"]);
    for course in [wrong, missing] {
        assert!(course.log().is_empty() && !course.out().exists(), "something was started");
    }
}
