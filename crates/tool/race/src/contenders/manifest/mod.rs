//! The manifest of a contender, in TOML. Parsing and checks, no file access.

pub(crate) mod in_container;

use crate::contenders::{
    adapter::Adapter,
    backend::Backend,
    command::Command,
    nearest::hint_of_key,
    over::{self, Over},
};
use in_container::{ContainerKeys, Mount, Seccomp, Ulimit};
use regatta_host::{Ready, RunningUrl, is_url};
use regatta_record::day_of;
use regatta_script::Workload;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The services that an error names. A manifest may also name another built-in workload, or a
/// workload file, by the file's `name`, or its file name without `.toml`.
pub const WORKLOADS: [&str; 6] = ["double", "dialogue", "hello", "hash", "hub", "shard"];

/// `manifest.toml` of a contender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name in tables and on the command line: letters, digits, `-`, `_`, `.` and `+`.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// The workloads that it serves.
    pub workloads: Vec<String>,
    /// Programs that must be on PATH.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Debian packages with the programs it needs; `regatta peers install` installs the missing ones.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Shell commands that install and build it, run once in its folder.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Program and arguments; empty with `url`.
    #[serde(default)]
    pub start: Vec<String>,
    /// URL of the server, if it is already running: it is neither started nor stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Image of the container that runs `start`, with podman or docker, on the host's network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The port that it always listens on. Absent: each start gets a free one, `{port}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Files and folders that its container sees, read-only: `{ from = "items.json", to = "/data/items.json" }`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Limits of the processes in its container, by the names of docker: a number, or `"unlimited"`, which is as
    /// high as the engine may set it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ulimits: BTreeMap<String, Ulimit>,
    /// `"unconfined"`: the processes in its container may make all system calls. Absent: those of the
    /// engine's profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<Seccomp>,
    /// Program and arguments that print the version of its runtime, on the first line.
    #[serde(default)]
    pub version: Vec<String>,
    /// Date on which the version that `setup` installs was released, or built for its release,
    /// `YYYY-MM-DD`. Only if that version is pinned, e.g. by a lock file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<String>,
    /// The sign that it is ready.
    #[serde(default)]
    pub ready: Ready,
    /// Files that are counted as its lines of code. `{workload}` stands for the workload's name.
    #[serde(default)]
    pub source: Vec<String>,
    /// Path of its URL, if the workload has one.
    pub path: Option<String>,
    /// The variant of the workload's protocol that it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<Adapter>,
    /// Protocols that it speaks besides the usual ones of its workloads, by name, and how it is started for each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub over: BTreeMap<String, Over>,
    /// Environment variables; placeholders are filled in.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Templates of configuration files; their names end in `.in`. The filled-in files are written to
    /// `{run}` without that ending.
    #[serde(default)]
    pub config: Vec<String>,
    /// The limits it states.
    #[serde(default)]
    pub limits: Limits,
    /// The system that it stands in for, if that system is not available.
    pub stand_in_for: Option<String>,
    /// The contender whose event loop it runs if it has a single CPU.
    pub one_core_as: Option<String>,
    /// The processes that are started before it and that it connects to.
    #[serde(default, rename = "backend", skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<Backend>,
}

/// The limits that a contender states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of open connections.
    pub connections: Option<u32>,
    /// Maximum number of requests in flight per connection.
    pub pipeline: Option<u32>,
}

impl Manifest {
    /// Parses and checks a manifest. The error is a sentence; a syntax error names its place.
    pub fn parse(text: &str) -> Result<Manifest, String> {
        let manifest: Manifest =
            toml::from_str(text).map_err(|error| format!("{error}{}", hint_of_key(&error)))?;
        manifest.check()?;
        Ok(manifest)
    }

    /// Returns the manifest of a contender given as `name=command {port}`, with shell quoting, or as
    /// `name=URL` of a running server.
    pub fn from_argument(argument: &str, workload: &str) -> Result<Manifest, String> {
        let wanted = "expected a contender as 'name=command {port}'";
        let (name, command) =
            argument.split_once('=').ok_or_else(|| format!("{wanted}, not {argument:?}"))?;
        if is_url(command) {
            return Manifest::of_url(name.trim(), command, workload);
        }
        let parsed = Command::parse(command).map_err(|because| format!("{wanted}; {because}"))?;
        Manifest::of_command(name, command, parsed, workload)
    }

    /// Returns the manifest of a command under a name. `text` is the command as it was written.
    pub(crate) fn of_command(
        name: &str,
        text: &str,
        command: Command,
        workload: &str,
    ) -> Result<Manifest, String> {
        let Command { env, image, start } = command;
        let manifest = Manifest { start, image, env, ..Manifest::blank(name, text, workload) };
        manifest.check()?;
        Ok(manifest)
    }

