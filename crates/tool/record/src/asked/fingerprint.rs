//! The programs and files of a race: rounds run with others must not be mixed with its own.

use crate::Setup;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Properties that must not change within a race, in addition to its [`Setup`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// SHA-256 of regatta's binary, hexadecimal.
    pub regatta: String,
    /// The CPUs that regatta could use.
    pub cpus: Vec<u32>,
    /// Version of each contender's runtime, as printed by it, by name. Contenders that print none
    /// are absent.
    pub versions: BTreeMap<String, String>,
    /// SHA-256 of the files that contenders are started from: programs, and arguments that are
    /// files. By path.
    pub files: BTreeMap<String, String>,
    /// Identifiers of the images of contenders that run in a container, by the image's name. An
    /// image that could not be obtained is absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<String, String>,
}

impl Fingerprint {
    /// Lists the differences, a few words each; empty if there are none.
    pub fn differences(&self, now: &Fingerprint) -> Vec<String> {
        let mut found = Vec::new();
        if self.regatta != now.regatta {
            found.push("regatta was rebuilt".to_owned());
        }
        if self.cpus != now.cpus {
            found.push(format!("it could use CPUs {:?}, now {:?}", self.cpus, now.cpus));
        }
        let names = self
            .versions
            .keys()
            .chain(now.versions.keys().filter(|n| !self.versions.contains_key(*n)));
        for name in names {
            let version =
                |of: &Fingerprint| of.versions.get(name).cloned().unwrap_or("none".into());
            let (then, now) = (version(self), version(now));
            if then != now {
                found.push(format!("{name} had version {then:?}, now {now:?}"));
            }
        }
        for (path, hash) in &self.files {
            match now.files.get(path) {
                Some(now) if now == hash => {}
                Some(_) => found.push(format!("{path} was changed")),
                None => found.push(format!("{path} no longer exists")),
            }
        }
        found.extend(
            now.files
                .keys()
                .filter(|path| !self.files.contains_key(*path))
                .map(|path| format!("{path} is new")),
        );
        for (image, id) in &self.images {
            match now.images.get(image) {
                Some(now) if now == id => {}
                Some(_) => found.push(format!("the image {image} was rebuilt")),
                None => found.push(format!("the image {image} no longer exists")),
            }
        }
        let is_new = |image: &&String| !self.images.contains_key(*image);
        found.extend(
            now.images.keys().filter(is_new).map(|image| format!("the image {image} is new")),
        );
        found
    }
}

impl Setup {
    /// Lists the differences between two machines, a few words each. The start time, the command
    /// line, the physical cores and the amount of memory are not compared.
    pub fn differences(&self, now: &Setup) -> Vec<String> {
        let range =
            |setup: &Setup| setup.port_range.map_or("none".into(), |(a, b)| format!("{a}–{b}"));
        let or_none = |text: &Option<String>| text.clone().unwrap_or("none".into());
        let limit = |setup: &Setup| setup.somaxconn.map_or("unknown".into(), |n| n.to_string());
        let each = [
            ("regatta", self.regatta.clone(), now.regatta.clone()),
            ("the kernel", self.kernel.clone(), now.kernel.clone()),
            ("the CPU", self.cpu.clone(), now.cpu.clone()),
            ("the number of CPUs", self.cpus.to_string(), now.cpus.to_string()),
            ("the clock source", self.clock_source.clone(), now.clock_source.clone()),
            ("the governor", or_none(&self.governor), or_none(&now.governor)),
            ("the mitigations", self.mitigations.join("; "), now.mitigations.join("; ")),
            ("the limit of open files", self.open_files.to_string(), now.open_files.to_string()),
            ("net.core.somaxconn", limit(self), limit(now)),
            ("the local port range", range(self), range(now)),
            ("the control group version", self.cgroup.clone(), now.cgroup.clone()),
        ];
        let differ = each.into_iter().filter(|(_, then, now)| then != now);
        differ.map(|(what, then, now)| format!("{what} was {then}, now {now}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_exactly_the_changes() {
        let text = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let then = Fingerprint {
            regatta: "ab".into(),
            cpus: vec![0, 1],
            versions: text(&[("go", "go1.26"), ("node", "v22")]),
            files: text(&[("/p/a", "1"), ("/p/b", "2")]),
            images: text(&[("localhost/a:1", "sha256:1"), ("localhost/b:1", "sha256:2")]),
        };
        assert!(then.differences(&then).is_empty());
        let now = Fingerprint {
            regatta: "cd".into(),
            cpus: vec![0],
            versions: text(&[("go", "go1.27"), ("node", "v22")]),
            files: text(&[("/p/a", "9"), ("/p/c", "2")]),
            images: text(&[("localhost/a:1", "sha256:9"), ("localhost/c:1", "sha256:2")]),
        };
        assert_eq!(
            then.differences(&now),
            [
                "regatta was rebuilt",
                "it could use CPUs [0, 1], now [0]",
                "go had version \"go1.26\", now \"go1.27\"",
                "/p/a was changed",
                "/p/b no longer exists",
                "/p/c is new",
                "the image localhost/a:1 was rebuilt",
                "the image localhost/b:1 no longer exists",
                "the image localhost/c:1 is new",
            ]
        );
    }

    #[test]
    fn reports_another_kernel_but_not_another_start_time() {
        let then = Setup { kernel: "Linux 6.1".into(), started_unix_s: 1, ..Setup::default() };
        let later = Setup { started_unix_s: 2, memory_bytes: 3, ..then.clone() };
        assert!(then.differences(&later).is_empty());
        let other = Setup { kernel: "Linux 6.2".into(), ..then.clone() };
        assert_eq!(then.differences(&other), ["the kernel was Linux 6.1, now Linux 6.2"]);
    }
}
