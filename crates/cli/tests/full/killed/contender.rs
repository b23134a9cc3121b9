//! A contender of a race on another machine is killed. A script in place of `ssh` runs the agent here.

use super::{REPORTED_WITHIN, Row, fleet::kill, print};
use crate::support::race::course::{Course, until};
use regatta_record::Kind;
use regatta_testkit::skip;
use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, path::Path, time::Instant};

const REGATTA: &str = env!("CARGO_BIN_EXE_regatta");
const ADDRESS: &str = "127.0.0.2";
/// The phases of a contender. Its death comes before the `nth` message that fits the pattern, or before the agent's
/// answer to it. The second contender that starts is number 2.
const PHASES: [(&str, &str, u32, &str); 9] = [
    ("getting ready", "answer", 2, r#"*"start":{"entrant"*"#),
    ("frozen before its load", "ask", 1, r#"*"cpu-ns"*"contender":2}*"#),
    ("load connects", "answer", 1, r#"*"observe"*"contender":2}*"#),
    ("load is connected", "ask", 1, r#"*"before-load"*"contender":2}*"#),
    ("in the first slice", "answer", 2, r#"*"now","thaw"*"contender":2}*"#),
    ("in a counted slice", "answer", 4, r#"*"now","thaw"*"contender":2}*"#),
    ("frozen between slices", "ask", 5, r#"*"now","thaw"*"contender":2}*"#),
    ("load is over", "ask", 1, r#"*"after-load"*"contender":2}*"#),
    ("before it is stopped", "ask", 1, r#"*"stop"*"contender":2}*"#),
];

/// The program of `REGATTA_SSH`: it runs the command here. The message of a phase is in the file `held` until that is
/// removed. All messages are in the file `passed`.
const SSH: &str = r#"
for last; do command=$last; done
unset SSH_CONNECTION
mode=$(cat mode) nth=$(cat nth) wanted=$(cat wanted)
hold() {
    : > held
    while [ -e held ]; do sleep 0.005; done
}
pass() {
    while IFS= read -r line; do
        printf '%s\n' "$line" >> passed
        case $1-$mode-$line in
        to-ask-$wanted) nth=$((nth - 1)); [ $nth != 0 ] || hold ;;
        to-answer-$wanted) nth=$((nth - 1)); [ $nth != 0 ] || : > answer ;;
        from-answer-*site*) [ ! -e answer ] || { rm answer; hold; } ;;
        esac
        printf '%s\n' "$line"
    done
}
pass to | sh -c "$command" | pass from
"#;

/// The name and the process of contender 2, by the messages that have passed.
fn second(course: &Course) -> (String, u32) {
    let passed = fs::read_to_string(course.path("passed")).unwrap();
    // What follows a text, up to a delimiter.
    let after = |text: &str, nth: usize, end: char| {
        let found = passed.split(text).nth(nth).and_then(|after| after.split(end).next());
        found.unwrap_or_else(|| panic!("no {text} in {passed}")).to_owned()
    };
    let name = after(r#""start":{"entrant":""#, 2, '"');
    let port = after(r#""started":{"contender":2,"nodes":[],"port":"#, 1, '}');
    let listens = format!("{ADDRESS}:{port}");
    let is_it = |pid: &u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&str> = line.split('\0').collect();
        words.get(1) == Some(&"serve") && words.contains(&listens.as_str())
    };
    let pid = course.processes().into_iter().find(is_it);
    (name, pid.unwrap_or_else(|| panic!("nobody listens on {listens}")))
}

#[test]
fn a_contender_that_is_killed_in_any_phase_has_failed_and_nothing_else() {
    if TcpListener::bind((ADDRESS, 0)).is_err() {
        return skip("127.0.0.2 is no address here");
    }
    let mut rows = Vec::new();
    for (phase, mode, nth, wanted) in PHASES {
        let course = Course::new();
        let binaries = Path::new(REGATTA).parent().unwrap().display();
        course.write("ssh", &format!("#!/bin/sh\nexport PATH={binaries}:$PATH\n{SSH}"));
        fs::set_permissions(course.path("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
        for (name, text) in [("mode", mode), ("nth", &nth.to_string()), ("wanted", wanted)] {
            course.write(name, text);
        }
        let contender = |name: &str| {
            format!("{name}={REGATTA} serve double --model epoll --listen {{host}}:{{port}}")
        };
        let (a, b) = (contender("a"), contender("b"));
        let mut args = vec![&a[..], &b, "--server", "sut", "--server-address", ADDRESS];
        args.extend(["-c", "8", "--rate", "500", "--rounds", "1", "--time", "2s"]);
        args.extend(["--json", "-", "--out", "out"]);
        let mut race = course.command(&args);
        race.env("REGATTA_SSH", course.path("ssh"));
        let race = course.started(race);
        until(phase, || course.path("held").exists());
        let (victim, pid) = second(&course);
        kill(pid);
        let killed_at = Instant::now();
        fs::remove_file(course.path("held")).unwrap();
        let how = format!("{victim} was killed by signal 9 (SIGKILL)");
        until(phase, || fs::read_to_string(&race.stderr).unwrap().contains(&how));
        let reported = killed_at.elapsed();
        let ended = race.ended().with_status(1);
        course.assert_nothing_left();
        assert_eq!(fs::read_dir(course.path("tmp")).unwrap().count(), 0, "a folder is left");
        let gone = killed_at.elapsed();
        let died = format!("failed: {how}");
        let outcome = ended.stderr.lines().find(|line| line.starts_with(&died));
        let outcome = outcome.unwrap_or_else(|| panic!("{phase}: {}", ended.stderr)).to_owned();
        assert!(reported < REPORTED_WITHIN, "{phase}: reported after {reported:?}");
        for cell in ended.summary().cells {
            let is_void = cell.verdict.kind() == Kind::Failed;
            assert_eq!(is_void, cell.contender == victim, "{phase}: {:?}", cell.verdict);
        }
        rows.push(Row { phase, reported, gone, outcome });
    }
    print("a contender", &rows);
}
