//! An imported entry is built, raced and stopped.

use super::own;
use crate::support::{example::example, race::course::Course};
use regatta_host::{container_engine, engine_trouble, is_taken};
use regatta_record::{Outcome, Round};
use regatta_testkit::skip;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The port of entries.
const PORT: u16 = 8080;

/// Copies a program and its libraries into the root of an image.
fn fill(root: &Path, program: &Path) {
    let ldd = Command::new("ldd").arg(program).output().expect("ldd");
    let listed = String::from_utf8_lossy(&ldd.stdout).into_owned();
    for file in listed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from) {
        let into = root.join(file.strip_prefix("/").unwrap());
        fs::create_dir_all(into.parent().unwrap()).unwrap();
        fs::copy(&file, into).unwrap();
    }
    fs::copy(program, root.join("program")).unwrap();
}

fn run(course: &Course, args: &[&str]) -> crate::support::race::started::Ended {
    course.started(course.regatta(args)).ended()
}

#[test]
fn an_entry_is_built_raced_with_its_mounts_and_stopped() {
    if let Some(why) = engine_trouble() {
        return skip(&why);
    }
    let course = Course::new();
    if is_taken(PORT).unwrap() {
        return skip(&format!("port {PORT} is taken"));
    }
    super::copy(&own("httparena"), &course.path("checkout"));
    let root = course.path("checkout/frameworks/plain/root");
    fs::create_dir_all(&root).unwrap();
    fill(&root, &example("arena_entry"));
    run(&course, &["import", "httparena", "checkout", "--only", "plain"]).with_status(0);
    let built = run(&course, &["peers", "install", "arena-plain", "--yes"]);
    if built.status.code() != Some(0) {
        return skip(&format!("an image cannot be built here: {}", built.stderr));
    }
    let refused = course.race(&["races/arena-json.toml", "--schedule", "duels"]).with_status(2);
    let said = "arena-plain always listens on port 8080, so it and its twin";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    for profile in ["json", "limited-conn"] {
        let (race, out) = (format!("races/arena-{profile}.toml"), format!("out-{profile}"));
        // A load of a number of requests waits for each reply however long a busy machine delays it.
        let bundled = fs::read_to_string(course.path(&race)).unwrap();
        let counted =
            bundled.replace("connections = [64, 512]", "connections = 16\nrequests = 500");
        assert_ne!(bundled, counted);
        fs::write(course.path(&race), counted).unwrap();
        let ended = course.race(&[&race, "--rounds", "1", "--out", &out]);
        let rounds = fs::read_to_string(course.path(&out).join("rounds.jsonl"));
        let rounds = rounds.unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
        let rounds: Vec<Round> =
            rounds.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let own: Vec<&Round> =
            rounds.iter().filter(|round| round.contender == "arena-plain").collect();
        assert!(!own.is_empty(), "{}", ended.stderr);
        for round in own {
            assert_eq!(round.outcome, Outcome::Finished, "{}", ended.stderr);
            assert!(round.requests > 0 && round.served_by_others.is_none(), "{round:?}");
        }
    }
    let engine = container_engine().unwrap();
    let removed = Command::new(engine).args(["rmi", "--force", "localhost/arena-plain"]).output();
    assert!(removed.unwrap().status.success());
    course.assert_free(PORT);
    course.assert_nothing_left();
}
