//! A contender in a container beside the same program started directly.

use crate::support::race::course::{Course, example};
use regatta_host::{container_engine, engine_trouble};
use regatta_record::{Kind, Outcome, Round};
use regatta_testkit::skip;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const IMAGE: &str = "localhost/regatta-test:ill-behaved";

/// A container engine and a course with an image of this name that runs `ill_behaved`. `None`, after
/// printing why, if containers do not run here.
fn with_image(name: &str) -> Option<(PathBuf, Course)> {
    let engine = engine()?;
    let course = Course::new();
    let made = image(name, &course, &engine);
    made.map_err(|why| skip(&why)).ok()?;
    Some((engine, course))
}

fn engine() -> Option<PathBuf> {
    if let Some(why) = engine_trouble() {
        skip(&why);
        return None;
    }
    container_engine()
}

/// Imports an image of `ill_behaved` and its libraries, without a registry. Returns the reason if the
/// engine cannot run it.
fn image(name: &str, course: &Course, engine: &Path) -> Result<(), String> {
    let (root, program) = (course.path("root"), example("ill_behaved"));
    let ldd =
        Command::new("ldd").arg(&program).output().map_err(|error| format!("ldd: {error}"))?;
    let listed = String::from_utf8_lossy(&ldd.stdout).into_owned();
    let files = listed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
    for file in files {
        let into = root.join(file.strip_prefix("/").unwrap());
        fs::create_dir_all(into.parent().unwrap()).unwrap();
        fs::copy(&file, into).unwrap();
    }
    fs::copy(&program, root.join("program")).unwrap();
    let tar = course.path("image.tar");
    let packed = Command::new("tar").arg("-cf").arg(&tar).arg("-C").arg(&root).arg(".").status();
    assert!(packed.unwrap().success());
    let run = |command: &mut Command| {
        let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    };
    run(Command::new(engine).arg("import").arg(&tar).arg(name))?;
    // Checks that containers start: this one prints its usage and exits.
    let limits = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"];
    let try_it =
        ["run", "--rm", "--network=host", limits[0], limits[1], name, "/program", "1", "x"];
    match run(Command::new(engine).args(try_it)) {
        Err(said) if said.contains("usage: ill_behaved") => Ok(()),
        other => Err(format!("it does not start one: {other:?}")),
    }
}

#[test]
fn a_container_is_measured_by_its_control_group_and_stopped() {
    let Some((engine, course)) = with_image(IMAGE) else { return };
    let contender = |name: &str, start: &str, more: &str| {
        format!(
            "[[contender]]\nname = '{name}'\nabout = 'x'\nworkloads = ['double']\n\
             start = ['{start}', '{{port}}']\n{more}\n"
        )
    };
    let boxed = contender("boxed", "/program", &format!("image = '{IMAGE}'"));
    let plain = contender("plain", &example("ill_behaved").display().to_string(), "");
    course.write(
        "race.toml",
        &format!(
            "name = 'test'\nworkload = 'double'\ncontenders = ['boxed', 'plain']\nrounds = 1\n\
             window = '1s'\nwarm_up = '0s'\n{boxed}{plain}[[load]]\nconnections = 4\n"
        ),
    );
    let ended = course.race(&["race.toml", "--json", "-", "--out", "out"]);
    let rounds = fs::read_to_string(course.out().join("rounds.jsonl")).unwrap();
    let rounds: Vec<Round> =
        rounds.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rounds.len(), 2, "{}", ended.stderr);
    for round in &rounds {
        assert_eq!(round.outcome, Outcome::Finished, "{}", ended.stderr);
        assert_eq!((&round.served_by_others, &round.left_its_cpus), (&None, &None));
        let server = round.server.as_ref().expect("observed");
        assert_eq!((server.processes, server.cpus), (1, 1), "not the engine's own: {server:?}");
        let cost = server.cpu_ns / round.requests;
        assert!((1_000..1_000_000).contains(&cost), "{}: {cost} ns", round.contender);
    }
    for name in ["boxed", "plain"] {
        assert_ne!(ended.verdict(name).kind(), Kind::ServerNotObserved, "{}", ended.stderr);
    }
    course.assert_nothing_left();
    let left = Command::new(&engine).args(["ps", "--all", "--format={{.Image}}"]).output().unwrap();
    let left = String::from_utf8(left.stdout).unwrap();
    assert!(!left.contains(IMAGE), "{left}");
}

#[test]
fn resuming_is_refused_after_an_image_was_rebuilt() {
    // A unique name, so that the other test's image does not change.
    let name = format!("localhost/regatta-test:anew-{}", std::process::id());
    let Some((engine, course)) = with_image(&name) else { return };
    course.write(
        "race.toml",
        &format!(
            "name = 'test'\nworkload = 'double'\ncontenders = ['boxed', 'null']\nrounds = 1\n\
             window = '1s'\nwarm_up = '0s'\n[[contender]]\nname = 'boxed'\nabout = 'x'\n\
             workloads = ['double']\nstart = ['/program', '{{port}}']\nimage = '{name}'\n\
             [[load]]\nconnections = 4\n"
        ),
    );
    course.race(&["race.toml", "--out", "out"]);
    let file = course.out().join("rounds.jsonl");
    let rounds = fs::read_to_string(&file).unwrap();
    assert_eq!(rounds.lines().count(), 2);
    let due = |text: &str| fs::write(&file, text.split_inclusive('\n').next().unwrap()).unwrap();
    due(&rounds);
    let resumed = course.race(&["--resume", "out"]);
    assert_ne!(resumed.status.code(), Some(2), "nothing has changed: {}", resumed.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2);

    due(&rounds);
    // The same name, with one more file in the image.
    course.write("root/new", "new");
    image(&name, &course, &engine).unwrap();
    let refused = course.race(&["--resume", "out"]).with_status(2);
    refused.assert_printed(&["the race cannot continue: ", "the image ", "was rebuilt"]);
    let removed = Command::new(&engine).args(["rmi", "--force", &name]).output().unwrap();
    assert!(removed.status.success(), "{removed:?}");
    course.assert_nothing_left();
}

#[test]
fn images_on_the_command_line_race_each_other() {
    let image = "localhost/regatta-test:on-the-line";
    let Some((_, course)) = with_image(image) else { return };
    let words = ["one", "two"].map(|name| format!("{name}=image:{image} /program {{port}}"));
    let short = ["-c", "4", "--rounds", "1", "--window", "1s", "--out", "out", "--json", "-"];
    let summary = course.race(&[&[words[0].as_str(), &words[1]], &short[..]].concat()).summary();
    course.assert_nothing_left();
    assert_eq!(summary.asked.contenders, ["one", "two", "null"]);
    for name in ["one", "two"] {
        let cell = summary.cells.iter().find(|cell| cell.contender == name).unwrap();
        assert!(cell.requests > 0 && cell.verdict.kind() != Kind::ServerNotObserved, "{cell:?}");
    }
}

#[test]
fn an_image_that_does_not_exist_is_an_error_before_the_race() {
    if engine().is_none() {
        return;
    }
    let course = Course::new();
    let missing = "image:localhost/regatta-test:missing /program {port}";
    let plain = "plain=sh -c 'exec \"$ILL\" {port}'";
    let ended = course.race(&[missing, plain, "--out", "out"]).with_status(2);
    ended.assert_printed(&["localhost/regatta-test:missing"]);
    assert!(course.log().is_empty(), "something was started");
}
