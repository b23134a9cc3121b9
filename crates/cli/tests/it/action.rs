//! The GitHub Action, `action.yml`: its steps are run as a job would run them, with a `gh` that records what it
//! gets. Two races are real: of a build with itself, and of a build with a planted regression.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
};
use tempfile::TempDir;
use yaml_rust2::{Yaml, YamlLoader};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn action() -> Yaml {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    YamlLoader::load_from_str(&text).expect("action.yml is YAML").swap_remove(0)
}

fn string(yaml: &Yaml) -> &str {
    yaml.as_str().unwrap_or_else(|| panic!("expected a text, found {yaml:?}"))
}

/// A job that uses the action: a workspace with the directories `base` and `head`, and programs to find first.
struct Job {
    folder: TempDir,
    inputs: BTreeMap<String, String>,
    pull_request: &'static str,
    /// ID of the comment that `gh` finds.
    found: &'static str,
}

/// How a job ended.
struct Ended {
    status: i32,
    /// What the steps printed.
    log: String,
    outputs: BTreeMap<String, String>,
    summary: String,
    /// The calls of `gh`, one per line, each followed by the body that it sent.
    gh: String,
}

const GH: &str = r#"#!/usr/bin/env bash
printf 'gh %s\n' "$*" >>"$GH_LOG"
case "$1 $2" in
    'release download') cp "$GH_RELEASE"/* "$7" ;;
    'api --paginate') [ -z "$GH_FOUND" ] || echo "$GH_FOUND" ;;
    'api --method') cat "${6#body=@}" >>"$GH_LOG" ;;
esac
"#;

/// Records its arguments, writes a table, and ends with the status in the environment.
const REGATTA: &str = r#"#!/usr/bin/env bash
if [ "$1" = --version ]; then echo 'regatta 9.9.9'; exit; fi
printf '<%s>\n' "$@" >"$ARGUMENTS"
while [ $# -gt 0 ]; do
    [ "$1" != --md ] || yes '| a row of the table |' | head -n "$ROWS" >"$2"
    shift
done
exit "$STATUS"
"#;

impl Job {
    fn new(inputs: &[(&str, &str)]) -> Job {
        let folder = TempDir::new().unwrap();
        for dir in ["base", "head", "bin", "temp"] {
            fs::create_dir(folder.path().join(dir)).unwrap();
        }
        let job = Job { folder, inputs: BTreeMap::new(), pull_request: "7", found: "" };
        job.program("bin/gh", GH);
        job.program("fake-regatta", REGATTA);
        job.with(inputs)
    }

    /// A job whose regatta does nothing but end with `status`.
    fn fake(inputs: &[(&str, &str)], status: &str) -> Job {
        let job = Job::new(&[("base", "./server {port}"), ("regatta", "./fake-regatta")]);
        fs::write(job.path("status"), status).unwrap();
        job.with(inputs)
    }

    fn with(mut self, inputs: &[(&str, &str)]) -> Job {
        self.inputs.extend(inputs.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the steps in order until one fails.
    fn run(&self) -> Ended {
        let action = action();
        let (mut log, mut status) = (String::new(), 0);
        let mut outputs: BTreeMap<String, String> = BTreeMap::new();
        for step in action["runs"]["steps"].as_vec().expect("steps") {
            let output = self.path("output");
            fs::write(&output, "").unwrap();
            assert_eq!(string(&step["shell"]), "bash");
            let mut command = Command::new("bash");
            command.args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c"]);
            command.arg(string(&step["run"])).current_dir(self.folder.path());
            for (name, value) in step["env"].as_hash().expect("an environment") {
                let value = self.evaluated(string(value), &action, &outputs);
                command.env(string(name), value);
            }
            let bin = self.path("bin");
            let path = std::env::var("PATH").unwrap();
            let ended = command
                .env("PATH", format!("{}:{path}", bin.display()))
                .env("GITHUB_OUTPUT", &output)
                .env("GITHUB_STEP_SUMMARY", self.path("summary"))
                .env("GITHUB_REPOSITORY", "me/mine")
                .env("RUNNER_TEMP", self.path("temp"))
                .env("GH_LOG", self.path("gh.log"))
                .env("GH_FOUND", self.found)
                .env("GH_RELEASE", self.path("release"))
                .env("ARGUMENTS", self.path("arguments"))
                .env("STATUS", self.text("status"))
                .env("ROWS", if self.path("long").exists() { "5000" } else { "1" })
                .stdin(Stdio::null())
                .output()
                .unwrap();
            log += &String::from_utf8_lossy(&ended.stdout);
            log += &String::from_utf8_lossy(&ended.stderr);
            if let Some(id) = step["id"].as_str() {
                for line in self.text("output").lines() {
                    let (name, value) = line.split_once('=').expect("name=value");
                    outputs.insert(format!("steps.{id}.outputs.{name}"), value.into());
                }
            }
            status = ended.status.code().expect("it was not killed");
            if status != 0 {
                break;
            }
        }
        let (summary, gh) = (self.text("summary"), self.text("gh.log"));
        Ended { status, log, outputs, summary, gh }
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Replaces `${{ A || B }}` by the first value that is not empty.
    fn evaluated(&self, text: &str, action: &Yaml, outputs: &BTreeMap<String, String>) -> String {
        let Some((before, rest)) = text.split_once("${{") else { return text.into() };
        let (expression, after) = rest.split_once("}}").expect("}}");
        let value = |name: &str| match name {
            "github.token" => "secret".into(),
            "github.action_path" => root().display().to_string(),
            "github.action_repository" => "them/regatta".into(),
            "github.action_ref" => "v1.2.3".into(),
            "github.event.pull_request.number" => self.pull_request.into(),
            _ if name.starts_with("steps.") => outputs.get(name).cloned().unwrap_or_default(),
            _ => {
                let name = name.strip_prefix("inputs.").expect("a known context");
                let input = &action["inputs"][name];
                assert!(!input.is_badvalue(), "the action has no input {name}");
                match self.inputs.get(name) {
                    Some(value) => value.clone(),
                    None => self.evaluated(string(&input["default"]), action, outputs),
                }
            }
        };
        let mut values = expression.split("||").map(|name| value(name.trim()));
        let value = values.find(|value| !value.is_empty()).unwrap_or_default();
        format!("{before}{value}{after}")
    }
}

impl Ended {
    fn outcome(&self) -> &str {
        self.outputs.get("steps.race.outputs.outcome").map_or("", String::as_str)
    }
}

/// Held by the tests that race: at the same time they would disturb each other.
static MACHINE: Mutex<()> = Mutex::new(());

/// Short rounds of the debug build.
const SHORT: &str = "--debug-build --settle 0s --window 200ms";

#[test]
fn a_race_of_a_build_with_itself_passes_and_comments() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let server =
        format!("{} serve double --listen 127.0.0.1:{{port}}", env!("CARGO_BIN_EXE_regatta"));
    // The limit is far above what another program on this machine causes.
    let inputs = [
        ("base", server.as_str()),
        ("regatta", env!("CARGO_BIN_EXE_regatta")),
        ("rounds", "5"),
        ("fail-over", "100%"),
        ("options", SHORT),
        ("build", "echo built >it"),
    ];
    let job = Job::new(&inputs);
    let ended = job.run();
    assert_eq!((ended.status, ended.outcome()), (0, "passed"), "{}", ended.log);
    assert_eq!((job.text("base/it"), job.text("head/it")), ("built\n".into(), "built\n".into()));
    assert!(
        ended.gh.contains("gh api --method POST repos/me/mine/issues/7/comments"),
        "{}",
        ended.gh
    );
    let table = "| head |";
    for text in [&ended.gh, &ended.summary] {
        assert!(text.contains("<!-- regatta: regatta -->\n**regatta: passed** · "), "{text}");
        assert!(text.contains(table) && text.contains("| base |"), "{text}");
    }
    let results = Path::new(&ended.outputs["steps.race.outputs.results"]);
    assert!(results.join("summary.json").is_file() && results.join("report.html").is_file());
}

#[test]
fn a_planted_regression_fails_and_replaces_the_comment() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let server =
        format!("{} serve double --listen 127.0.0.1:{{port}}", env!("CARGO_BIN_EXE_regatta"));
    let slower = format!("{server} --model epoll --burn 300us");
    let inputs = [
        ("base", server.as_str()),
        ("head", slower.as_str()),
        ("regatta", env!("CARGO_BIN_EXE_regatta")),
        ("rounds", "5"),
        ("fail-over", "50%"),
        ("options", SHORT),
    ];
    let ended = Job { found: "4711", ..Job::new(&inputs) }.run();
    assert_eq!((ended.status, ended.outcome()), (1, "failed"), "{}", ended.log);
    assert!(
        ended.gh.contains("gh api --method PATCH repos/me/mine/issues/comments/4711"),
        "{}",
        ended.gh
    );
    assert!(ended.gh.contains("**regatta: failed** · "), "{}", ended.gh);
    assert!(!ended.gh.contains("POST"), "it does not comment twice: {}", ended.gh);
    assert!(
        ended.log.contains("::error::regatta: head costs over 50%25 more than base"),
        "{}",
        ended.log
    );
}

#[test]
fn an_undecided_race_passes_with_a_warning_or_fails() {
    let ended = Job::fake(&[], "3").run();
    assert_eq!((ended.status, ended.outcome()), (0, "not-decided"), "{}", ended.log);
    assert!(ended.log.contains("::warning::regatta: not decided"), "{}", ended.log);
    assert!(ended.gh.contains("**regatta: not decided** · "), "{}", ended.gh);
    let ended = Job::fake(&[("on-undecided", "fail")], "3").run();
    assert_eq!(ended.status, 3, "{}", ended.log);
    assert!(ended.log.contains("::error::regatta: not decided"), "{}", ended.log);
    let ended = Job::fake(&[("on-undecided", "maybe")], "3").run();
    assert_eq!(ended.status, 2);
    assert!(ended.log.contains("`maybe`; expected pass or fail"), "{}", ended.log);
}

#[test]
fn a_race_without_a_result_is_an_error_and_no_outcome() {
    for status in ["2", "130"] {
        let ended = Job::fake(&[], status).run();
        assert_eq!((ended.status, ended.outcome()), (2, ""), "{}", ended.log);
        assert!(ended.log.contains(&format!("exit status {status}, without a result")));
        assert!(!ended.gh.contains("comments"), "{}", ended.gh);
    }
}

#[test]
fn there_is_a_comment_only_on_a_pull_request_and_if_it_is_wanted() {
    for (job, comments) in [
        (Job::fake(&[], "0"), true),
        (Job::fake(&[("comment", "false")], "0"), false),
        (Job { pull_request: "", ..Job::fake(&[], "0") }, false),
    ] {
        let ended = job.run();
        assert_eq!((ended.status, ended.gh.contains("issues")), (0, comments), "{}", ended.log);
        assert!(ended.summary.contains("| a row of the table |"), "{}", ended.summary);
    }
}

#[test]
fn a_comment_that_is_refused_is_a_warning() {
    let job = Job::fake(&[], "0");
    job.program("bin/gh", "#!/bin/sh\nexit 1\n");
    let ended = job.run();
    assert_eq!(ended.status, 0, "{}", ended.log);
    assert!(ended.log.contains("::warning::regatta: cannot comment"), "{}", ended.log);
}

#[test]
fn a_long_table_is_cut_at_a_line() {
    let job = Job::fake(&[], "0");
    fs::write(job.path("long"), "").unwrap();
    let ended = job.run();
    assert_eq!(ended.status, 0, "{}", ended.log);
    assert!((50_000..65_000).contains(&ended.summary.chars().count()));
    let rows = ended.summary.lines().filter(|line| line.starts_with("| a"));
    assert!(rows.clone().count() > 2000 && rows.clone().all(|row| row == "| a row of the table |"));
    assert!(ended.summary.ends_with("too long for a comment; the rest is in the results.\n"));
}

#[test]
fn inputs_are_words_and_never_code() {
    let hostile = "a $(touch ran) `touch ran` 'x' \"y\"";
    let job = Job::fake(&[("base-dir", hostile), ("head-dir", "head")], "0");
    fs::create_dir(job.path(hostile)).unwrap();
    let options = format!("--contender 'a b' \"c $(touch {})\" d\\ e", job.path("ran").display());
    let job = job.with(&[("options", &options), ("rounds", "9 $(touch ran)")]);
    let ended = job.run();
    assert_eq!(ended.status, 0, "{}", ended.log);
    let ran = job.path("ran");
    assert!(!ran.exists() && !job.path("head/ran").exists());
    let arguments = job.text("arguments");
    let options = format!("<a b>\n<c $(touch {})>\n<d e>\n", ran.display());
    assert!(arguments.ends_with(&options), "{arguments}");
    assert!(arguments.contains("<--rounds>\n<9 $(touch ran)>\n"), "{arguments}");
    // The starter of base finds its directory.
    let starter = arguments.lines().find_map(|line| line.strip_prefix("<base=")).unwrap();
    let starter = starter.strip_suffix(" {port}>").unwrap();
    job.program(&format!("{hostile}/server"), "#!/bin/sh\npwd; echo \"port $1\"\n");
    let printed = Command::new(starter).arg("4000").output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.ends_with(&format!("{hostile}\nport 4000\n")), "{printed}");
}

#[test]
fn wrong_inputs_are_named() {
    for (inputs, expected) in [
        ([("head-dir", "nowhere")], "no directory `nowhere`"),
        ([("head", "./server")], "`./server` does not contain {port}"),
        ([("build", "exit 7")], "the build in `base` failed"),
        ([("name", "a\n::error::-->")], "the name `a%0A::error::-->` must have 1 to 60 letters"),
        ([("options", "'open")], "cannot be split into words"),
        ([("regatta", "./nothing")], "`./nothing` does not run"),
    ] {
        let ended = Job::fake(&inputs, "0").run();
        assert_eq!(ended.status, 2, "{inputs:?}: {}", ended.log);
        let error = ended.log.lines().find(|line| line.starts_with("::error::regatta: "));
        assert!(error.is_some_and(|line| line.contains(expected)), "{inputs:?}: {}", ended.log);
    }
}

#[test]
fn the_release_binary_is_downloaded_and_verified() {
    let job = Job::fake(&[("regatta", "")], "0");
    let pack = "mkdir -p release pack/regatta/bin && cp fake-regatta pack/regatta/bin/regatta &&
        tar -czf release/regatta-x86_64-linux.tar.gz -C pack regatta && cd release &&
        sha256sum regatta-x86_64-linux.tar.gz >regatta-x86_64-linux.tar.gz.sha256";
    let packed = Command::new("sh").args(["-c", pack]).current_dir(job.folder.path()).status();
    assert!(packed.unwrap().success());
    let ended = job.run();
    assert_eq!((ended.status, ended.outcome()), (0, "passed"), "{}", ended.log);
    assert!(ended.log.contains("regatta 9.9.9"), "{}", ended.log);
    assert!(ended.gh.contains("gh release download v1.2.3 --repo them/regatta"), "{}", ended.gh);
    let ended = job.with(&[("version", "v1.0.0")]).run();
    assert!(ended.gh.contains("gh release download v1.0.0 --repo"), "{}", ended.gh);

    let job = Job::fake(&[("regatta", "")], "0");
    Command::new("sh").args(["-c", pack]).current_dir(job.folder.path()).status().unwrap();
    fs::write(job.path("release/regatta-x86_64-linux.tar.gz"), "other").unwrap();
    let ended = job.run();
    assert_eq!((ended.status, ended.outcome()), (2, ""), "{}", ended.log);
    assert!(ended.log.contains("is damaged"), "{}", ended.log);
}

/// An expression in a script is code injection: its value becomes part of the script.
#[test]
fn scripts_contain_no_expressions_and_every_input_is_used() {
    let action = action();
    let mut used = String::new();
    for step in action["runs"]["steps"].as_vec().unwrap() {
        assert!(!string(&step["run"]).contains("${{"), "{step:?}");
        for (_, value) in step["env"].as_hash().unwrap() {
            used += &format!("{} ", string(value));
        }
    }
    for (name, input) in action["inputs"].as_hash().unwrap() {
        let name = string(name);
        assert!(used.contains(&format!("inputs.{name} ")), "{name} is not used");
        let required = input["required"].as_bool() == Some(true);
        assert!(required || input["default"].as_str().is_some(), "{name} has no default");
        assert!(!string(&input["description"]).is_empty());
    }
}
