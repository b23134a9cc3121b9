//! Result directories that cannot be used or are in use.

use crate::support::race::course::{Course, until};
use regatta_testkit::skip;
use std::{path::PathBuf, process::Command};

const GOOD: &str = "good=sh -c 'exec \"$ILL\" {port}'";

#[test]
fn a_directory_of_a_running_race_is_refused() {
    let course = Course::new();
    course.write_quiet_race("'null'", "30s", "connections = 8");
    let args = ["race.toml", "--skip", "null", "--contender", GOOD, "--out", "out"];
    let first = course.start(&args);
    until("it listens", || !course.log().is_empty());
    for args in [&args[..], &["--resume", "out"]] {
        let second = course.race(args).with_status(2);
        second.assert_printed(&["another race is writing to out"]);
    }
    assert_eq!(course.log().len(), 1, "a refused race started a contender");
    first.signal("INT");
    first.ended().with_status(130);
    course.assert_nothing_left();
}

#[test]
fn only_one_of_two_simultaneous_races_runs() {
    let course = Course::new();
    course.write_quiet_race("'null'", "1s", "connections = 8");
    let args = ["race.toml", "--skip", "null", "--contender", GOOD, "--out", "out"];
    let both = [course.start(&args), course.start(&args)].map(|race| race.ended());
    course.assert_nothing_left();
    let mut codes = both.each_ref().map(|ended| ended.status.code().unwrap());
    codes.sort_unstable();
    // On a busy machine a short race may yield no cost, which is 1.
    assert!(matches!(codes, [0 | 1, 2]), "{both:?}");
    both.into_iter().find(|ended| ended.status.code() != Some(2)).expect("one has run").raced();
    assert!(!course.rounds().is_empty());
    assert_eq!(course.log().len(), 1, "not exactly one race started a contender");
}

#[test]
fn a_directory_that_holds_a_race_is_refused_and_kept() {
    let course = Course::new();
    course.race_short(GOOD).raced();
    let before = course.rounds();
    course
        .race_short(GOOD)
        .with_status(2)
        .assert_printed(&["out already holds a race", "--resume"]);
    let ended = course.race(&["--resume", "out", "--json", "-"]).raced();
    assert!(ended.summary().complete);
    assert_eq!(course.rounds(), before);
    assert_eq!(course.log().len(), 1, "another contender was started");
    course.assert_nothing_left();
}

#[test]
fn a_summary_alone_is_shown_like_its_race() {
    let course = Course::new();
    course.race_short(GOOD).raced();
    let shown = |args: &[&str]| {
        let args = [&["report"], args].concat();
        course.started(course.regatta(&args)).ended()
    };
    for form in [&["--md", "-"][..], &["--csv", "-"], &["--json", "-"], &["--bmf", "-"], &[]] {
        let whole = shown(&[&["out"], form].concat()).with_status(0).stdout;
        let alone = shown(&[&["out/summary.json"], form].concat()).with_status(0).stdout;
        assert!(!whole.is_empty());
        assert_eq!(whole, alone, "{form:?}");
    }
    for form in [["--html", "page.html"], ["--hdr-log", "log.hlog"]] {
        let needs = format!("{} needs the rounds of a race", form[0]);
        shown(&[&["out/summary.json"], &form[..]].concat())
            .with_status(2)
            .assert_printed(&[&needs]);
        assert!(!course.path(form[1]).exists());
    }
    course.write("other.json", "{}");
    shown(&["other.json"]).with_status(2).assert_printed(&["other.json is no summary of a race"]);
    let text = std::fs::read_to_string(course.path("out/summary.json")).unwrap();
    course.write("later.json", &text.replacen("\"format\": 2", "\"format\": 3", 1));
    shown(&["later.json"]).with_status(2).assert_printed(&["expected format 1 to 2, found 3"]);
}

#[test]
fn a_directory_that_cannot_be_created_or_read_is_reported() {
    let course = Course::new();
    course.write("file", "");
    for out in ["file", "file/below"] {
        let args = ["quick", "--only", "null", "--contender", GOOD, "--out", out];
        course.race(&args).with_status(2).assert_printed(&["cannot create", out]);
    }
    let ended = course.race(&["--resume", "nowhere"]).with_status(2);
    ended.assert_printed(&["cannot read nowhere/race.toml"]);
    assert!(course.log().is_empty(), "a contender was started");
}

#[test]
fn a_full_disk_stops_the_race() {
    let course = Course::in_rounds();
    let Some(small) = SmallDisk::new(&course) else {
        return skip("a small tmpfs cannot be mounted here (not root?)");
    };
    course.write_race("'null'", "50ms", "connections = 8");
    let args = ["race.toml", "--rounds", "100", "--contender", GOOD, "--out", "disk/out"];
    let ended = course.race(&args).with_status(2);
    course.assert_nothing_left();
    // Either file may be the first without space.
    ended.assert_printed(&["cannot append to disk/out/", ".jsonl: No space left", "--resume"]);
    // The table comes first, then what could not be written and how to write it later.
    assert!(ended.stdout.contains("\ncontender "), "{}", ended.stdout);
    let later = "regatta report disk/out --json disk/out/summary.json --html disk/out/report.html";
    ended.assert_printed(&["cannot write disk/out/summary.json: No space left", later]);
    // The stored rounds are intact, and with more space the race continues.
    small.grow();
    let race = course.start(&["--resume", "disk/out"]);
    let started = course.log().len();
    until("it continues", || course.log().len() > started);
    race.signal("INT");
    race.ended().with_status(130).assert_printed(&["interrupted; "]);
    course.assert_nothing_left();
}

/// A disk of a few pages at `disk`, unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(course: &Course) -> Option<SmallDisk> {
        let path = course.path("disk");
        std::fs::create_dir(&path).unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=16k", "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(&path).output();
        mounted.is_ok_and(|mount| mount.status.success()).then_some(SmallDisk(path))
    }

    fn grow(&self) {
        let mount = Command::new("mount").args(["-o", "remount,size=1m"]).arg(&self.0).status();
        assert!(mount.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, in case a failed test left a process in it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
