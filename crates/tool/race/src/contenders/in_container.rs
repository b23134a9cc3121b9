//! The keys of a manifest that apply only to containers: what a container sees, and what its processes may do.

use regatta_host::{ContainerOptions, ulimit_names};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

/// A file or folder that a container sees, read-only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Its path on this machine, relative to the folder of the manifest.
    pub from: PathBuf,
    /// Its path in the container.
    pub to: PathBuf,
}

/// A limit of the processes in a container, soft and hard alike; `None`: as high as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Ulimit(pub Option<u64>);

/// A limit as written.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number, or \"unlimited\"")]
enum Written {
    Number(u64),
    Word(String),
}

impl TryFrom<Written> for Ulimit {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Number(number) => Ok(Ulimit(Some(number))),
            Written::Word(word) if word == "unlimited" => Ok(Ulimit(None)),
            Written::Word(word) => {
                Err(format!("{word:?} is not a limit; expected a number, or \"unlimited\""))
            }
        }
    }
}

impl From<Ulimit> for Written {
    fn from(Ulimit(limit): Ulimit) -> Written {
        limit.map_or(Written::Word("unlimited".into()), Written::Number)
    }
}

/// Which system calls the processes in a container may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seccomp {
    /// All. The engines' profile refuses some, such as those of `io_uring`.
    Unconfined,
}

/// The keys of a manifest that apply only to containers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContainerKeys<'a> {
    pub image: Option<&'a str>,
    pub mounts: &'a [Mount],
    pub ulimits: &'a BTreeMap<String, Ulimit>,
    pub seccomp: Option<Seccomp>,
}

impl ContainerKeys<'_> {
    /// Checks them. `name` is the name of the contender. The error is a sentence.
    pub fn check(&self, name: &str) -> Result<(), String> {
        let keys = [
            ("mounts", !self.mounts.is_empty()),
            ("ulimits", !self.ulimits.is_empty()),
            ("seccomp", self.seccomp.is_some()),
        ];
        let given = keys.into_iter().find(|(_, is_given)| *is_given);
        if let (None, Some((key, _))) = (self.image, given) {
            return Err(format!(
                "`{key}` of {name} applies only to containers; add `image`, or remove `{key}`"
            ));
        }
        let mut targets = BTreeSet::new();
        for mount in self.mounts {
            mount.check().map_err(|why| format!("`mounts` of {name}: {why}"))?;
            // Without repeated and trailing slashes.
            if !targets.insert(mount.to.components().collect::<PathBuf>()) {
                let to = mount.to.display();
                return Err(format!("`mounts` of {name}: {to} is mounted twice; remove one"));
            }
        }
        match self.ulimits.keys().find(|limit| ulimit_names().all(|name| name != limit.as_str())) {
            None => Ok(()),
            Some(wrong) => Err(format!(
                "`ulimits` of {name}: there is no limit {wrong:?}; expected one of {}",
                ulimit_names().collect::<Vec<_>>().join(", ")
            )),
        }
    }

    /// Returns what the container has in addition to the usual. `dir` is the folder of the manifest.
    pub fn options(&self, dir: &Path) -> ContainerOptions {
        let mounts = self.mounts.iter().map(|mount| (dir.join(&mount.from), mount.to.clone()));
        let ulimits = self.ulimits.iter().map(|(name, limit)| (name.clone(), limit.0));
        ContainerOptions {
            mounts: mounts.collect(),
            ulimits: ulimits.collect(),
            unconfined: self.seccomp == Some(Seccomp::Unconfined),
        }
    }
}

impl Mount {
    /// The error is the second part of a sentence.
    fn check(&self) -> Result<(), String> {
        for (key, path) in [("from", &self.from), ("to", &self.to)] {
            let text = path.to_string_lossy();
            if text.is_empty() {
                return Err(format!("`{key}` is empty; expected a path"));
            }
            // A colon separates both paths for the engine.
            if text.chars().any(|c| c == ':' || c.is_control()) {
                return Err(format!(
                    "`{key}` = {text:?} must not contain a colon or a control character"
                ));
            }
        }
        let is_plain =
            self.to.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
        if !self.to.is_absolute() || !is_plain || self.to.parent().is_none() {
            return Err(format!(
                "`to` = {:?} must be an absolute path without `..`, e.g. /data/items.json",
                self.to
            ));
        }
        Ok(())
    }
}
