//! Races that are to go on with something else than they were begun with.

use crate::course::{Course, SHORT, example};
use std::{fs, path::Path, process::Command};

/// Adds a byte behind the end of a program, which starts as before.
fn build_anew(program: &Path) {
    let mut bytes = fs::read(program).unwrap();
    bytes.push(0);
    // A file of its own, as a compiler writes it: one that is run cannot be written to.
    fs::remove_file(program).unwrap();
    fs::write(program, bytes).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(program, mode).unwrap();
}

#[test]
fn resuming_after_regatta_or_a_contender_was_built_anew_is_refused_with_the_reason() {
    let course = Course::new();
    let (own, good) = (course.path("regatta"), course.path("good"));
    fs::copy(env!("CARGO_BIN_EXE_regatta"), &own).unwrap();
    fs::copy(example("ill_behaved"), &good).unwrap();
    // The same program in another place, with everything else as the course has it.
    let race = |args: &[&str]| {
        let given = course.command(args);
        let mut command = Command::new(&own);
        command.args(given.get_args()).current_dir(given.get_current_dir().unwrap());
        command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
        course.started(command).ended()
    };
    let begun = [&SHORT[..], &["--out", "out", "--contender", "good=./good {port}"]].concat();
    race(&begun);
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

    build_anew(&good);
    let refused = race(&resume).with_status(2);
    let said = ["the race cannot continue: since its rounds were run, ", "good was changed; "];
    refused.assert_told(&said);
    build_anew(&own);
    let refused = race(&resume).with_status(2);
    refused.assert_told(&["regatta was rebuilt; ", "good was changed; ", "start a new race"]);

    let file = course.out().join("race.toml");
    let asked = fs::read_to_string(&file).unwrap();
    let old = asked.replace("Linux ", "Minix ");
    assert_ne!(asked, old);
    fs::write(&file, old).unwrap();
    race(&resume).with_status(2).assert_told(&["the kernel was Minix ", ", now Linux "]);
    assert_eq!(fs::read_to_string(course.out().join("rounds.jsonl")).unwrap(), rounds);
}
