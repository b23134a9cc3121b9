//! Limits and requirements that manifests state.

use crate::support::race::{
    course::Course,
    terminal::{COLUMNS, On, run_on_terminal},
};
use regatta_record::Kind;

const START: &str = "workloads = ['double']\nstart = ['sh', '-c', 'exec \"$ILL\" {port}']\n";

#[test]
fn a_load_beyond_a_stated_limit_is_skipped_and_is_not_a_failure() {
    let course = Course::new();
    let manifest =
        format!("name = 'small'\nabout = 'ten clients'\n{START}limits = {{ connections = 10 }}\n");
    course.write("peers/small/manifest.toml", &manifest);
    course.write_quiet_race("'null', 'small'", "1s", "connections = [8, 64]");
    let args = ["race.toml", "--out", "out", "--json", "-"];
    let ended = course.race(&args).raced();
    course.assert_nothing_left();
    assert_eq!(course.log().len(), 1, "it was started under another load too");
    for cell in ended.summary().cells.into_iter().filter(|cell| cell.contender == "small") {
        let beyond = cell.load.connections > 10;
        assert_eq!(cell.verdict.kind() == Kind::CannotHold, beyond, "{cell:?}");
        assert_eq!(cell.requests == 0, beyond, "{cell:?}");
        if beyond {
            let said = "small states a limit of 10 connections; this load has 64";
            assert_eq!(cell.verdict.because(), said);
        }
    }
    ended.assert_printed(&["cannot-hold: small states a limit of 10 connections"]);
}

#[test]
fn a_peer_that_is_not_installed_is_skipped_with_the_command_to_install_it() {
    let course = Course::new();
    for (name, more) in [
        ("unbuilt", "setup = ['make']\n"),
        ("absent", "needs = ['no-such-program']\nsetup = ['make']\n"),
    ] {
        let start = START.replace("'sh'", if name == "unbuilt" { "'build/x'" } else { "'sh'" });
        let manifest = format!("name = '{name}'\nabout = 'a peer'\n{start}{more}");
        course.write(&format!("peers/{name}/manifest.toml"), &manifest);
    }
    course.write_quiet_race("'absent', 'unbuilt', 'null'", "1s", "connections = 8");
    let race = std::fs::read_to_string(course.path("race.toml")).unwrap();
    course.write("race.toml", &race.replace("twin_of = 'nobody'", "baseline = 'absent'"));
    let good = "good=sh -c 'exec \"$ILL\" {port}'";
    let args = ["race.toml", "--out", "out", "--json", "-", "--contender", good];
    let ended = course.race(&args).raced();
    course.assert_nothing_left();
    for (name, why) in [
        (
            "absent",
            "not on PATH: no-such-program; install it, then run `regatta peers install absent`",
        ),
        ("unbuilt", "not built yet; run `regatta peers install unbuilt`"),
    ] {
        ended.assert_verdict(name, Kind::Skipped, &[why]);
        // The terminal shows the program as it was called.
        let why = why.replace("`regatta ", &format!("`{} ", env!("CARGO_BIN_EXE_regatta")));
        ended.assert_printed(&[&format!("skipped: {name}: {why}")]);
    }
    assert_eq!(ended.summary().asked.baseline, "good", "the baseline is not installed");

    // The text is wrapped with that path.
    let mut report = course.regatta(&["report", "out"]);
    report.env("NO_COLOR", "1");
    let shown = run_on_terminal(report, On::Both).text();
    assert!(shown.contains(&format!("`{}", env!("CARGO_BIN_EXE_regatta"))), "{shown}");
    let too_long = shown.lines().find(|line| line.chars().count() > COLUMNS.into());
    assert_eq!(too_long, None, "{shown}");

    let ended = course.race(&["race.toml", "--contender", good, "--baseline", "absent"]);
    let ended = ended.with_status(2);
    ended
        .assert_printed(&["the baseline absent does not take part; it must be one of: null, good"]);
}

#[test]
fn a_manifest_outside_the_race_file_takes_part_as_a_peer_or_by_its_name() {
    let course = Course::new();
    let manifest = format!("name = 'mine'\nabout = 'my own'\n{START}");
    course.write("peers/mine/manifest.toml", &manifest);
    course.write_quiet_race("'null', 'peers'", "1s", "connections = 8");
    for args in [
        &["race.toml", "--json", "-", "--out", "one"][..],
        &["quick", "--only", "null,mine", "--rounds", "1", "--json", "-", "--out", "two"],
    ] {
        let ended = course.race(args).raced();
        assert_eq!(ended.summary().asked.contenders, ["null", "mine"], "{args:?}");
    }
    course.assert_nothing_left();
}
