//! Races without a race file: servers on the command line, what to send, and how much load.

use crate::support::race::course::Course;
use regatta_record::{Asked, Drive, Kind};
use std::{fs, os::unix::fs::PermissionsExt};

/// A server of lines of integers.
const GOOD: &str = "sh -c 'exec \"$ILL\" {port}'";
/// A server over HTTP, whose name is given.
const HELLO: &str = "hello={regatta} serve hello --model epoll --listen 127.0.0.1:{port}";
/// A short race of one round, and so without a twin.
const SHORT: [&str; 8] = ["--rounds", "1", "--window", "1s", "--out", "out", "--json", "-"];

#[test]
fn two_commands_race_each_other_and_the_first_is_the_baseline() {
    let course = Course::new();
    let second = "new=sh -c 'exec \"$ILL\" {port}'";
    let args = [&[GOOD, second, "-c", "8", "-p", "2"][..], &SHORT].concat();
    // A busy machine may void the cost, and the status is then 1.
    let summary = course.race(&args).summary();
    course.assert_nothing_left();
    assert_eq!(summary.asked.contenders, ["sh", "new", "null"]);
    assert_eq!((summary.asked.baseline.as_str(), summary.asked.name.as_str()), ("sh", "sh-vs-new"));
    let new = summary.cells.iter().find(|cell| cell.contender == "new").unwrap();
    assert_eq!((new.load.connections, new.load.pipeline), (8, 2));
    assert!(new.requests > 0 && !matches!(new.verdict.kind(), Kind::Failed), "{new:?}");
    // The stored race needs nothing from the command line.
    let again = course.race(&["--resume", "out", "--json", "-"]).summary();
    assert_eq!(again.asked, summary.asked);
}

#[test]
fn a_path_is_requested_without_a_workload_file() {
    let course = Course::new();
    let other = "{regatta} serve hello --model poll --listen 127.0.0.1:{port}";
    let args =
        [&[HELLO, other, "--http", "/?a=1", "-c", "8", "--rate", "200/s"][..], &SHORT].concat();
    let summary = course.race(&args).summary();
    course.assert_nothing_left();
    assert_eq!(summary.asked.contenders, ["hello", "regatta", "null"]);
    assert!(summary.asked.workload_file.as_ref().unwrap().contains("path = \"/?a=1\""));
    for cell in &summary.cells {
        assert!(cell.requests > 0, "{cell:?}");
    }
}

#[test]
fn one_server_of_ones_own_races_over_a_path_at_a_rate() {
    let course = Course::new();
    let load = ["--http", "/", "-c", "9", "--rate", "1k/s", "--dry-run"];
    let args = [&["--contender", HELLO, "--json", "plan.json"][..], &load].concat();
    course.race(&args).with_status(0);
    let plan: serde_json::Value =
        serde_json::from_slice(&fs::read(course.path("plan.json")).unwrap()).unwrap();
    let asked: Asked = serde_json::from_value(plan["asked"].clone()).unwrap();
    assert_eq!(asked.contenders, ["null", "hello", "hello-twin"]);
    let [load] = asked.loads[..] else { panic!("{:?}", asked.loads) };
    assert_eq!(load.connections, 9);
    assert!(matches!(load.drive, Drive::Open { rate, .. } if rate.get() == 1_000), "{load:?}");
}

#[test]
fn a_server_that_speaks_another_protocol_is_named_with_what_to_use() {
    let course = Course::new();
    let args = [&["--contender", HELLO, "--only", "null", "-c", "8"][..], &SHORT].concat();
    let ended = course.race(&args).with_status(1);
    course.assert_nothing_left();
    let said =
        ["it speaks HTTP, but the workload `double` sends lines of integers: use `--http /PATH`"];
    let kind = ended.verdict("hello").kind();
    assert!(matches!(kind, Kind::Failed | Kind::Disqualified), "{kind:?}");
    ended.assert_verdict("hello", kind, &said);
}

#[test]
fn a_wrong_reply_in_the_right_protocol_gets_no_advice_to_use_another() {
    let course = Course::new();
    let wrong = "bad=sh -c 'exec \"$ILL\" {port} wrong-at 1'";
    let args = [&["--contender", wrong, "--only", "null", "-c", "1"][..], &SHORT].concat();
    let ended = course.race(&args).with_status(1);
    let verdict = ended.verdict("bad");
    assert_eq!(verdict.kind(), Kind::Disqualified);
    assert!(!verdict.because().contains("speaks"), "{}", verdict.because());
}

#[test]
fn a_missing_program_is_reported_with_the_place_where_it_was_looked_for() {
    let course = Course::new();
    course.write("built", "#!/bin/sh\n");
    course.write("tool", "#!/bin/sh\n");
    fs::set_permissions(course.path("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    let missing = format!("there is no program {}", course.path("old").display());
    for (first, said) in [
        ("./old {port}", &["the contender old cannot race", missing.as_str()][..]),
        ("./built {port}", &["is not executable; run: chmod +x"]),
        ("tool {port}", &["tool is not on PATH, but", "write ./tool"]),
        ("no-such-tool {port}", &["no-such-tool is not found in any folder of PATH"]),
        ("image:", &["is not given its port"]),
    ] {
        let ended = course.race(&[first, GOOD, "--out", "out"]).with_status(2);
        ended.assert_printed(said);
        assert!(!course.out().exists(), "{first}");
    }
    assert!(course.log().is_empty(), "something was started");
}

#[test]
fn hints_name_the_program_as_it_was_called() {
    let course = Course::new();
    let ended = course.race(&["line://127.0.0.1:1"]).with_status(2);
    let program = env!("CARGO_BIN_EXE_regatta");
    ended.assert_printed(&[&format!("`{program} load line://127.0.0.1:1`")]);
}

#[test]
fn different_contents_that_nothing_checks_are_reported() {
    let course = Course::new();
    let doubt = |path: &str, second: &str| {
        let args =
            [&[HELLO, second, "--http", path, "-c", "4", "--rate", "200/s"][..], &SHORT].concat();
        let summary = course.race(&args).summary();
        fs::remove_dir_all(course.out()).unwrap();
        let contents = |entry: &str| {
            let cell = summary.cells.iter().find(|cell| cell.contender == entry).unwrap();
            cell.reply.and_then(|reply| reply.content).map(|content| content.bytes)
        };
        let bytes: Vec<_> = ["hello", "other"].map(contents).into();
        assert!(bytes.iter().all(Option::is_some), "{bytes:?}");
        summary.doubts.into_iter().find(|doubt| doubt.starts_with("the contents of the replies"))
    };
    // The content has the time, which differs.
    let same = "other={regatta} serve hello --model poll --listen 127.0.0.1:{port}";
    assert_eq!(doubt("/", same), None);
    // Always the same text, whatever is requested, for each 35 bytes of requests.
    course.write("reply", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nOther");
    let other = "other={regatta} serve null --model epoll --listen 127.0.0.1:{port} \
                 --request-bytes 35 --reply reply";
    let found = doubt("/", other).expect("they differ");
    assert!(found.contains("hello (") && found.contains(" bytes), other (5 bytes)"), "{found}");
    assert!(!found.contains("null") && !found.contains("twin"), "{found}");
}
