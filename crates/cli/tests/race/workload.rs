//! Races with a workload file: the user's own requests, against the user's own servers.

use crate::course::Course;
use regatta_record::Kind;
use std::fs;

const WORKLOAD: &str = "protocol = 'line'\n\
    [[request]]\nsend = '{n=int:-99..99}'\nexact = '{n*2}'\n\
    [[request]]\nsend = '{line:numbers.txt}'\nregex = '-?[0-9]+'\n";
const RACE: &str = "name = 'test'\nworkload = '../mine.toml'\nrounds = 1\nwindow = '200ms'\n\
    warm_up = '0s'\ntwin_of = 'nobody'\n[[load]]\nconnections = 8\npipeline = 4\n";

/// Two peers of which one serves the workload, and the race in a folder of its own.
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
fn those_race_who_list_it_or_are_given_and_the_result_needs_no_other_file() {
    let course = course(WORKLOAD);
    let given = "given=sh -c 'exec \"$ILL\" {port}'";
    let args = ["races/race.toml", "--out", "out", "--contender", given, "--json", "-"];
    let summary = course.race(&args).with_status(0).summary();
    course.assert_nothing_left();
    assert_eq!(summary.asked.workload, "mine");
    assert_eq!(summary.asked.contenders, ["null", "willing", "given"]);
    for cell in &summary.cells {
        assert!(cell.requests > 0 && !matches!(cell.verdict.kind, Kind::Failed), "{cell:?}");
    }

    // All but one of the rounds are lost, and so are the files.
    let rounds = course.rounds();
    let rounds: Vec<&[u8]> = rounds.split_inclusive(|byte| *byte == b'\n').collect();
    fs::write(course.out().join("rounds.jsonl"), rounds[0]).unwrap();
    for file in ["mine.toml", "numbers.txt", "races/race.toml"] {
        fs::remove_file(course.path(file)).unwrap();
    }
    let again = course.race(&["--resume", "out", "--json", "-"]).with_status(0).summary();
    course.assert_nothing_left();
    assert!(again.complete);
    assert_eq!(again.asked, summary.asked);
}

#[test]
fn one_that_answers_otherwise_is_disqualified_and_told_what_was_due() {
    let course = course(&WORKLOAD.replace("-?[0-9]+", "[a-z]+"));
    let args = ["races/race.toml", "--out", "out", "--json", "-"];
    let ended = course.race(&args).with_status(1);
    course.assert_nothing_left();
    let said = ["a reply was wrong", "expected a line matching [a-z]+"];
    ended.assert_verdict("willing", Kind::Disqualified, &said);
    assert_ne!(ended.verdict("null").kind, Kind::Disqualified);
}

#[test]
fn requests_over_http_race_too() {
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
        let ended = course.race(&args).with_status(status);
        course.assert_nothing_left();
        assert_ne!(ended.verdict("null").kind, Kind::Disqualified);
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
fn what_is_wrong_with_it_is_told_before_anything_starts() {
    let wrong = course(&WORKLOAD.replace("{n*2}", "{m*2}"));
    let cannot_run = "the race races/race.toml cannot be run: the workload races/../mine.toml: ";
    let ended = wrong.race(&["races/race.toml", "--out", "out"]).with_status(2);
    ended.assert_told(&[cannot_run, "request 1: `exact`", "captured so far: n"]);

    let missing = course(WORKLOAD);
    fs::remove_file(missing.path("mine.toml")).unwrap();
    let ended = missing.race(&["races/race.toml", "--out", "out"]).with_status(2);
    ended.assert_told(&[cannot_run, "cannot read races/../mine.toml: No such file"]);
    for course in [wrong, missing] {
        assert!(course.log().is_empty() && !course.out().exists(), "something was begun");
    }
}
