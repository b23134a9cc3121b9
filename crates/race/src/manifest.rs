//! The manifest: what a contender says of itself, in TOML. Parsing and checks, no file access.

use crate::{adapter::Adapter, backend::Backend, nearest::hint_of_key};
use regatta_host::Ready;
use regatta_record::day_of;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The built-in workloads. A manifest may also name a workload file, by the name in it.
pub const WORKLOADS: [&str; 6] = ["double", "dialogue", "hello", "hash", "hub", "shard"];

/// `manifest.toml` of a contender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name in tables and on the command line: letters, digits, `-`, `_`, `.` and `+`.
    pub name: String,
    /// One line of what it is.
    pub about: String,
    /// The workloads that it speaks.
    pub workloads: Vec<String>,
    /// Programs that must be on PATH.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Debian packages that bring what it needs; `regatta peers install` installs those that lack.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Shell commands that install and build it, run once in its folder.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Program and arguments.
    pub start: Vec<String>,
    /// The image of a container that `start` is run in, by podman or docker, on the host's network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Program and arguments that print the version of its runtime, on the first line.
    #[serde(default)]
    pub version: Vec<String>,
    /// When the version was released that `setup` installs, `YYYY-MM-DD`, or built for its release. Only
    /// where that version is fixed, by a lock file or the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<String>,
    /// What shows that it is ready.
    #[serde(default)]
    pub ready: Ready,
    /// Files that are counted as its lines of code. `{workload}` stands for the workload's name.
    #[serde(default)]
    pub source: Vec<String>,
    /// Path of its URL, where the workload has one.
    pub path: Option<String>,
    /// How it speaks the workload in its own way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<Adapter>,
    /// Environment variables; placeholders are filled in.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Templates of configuration files, ending in `.in`; filled in, they are put into `{run}`
    /// without that ending.
    #[serde(default)]
    pub config: Vec<String>,
    /// No such thing is started: it was read, and nothing came of it. What stands behind a contender
    /// is a [`Backend`]. An empty list is in stored manifests of earlier versions.
    #[serde(default, skip_serializing)]
    supports: Vec<String>,
    /// What it cannot exceed.
    #[serde(default)]
    pub limits: Limits,
    /// The system that it stands in for, where that is not to be had.
    pub stand_in_for: Option<String>,
    /// The contender whose very loop it runs when it has a single CPU.
    pub one_core_as: Option<String>,
    /// What is started before it, for it to talk to.
    #[serde(default, rename = "backend", skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<Backend>,
}

/// What a contender cannot exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Connections open at once.
    pub connections: Option<u32>,
    /// Requests outstanding on a connection.
    pub pipeline: Option<u32>,
}

impl Manifest {
    /// Parses and checks; the error is a sentence with the place in the text.
    pub fn parse(text: &str) -> Result<Manifest, String> {
        let manifest: Manifest =
            toml::from_str(text).map_err(|error| format!("{error}{}", hint_of_key(&error)))?;
        manifest.check()?;
        Ok(manifest)
    }

    /// A manifest of a command line given as `name=command {port}`, with the quoting of a shell.
    pub fn from_argument(argument: &str, workload: &str) -> Result<Manifest, String> {
        let wanted = "a contender is given as 'name=command {port}'";
        let (name, command) =
            argument.split_once('=').ok_or_else(|| format!("{wanted}, not {argument:?}"))?;
        let start = shell_words::split(command)
            .map_err(|error| format!("{wanted}; of {command:?} the {error}"))?;
        let manifest = Manifest {
            name: name.trim().to_string(),
            about: command.trim().to_string(),
            workloads: vec![workload.to_string()],
            needs: vec![],
            packages: vec![],
            setup: vec![],
            start,
            image: None,
            version: Vec::new(),
            released: None,
            ready: Ready::Tcp,
            source: vec![],
            path: None,
            adapter: None,
            env: BTreeMap::new(),
            config: vec![],
            supports: vec![],
            limits: Limits::default(),
            stand_in_for: None,
            one_core_as: None,
            backends: vec![],
        };
        manifest.check()?;
        Ok(manifest)
    }

