//! The manifest: what a contender says of itself, in TOML. Parsing and checks, no file access.

use regatta_host::Ready;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::collections::BTreeMap;

/// The workloads of the design. A manifest may also name a workload file, by the name in it.
pub const WORKLOADS: [&str; 6] = ["double", "dialogue", "hello", "hub", "hash", "shard"];

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
    /// Program and arguments that print the version of its runtime, on the first line.
    #[serde(default)]
    pub version: Vec<String>,
    /// What shows that it is ready.
    #[serde(default)]
    pub ready: Ready,
    /// Files that are counted as its lines of code. `{workload}` stands for the workload's name.
    #[serde(default)]
    pub source: Vec<String>,
    /// Path of its URL, where the workload has one.
    pub path: Option<String>,
    /// How it speaks the workload in its own way.
    pub adapter: Option<Adapter>,
    /// Environment variables; placeholders are filled in.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Templates of configuration files, ending in `.in`; filled in, they are put into `{run}`
    /// without that ending.
    #[serde(default)]
    pub config: Vec<String>,
    /// What is started beside it.
    #[serde(default)]
    pub supports: Vec<Support>,
    /// What it cannot exceed.
    #[serde(default)]
    pub limits: Limits,
    /// The system that it stands in for, where that is not to be had.
    pub stand_in_for: Option<String>,
    /// The contender whose very loop it runs when it has a single CPU.
    pub one_core_as: Option<String>,
}

/// How a server speaks a workload in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adapter {
    /// Sends back what it gets: the null server.
    Echo,
    /// Sends `{reply}` for each `{request_bytes}` that it gets: the null server of `hello`.
    Canned,
    /// Phoenix channels.
    Phoenix,
    /// Rails' ActionCable.
    Actioncable,
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

/// Processes that the race starts beside a contender, such as `redis-nodes:4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// What.
    pub name: String,
    /// How many.
    pub count: u32,
}

impl Serialize for Support {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}:{}", self.name, self.count))
    }
}

impl<'de> Deserialize<'de> for Support {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Support, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parts = text.split_once(':');
        let parsed = parts.and_then(|(name, count)| Some((name, count.parse::<u32>().ok()?)));
        match parsed {
            Some((name @ "redis-nodes", count @ 1..)) => Ok(Support { name: name.into(), count }),
            _ => Err(D::Error::custom(format!(
                "supports are written \"redis-nodes:4\", with a count of at least 1, not {text:?}"
            ))),
        }
    }
}

impl Manifest {
    /// Parses and checks; the error is a sentence with the place in the text.
    pub fn parse(text: &str) -> Result<Manifest, String> {
        let manifest: Manifest = toml::from_str(text).map_err(|error| error.to_string())?;
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
            version: Vec::new(),
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
        if self.one_core_as.as_ref() == Some(name) {
            return Err(format!("one_core_as of {name} names another contender, not itself"));
        }
        let Limits { connections, pipeline } = self.limits;
        for (limit, what) in [(connections, "connections"), (pipeline, "pipelined requests")] {
            if limit == Some(0) {
                return Err(format!("{name} cannot be limited to 0 {what}"));
            }
        }
        Ok(())
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
adapter = "actioncable"
env = { PORT = "{port}" }
config = ["nginx.conf.in"]
supports = ["redis-nodes:4"]
limits = { connections = 256, pipeline = 1 }
stand_in_for = "Phoenix"
one_core_as = "epoll"
"#
        );
        let manifest = Manifest::parse(&text).unwrap();
        assert_eq!(manifest.ready, Ready::Path("/health".into()));
        assert_eq!(manifest.adapter, Some(Adapter::Actioncable));
        assert_eq!(manifest.supports, [Support { name: "redis-nodes".into(), count: 4 }]);
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
            (with("adapter = \"cable\""), "unknown variant `cable`"),
            (with("supports = [\"redis-nodes\"]"), "supports are written \"redis-nodes:4\""),
            (with("supports = [\"redis-nodes:0\"]"), "with a count of at least 1"),
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
