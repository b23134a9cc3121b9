//! The steps of `action.yml`, run as a job would run them, with a `gh` that records what it gets.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;
use yaml_rust2::{Yaml, YamlLoader};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub fn action() -> Yaml {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    YamlLoader::load_from_str(&text).expect("action.yml is YAML").swap_remove(0)
}

pub fn string(yaml: &Yaml) -> &str {
    yaml.as_str().unwrap_or_else(|| panic!("expected a text, found {yaml:?}"))
}

/// A job that uses the action: a workspace with the directories `base` and `head`, and programs to find first.
pub struct Job {
    pub folder: TempDir,
    pub inputs: BTreeMap<String, String>,
    pub pull_request: &'static str,
    /// ID of the comment that `gh` finds.
    pub found: &'static str,
}

/// How a job ended.
pub struct Ended {
    pub status: i32,
    /// What the steps printed.
    pub log: String,
    pub outputs: BTreeMap<String, String>,
    pub summary: String,
    /// The calls of `gh`, one per line, each followed by the body that it sent.
    pub gh: String,
}

pub const GH: &str = r#"#!/usr/bin/env bash
printf 'gh %s\n' "$*" >>"$GH_LOG"
case "$1 $2" in
    'release download') cp "$GH_RELEASE"/* "$7" ;;
    'api --paginate') [ -z "$GH_FOUND" ] || echo "$GH_FOUND" ;;
    'api --method') cat "${6#body=@}" >>"$GH_LOG" ;;
esac
"#;

/// Records its arguments, writes a table, and ends with the status in the environment.
pub const REGATTA: &str = r#"#!/usr/bin/env bash
if [ "$1" = --version ]; then echo 'regatta 9.9.9'; exit; fi
printf '<%s>\n' "$@" >"$ARGUMENTS"
while [ $# -gt 0 ]; do
    [ "$1" != --md ] || yes '| a row of the table |' | head -n "$ROWS" >"$2"
    shift
done
exit "$STATUS"
"#;

impl Job {
    pub fn new(inputs: &[(&str, &str)]) -> Job {
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
    pub fn fake(inputs: &[(&str, &str)], status: &str) -> Job {
        let job = Job::new(&[("base", "./server {port}"), ("regatta", "./fake-regatta")]);
        fs::write(job.path("status"), status).unwrap();
        job.with(inputs)
    }

    pub fn with(mut self, inputs: &[(&str, &str)]) -> Job {
        self.inputs.extend(inputs.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn program(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the steps in order until one fails.
    pub fn run(&self) -> Ended {
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

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Replaces `${{ A || B }}` by the first value that is not empty.
    pub fn evaluated(
        &self,
        text: &str,
        action: &Yaml,
        outputs: &BTreeMap<String, String>,
    ) -> String {
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
    pub fn outcome(&self) -> &str {
        self.outputs.get("steps.race.outputs.outcome").map_or("", String::as_str)
    }
}

/// Short rounds of the debug build.
pub const SHORT: &str = "--debug-build --load-sleeps --settle 0s --window 200ms";