    /// Whether its values can be; the error is a sentence.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Manifest { name, workloads, start, .. } = self;
        let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        if name.is_empty() || !name.chars().all(is_good) {
            return Err(format!("a name has letters, digits, '-', '_', '.' and '+': {name:?}"));
        }
        let known = WORKLOADS.join(", ");
        if workloads.is_empty() {
            return Err(format!(
                "{name} names no workload; there are {known}, and the names of workload files"
            ));
        }
        if let Some(wrong) = workloads.iter().find(|name| !is_workload_name(name)) {
            return Err(format!(
                "{name} names the workload {wrong:?}; there are {known}, and the names of workload \
                 files: letters, digits, '-', '_' and '.', not ending in .toml"
            ));
        }
        if let Some(support) = self.supports.first() {
            return Err(format!(
                "{name} asks for {support:?} by `supports`, which starts nothing; describe what \
                 stands behind it as [[backend]], with a name, a start command and a count"
            ));
        }
        if start.first().is_none_or(String::is_empty) {
            return Err(format!("{name} has an empty start command"));
        }
        let has_port = |text: &String| text.contains("{port}");
        let told_by_arguments = start.iter().chain(self.env.values()).any(has_port);
        if !told_by_arguments && self.config.is_empty() {
            return Err(format!(
                "nothing tells {name} its port: put {{port}} into start, env or a config template"
            ));
        }
        if let Some(wrong) = self.config.iter().find(|file| !file.ends_with(".in")) {
            return Err(format!("a template of {name} does not end in .in: {wrong:?}"));
        }
        if let Some(wrong) = self.path.as_ref().filter(|path| !path.starts_with('/')) {
            return Err(format!("the path of {name} does not begin with '/': {wrong:?}"));
        }
        if let Some(wrong) = self.released.as_ref().filter(|date| day_of(date).is_none()) {
            return Err(format!("`released` of {name} is no date such as 2026-09-21: {wrong:?}"));
        }
        if self.one_core_as.as_ref() == Some(name) {
            return Err(format!("one_core_as of {name} names another contender, not itself"));
        }
        let Limits { connections, pipeline } = self.limits;
        for (limit, what) in [(connections, "connections"), (pipeline, "pipelined requests")] {
            if limit == Some(0) {
                return Err(format!("{name} cannot be limited to 0 {what}"));
            }
        }
        Backend::check_all(name, &self.backends)
    }
}

