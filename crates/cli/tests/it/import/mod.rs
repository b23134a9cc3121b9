//! `regatta import httparena`: a checkout in the form of HttpArena's (the folder `httparena`, made for these tests)
//! becomes contenders, workload files and races. `golden` has the files that are expected, without their first line.

mod container;
mod hostile;
mod replies;

use crate::support::{regatta, run};
use regatta_testkit::child::Ended;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/import").join(name)
}

/// Copies a folder with its files and folders.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = {
            let name = entry.unwrap().file_name();
            (from.join(&name), to.join(&name))
        };
        match from.is_dir() {
            true => copy(&from, &to),
            false => drop(fs::copy(&from, &to).unwrap()),
        }
    }
}

/// A folder in which a copy of the checkout is imported.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: TempDir::new().unwrap() };
        copy(&own("httparena"), &place.path("checkout"));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    /// Runs `regatta import httparena ARGS` there.
    fn import(&self, args: &[&str]) -> Ended {
        run(regatta!("import httparena").args(args).current_dir(self.folder.path()))
    }

    /// The files that were generated, sorted.
    fn generated(&self) -> Vec<String> {
        let mut all = Vec::new();
        for folder in ["peers", "workloads", "races"] {
            below(&self.path(folder), &mut all);
        }
        let strip =
            |path: PathBuf| path.strip_prefix(self.folder.path()).unwrap().display().to_string();
        let mut all: Vec<String> = all.into_iter().map(strip).collect();
        all.sort();
        all
    }
}

fn below(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => below(&entry.path(), all),
            false => all.push(entry.path()),
        }
    }
}