    /// Returns the manifest of a running server under a name.
    pub(crate) fn of_url(name: &str, url: &str, workload: &str) -> Result<Manifest, String> {
        // Only a hub may be at `/`; other workloads have their own path.
        let is_hub = Workload::parse(workload).is_some_and(|workload| workload.is_pushed());
        let path = RunningUrl::parse(url)?.path.filter(|path| is_hub || path != "/");
        let url_text = Some(url.to_owned());
        let manifest = Manifest { url: url_text, path, ..Manifest::blank(name, url, workload) };
        manifest.check()?;
        Ok(manifest)
    }

    /// Returns the manifest of a server that speaks what it is asked, because the user says so.
    pub(crate) fn speaking(mut self, over: Option<&str>) -> Manifest {
        self.over.extend(over.map(|over| (over.to_owned(), Over::default())));
        self
    }

    fn blank(name: &str, about: &str, workload: &str) -> Manifest {
        Manifest {
            name: name.trim().to_string(),
            about: about.trim().to_string(),
            workloads: vec![workload.to_string()],
            ..Manifest::default()
        }
    }

    /// Checks its values. The error is a sentence.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Manifest { name, workloads, start, image, .. } = self;
        let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        if name.is_empty() || !name.chars().all(is_good) {
            return Err(format!(
                "a name must have only letters, digits, '-', '_', '.' and '+'; it is {name:?}"
            ));
        }
        let known = WORKLOADS.join(", ");
        if workloads.is_empty() {
            return Err(format!(
                "{name} names no workload; expected one of {known}, or the name of a workload file"
            ));
        }
        if let Some(wrong) = workloads.iter().find(|name| !is_workload_name(name)) {
            return Err(format!(
                "{name} names the workload {wrong:?}; expected one of {known}, or the name of a \
                 workload file: letters, digits, '-', '_' and '.', without .toml"
            ));
        }
        // Without a command, an image runs its own.
        let is_image = image.as_ref().is_some_and(|image| !image.is_empty()) && start.is_empty();
        let is_running = self.check_running()?;
        if is_running {
            // It gets no port and is not started.
        } else if start.first().is_none_or(String::is_empty) && !is_image {
            return Err(format!("{name} has an empty start command"));
        }
        let has_port = |text: &String| text.contains("{port}");
        let gets_port = start.iter().chain(self.env.values()).any(has_port);
        if self.port == Some(0) {
            return Err(format!("the `port` of {name} is 0; expected 1 to 65535, or no `port`"));
        }
        if !gets_port && self.config.is_empty() && self.port.is_none() && !is_running {
            return Err(format!(
                "{name} is not given its port: write {{port}} where its start command, env or config \
                 template needs the port; if it always listens on the same one, set `port`"
            ));
        }
        self.container_keys().check(name)?;
        if let Some(wrong) = self.config.iter().find(|file| !file.ends_with(".in")) {
            return Err(format!("the config template {wrong:?} of {name} must end in .in"));
        }
        if let Some(wrong) = self.path.as_ref().filter(|path| !path.starts_with('/')) {
            return Err(format!("the path {wrong:?} of {name} must start with '/'"));
        }
        if let Some(wrong) = self.released.as_ref().filter(|date| day_of(date).is_none()) {
            return Err(format!(
                "`released` of {name} must be a date, e.g. 2026-09-21; it is {wrong:?}"
            ));
        }
        if self.one_core_as.as_ref() == Some(name) {
            return Err(format!("`one_core_as` of {name} must name another contender, not itself"));
        }
        let Limits { connections, pipeline } = self.limits;
        for (limit, what) in [(connections, "connections"), (pipeline, "pipelined requests")] {
            if limit == Some(0) {
                return Err(format!("{name} has a limit of 0 {what}; it must be at least 1"));
            }
        }
        over::check(name, &self.over)?;
        Backend::check_all(name, workloads, &self.backends)
    }

    /// Whether it has further nodes, which the load is spread over.
    pub(crate) fn has_nodes(&self) -> bool {
        self.backends.iter().any(|backend| backend.node)
    }

    /// Returns the keys that apply only to containers.
    pub(crate) fn container_keys(&self) -> ContainerKeys<'_> {
        let (image, seccomp) = (self.image.as_deref(), self.seccomp);
        ContainerKeys { image, mounts: &self.mounts, ulimits: &self.ulimits, seccomp }
    }

    /// Whether it is a running server. It has no keys that say how to start it.
    fn check_running(&self) -> Result<bool, String> {
        let Manifest {
            name, url: Some(url), start, image, setup, env, config, port, backends, ..
        } = self
        else {
            return Ok(false);
        };
        RunningUrl::parse(url)?;
        let starts = [
            ("start", !start.is_empty()),
            ("image", image.is_some()),
            ("port", port.is_some()),
            ("setup", !setup.is_empty()),
            ("env", !env.is_empty()),
            ("config", !config.is_empty()),
            ("backend", !backends.is_empty()),
        ];
        match starts.into_iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => Err(format!(
                "{name} has a `url`, so it is already running and is not started; remove `{key}`, or \
                 remove `url`"
            )),
            None => Ok(true),
        }
    }
}

fn is_workload_name(name: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.chars().all(is_good) && !name.ends_with(".toml")
}

#[cfg(test)]
mod tests;