fn is_workload_name(name: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.chars().all(is_good) && !name.ends_with(".toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &str = r#"
name = "node"
about = "Node.js net, one process"
workloads = ["double"]
start = ["node", "server.js", "--port", "{port}"]
"#;

    fn error_of(text: &str) -> String {
        Manifest::parse(text).unwrap_err()
    }

    #[test]
    fn four_lines_are_enough() {
        let manifest = Manifest::parse(SHORT).unwrap();
        assert_eq!(manifest.name, "node");
        assert_eq!(manifest.ready, Ready::Tcp);
        assert_eq!(manifest.limits, Limits::default());
        assert!(manifest.needs.is_empty() && manifest.config.is_empty());
    }

    #[test]
    fn every_field_is_read() {
        let text = format!(
            "{SHORT}{}",
            r#"needs = ["node"]
setup = ["npm ci"]
ready = "/health"
source = ["server.js"]
path = "/ws"
adapter = "canned"
env = { PORT = "{port}" }
config = ["nginx.conf.in"]
limits = { connections = 256, pipeline = 1 }
stand_in_for = "Phoenix"
one_core_as = "epoll"
"#
        );
        let manifest = Manifest::parse(&text).unwrap();
        assert_eq!(manifest.ready, Ready::Path("/health".into()));
        assert_eq!(manifest.adapter, Some(Adapter::Canned));
        assert_eq!(manifest.limits, Limits { connections: Some(256), pipeline: Some(1) });
        assert_eq!(manifest.env["PORT"], "{port}");
        assert_eq!(manifest.stand_in_for.as_deref(), Some("Phoenix"));
        assert_eq!(manifest.one_core_as.as_deref(), Some("epoll"));
    }

    #[test]
    fn mistakes_are_told_with_what_was_expected() {
        let with = |line: &str| format!("{SHORT}{line}\n");
        let expectations = [
            (with("strat = []"), "unknown field `strat`"),
            (with("ready = \"udp\""), "ready is \"tcp\" or a path"),
            (
                with("adapter = \"cable\""),
                "there is no adapter \"cable\"; there are echo, canned, phoenix, actioncable, \
                 centrifuge and nats",
            ),
            (with("limits = { connection = 1 }"), "unknown field `connection`"),
            (with("limits = { connections = 0 }"), "cannot be limited to 0 connections"),
            (with("limits = { pipeline = 0 }"), "cannot be limited to 0 pipelined requests"),
            (with("config = [\"nginx.conf\"]"), "does not end in .in: \"nginx.conf\""),
            (with("path = \"ws\""), "does not begin with '/'"),
            (with("one_core_as = \"node\""), "names another contender"),
            (SHORT.replace("double", "mine.toml"), "the workload \"mine.toml\"; there are double,"),
            (SHORT.replace("double", "a b"), "the names of workload files: letters"),
            (SHORT.replace("\"double\"", ""), "names no workload"),
            (SHORT.replace("{port}", "80"), "nothing tells node its port"),
            (SHORT.replace("\"node\"\n", "\"a b\"\n"), "a name has letters"),
            ("name = \"x\"".to_string(), "missing field"),
        ];
        for (text, expected) in expectations {
            let error = error_of(&text);
            assert!(error.contains(expected), "{error:?} should tell {expected:?}");
        }
        assert!(error_of(&with("strat = []")).contains("line 6"), "the place is told");
    }

    #[test]
    fn what_would_be_read_and_ignored_is_refused() {
        let with = |line: &str| format!("{SHORT}{line}\n");
        let error = error_of(&with("supports = [\"some-nodes:4\"]"));
        let expected = "\"some-nodes:4\" by `supports`, which starts";
        assert!(error.contains(expected), "{error:?} should tell {expected:?}");
        // As stored by versions that had the key.
        assert!(Manifest::parse(&with("supports = []")).is_ok());
    }

    #[test]
    fn a_release_has_a_date() {
        let with = |date: &str| Manifest::parse(&format!("{SHORT}released = \"{date}\"\n"));
        assert_eq!(with("2026-01-30").unwrap().released.as_deref(), Some("2026-01-30"));
        for wrong in ["2026-02-30", "January 2026", ""] {
            let error = with(wrong).unwrap_err();
            assert!(error.contains("`released` of node is no date such as 2026-09-21"), "{error}");
        }
    }

    #[test]
    fn a_command_line_is_split_as_a_shell_would() {
        let argument = r#"old=./my server --title "a b" --port={port}"#;
        let manifest = Manifest::from_argument(argument, "hello").unwrap();
        assert_eq!(manifest.name, "old");
        assert_eq!(manifest.start, ["./my", "server", "--title", "a b", "--port={port}"]);
        assert_eq!(manifest.workloads, ["hello"]);
        for (wrong, expected) in [
            ("server {port}", "'name=command {port}'"),
            ("a=server 'x {port}", "missing closing quote"),
            ("a=", "empty start command"),
            ("a=server", "nothing tells a its port"),
        ] {
            let error = Manifest::from_argument(wrong, "hello").unwrap_err();
            assert!(error.contains(expected), "{error:?} should tell {expected:?}");
        }
    }
}