/// Compares a text with a golden file, or writes it with `GOLDEN=write`.
fn assert_golden(name: &str, text: &str) {
    let path = own("golden").join(name);
    if std::env::var_os("GOLDEN").is_some_and(|how| how == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(text, golden, "{name} differs; if that is wanted, run with GOLDEN=write");
}

#[test]
fn entries_become_manifests_workloads_and_races() {
    let place = Place::new();
    let ended = place.import(&["checkout"]);
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{ended:?}");
    assert_golden("stdout.txt", &ended.stdout);
    let files = place.generated();
    assert_eq!(files.len(), 10, "{files:?}");
    let checkout = fs::canonicalize(place.path("checkout")).unwrap();
    for file in &files {
        let text = place.read(file);
        let (first, others) = text.split_once('\n').unwrap();
        assert!(first.starts_with("# Made by regatta import. "), "{first}");
        assert_golden(file, &others.replace(checkout.to_str().unwrap(), "/CHECKOUT"));
    }
}

#[test]
fn what_was_imported_is_listed_and_planned() {
    let place = Place::new();
    assert_eq!(place.import(&["checkout", "--only", "plain"]).code(), 0);
    let regatta = |args: &[&str]| run(regatta!("").args(args).current_dir(place.folder.path()));
    let listed = regatta(&["peers"]);
    let name = "arena-plain  (arena-baseline, arena-pipelined, arena-limited-conn, arena-json)\n";
    assert!(listed.code() == 0 && listed.stdout.contains(name), "{listed:?}");
    for profile in ["baseline", "pipelined", "limited-conn", "json"] {
        let planned = regatta(&["race", &format!("races/arena-{profile}.toml"), "--dry-run"]);
        assert!(
            planned.stdout.contains("arena-plain") || planned.stderr.contains("arena-plain"),
            "{planned:?}"
        );
    }
}

#[test]
fn only_the_requested_entries_and_profiles_are_imported() {
    let place = Place::new();
    let ended =
        place.import(&["checkout", "--only", "plain,only-json", "--profiles", "json,pipelined"]);
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(!ended.stdout.contains("stack"), "{}", ended.stdout);
    assert_eq!(
        place.generated(),
        [
            "peers/arena-only-json/manifest.toml",
            "peers/arena-plain/manifest.toml",
            "races/arena-json.toml",
            "races/arena-pipelined.toml",
            "workloads/arena-json.toml",
            "workloads/arena-pipelined.toml",
        ]
    );
    let manifest = place.read("peers/arena-plain/manifest.toml");
    assert!(manifest.contains("workloads = [\"arena-pipelined\", \"arena-json\"]"), "{manifest}");
    assert!(manifest.contains("ready = \"/pipeline\""), "{manifest}");
}

#[test]
fn a_changed_file_is_kept_and_others_are_updated() {
    let place = Place::new();
    assert_eq!(place.import(&["checkout"]).code(), 0);
    let again = place.import(&["checkout"]);
    let said = again.stdout.lines().filter(|line| line.contains(".toml: "));
    assert!(
        said.clone().count() == 10 && said.clone().all(|line| line.ends_with(": unchanged")),
        "{again:?}"
    );

    let (mine, race) = ("peers/arena-plain/manifest.toml", "races/arena-json.toml");
    let changed = place.read(mine).replace("port = 8080", "port = 9090");
    place.write(mine, &changed);
    place.write(race, "# mine\n");
    let items = place.read("checkout/data/dataset.json").replace("Item 1\"", "Item one\"");
    place.write("checkout/data/dataset.json", &items);
    let third = place.import(&["checkout"]);
    for expected in [
        format!("{mine}: kept, because you have changed it; to have it made again, remove it\n"),
        format!("{race}: kept, because you have changed it"),
        "workloads/arena-json.toml: updated\n".into(),
        "workloads/arena-baseline.toml: unchanged\n".into(),
    ] {
        assert!(third.stdout.contains(&expected), "{expected} in {}", third.stdout);
    }
    assert_eq!((place.read(mine), place.read(race)), (changed, "# mine\n".into()));
    assert!(place.read("workloads/arena-json.toml").contains("Item one"));
    fs::remove_file(place.path(race)).unwrap();
    assert!(place.import(&["checkout"]).stdout.contains(&format!("{race}: written\n")));
}

#[test]
fn errors_say_what_was_expected() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    copy(&place.path("checkout"), &place.path("a:b"));
    for (args, expected) in [
        (&["missing"][..], "cannot open missing: No such file"),
        (&["empty"], "is not a checkout of HttpArena: it has no folder `frameworks`; clone"),
        (
            &["a:b"],
            "a:b\" has a colon, a control character or is not UTF-8, so it cannot be mounted",
        ),
        (
            &["checkout", "--only", "plane"],
            "there is no entry \"plane\" in the folder `frameworks`; those with the same first letter: plain",
        ),
        (
            &["checkout", "--only", "../plain"],
            "there is no entry \"../plain\" in the folder `frameworks`",
        ),
        (
            &["checkout", "--profiles", "async-db"],
            "the profile \"async-db\" cannot be imported (a database, which an imported contender does not have); \
             expected some of: baseline, pipelined, limited-conn, json",
        ),
        (
            &["checkout", "--profiles", "base"],
            "\"base\" cannot be imported (no profile that regatta knows)",
        ),
    ] {
        let ended = place.import(args);
        assert_eq!(ended.code(), 2, "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{expected:?} in {}", ended.stderr);
        assert_eq!(place.generated(), Vec::<String>::new());
    }
}

#[test]
fn a_checkout_of_which_nothing_can_be_imported_is_a_failure() {
    let place = Place::new();
    let ended = place.import(&["checkout", "--only", "stack,off"]);
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.stdout.ends_with("nothing was imported\n"), "{ended:?}");
    // Without the dataset there is no JSON, and `only-json` has nothing else.
    fs::remove_file(place.path("checkout/data/dataset.json")).unwrap();
    let ended = place.import(&["checkout", "--only", "only-json"]);
    assert_eq!(ended.code(), 1, "{ended:?}");
    for expected in [
        "left out: the profile json: data/dataset.json does not exist in the checkout\n",
        "left out: the mount /data/dataset.json: data/dataset.json does not exist in the checkout; entries that",
        "left out: only-json: it has none of the profiles that are imported\n",
    ] {
        assert!(ended.stdout.contains(expected), "{expected:?} in {}", ended.stdout);
    }
    assert_eq!(place.generated(), Vec::<String>::new());
}
