//! Races that are resumed after regatta, a contender or the kernel has changed.

use crate::support::race::course::{Course, SHORT, example};
use std::{fs, path::Path, process::Command};

/// Appends a byte to a program, which still starts as before.
fn rebuild(program: &Path) {
    let mut bytes = fs::read(program).unwrap();
    bytes.push(0);
    // A new file, as a compiler writes it: a running program's file cannot be written to.
    fs::remove_file(program).unwrap();
    fs::write(program, bytes).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(program, mode).unwrap();
}

#[test]
fn resuming_is_refused_after_regatta_or_a_contender_was_rebuilt() {
    let course = Course::in_rounds();
    let (own, good) = (course.path("regatta"), course.path("good"));
    fs::copy(env!("CARGO_BIN_EXE_regatta"), &own).unwrap();
    fs::copy(example("ill_behaved"), &good).unwrap();
    // A copy of the program, with the environment of the course.
    let race = |args: &[&str]| {
        let given = course.command(args);
        let mut command = Command::new(&own);
        command.args(given.get_args()).current_dir(given.get_current_dir().unwrap());
        command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
        course.started(command).ended()
    };
    let first = [&SHORT[..], &["--out", "out", "--contender", "good=./good {port}"]].concat();
    race(&first);
    let file = course.out().join("rounds.jsonl");
    let rounds = fs::read_to_string(&file).unwrap();
    assert_eq!(rounds.lines().count(), 2);
    // A round is due again.
    let rounds = rounds.split_inclusive('\n').next().unwrap();
    fs::write(&file, rounds).unwrap();
    let resume = ["--resume", "out"];
    let ended = race(&resume);
    assert_ne!(ended.status.code(), Some(2), "nothing has changed: {}", ended.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2);
    fs::write(&file, rounds).unwrap();

    rebuild(&good);
    let refused = race(&resume).with_status(2);
    let said = ["the race cannot continue: since its rounds were run, ", "good was changed; "];
    refused.assert_printed(&said);
    rebuild(&own);
    let refused = race(&resume).with_status(2);
    refused.assert_printed(&["regatta was rebuilt; ", "good was changed; ", "start a new race"]);

    let file = course.out().join("race.toml");
    let asked = fs::read_to_string(&file).unwrap();
    let old = asked.replace("Linux ", "Minix ");
    assert_ne!(asked, old);
    fs::write(&file, old).unwrap();
    race(&resume).with_status(2).assert_printed(&["the kernel was Minix ", ", now Linux "]);
    assert_eq!(fs::read_to_string(course.out().join("rounds.jsonl")).unwrap(), rounds);
}

/// A disk that is full, or a kill, may end a race between any two lines.
#[test]
fn a_life_of_which_a_part_is_stored_is_raced_again_as_a_whole() {
    let course = Course::new();
    let good = ["--contender", "good=sh -c 'exec \"$ILL\" {port}'"];
    let race = "name = 'test'\nworkload = 'double'\ncontenders = ['null']\nrounds = 2\nwindow = '300ms'\n\
                slice = '10ms'\nwarm_up = '0s'\n[[load]]\nconnections = [4, 8]\nrate = 2000\n";
    course.write("race.toml", race);
    course.race(&[&["race.toml", "--out", "out"][..], &good].concat());
    let file = course.out().join("rounds.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    // Two lives of three contenders (one is the twin) under two loads.
    assert_eq!(lines.len(), 12);
    for stored in [1, 5, 7] {
        fs::write(&file, lines[..stored].concat()).unwrap();
        let summary = course.race(&["--resume", "out", "--json", "-"]).raced().summary();
        assert!(summary.cells.iter().all(|cell| cell.rounds == 2), "{:?}", summary.cells);
        let after = fs::read_to_string(&file).unwrap();
        assert_eq!(after.lines().count(), 12, "{stored} lines were stored");
        // Rounds of a life that was complete stay.
        assert!(after.starts_with(&lines[..stored / 6 * 6].concat()));
        course.replay("out").with_status(0);
    }
}
