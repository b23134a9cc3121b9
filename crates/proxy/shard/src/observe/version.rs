//! The versions of the nodes.

use std::{
    fmt,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

/// A version of Redis, e.g. 7.0.15. The numbers are in one, so that it can be shared without a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u32);

impl Version {
    /// Reads a version of three numbers. What follows the third is ignored, e.g. `-rc1`. `None`: it has another form,
    /// or a number above 1023.
    pub(crate) fn parse(text: &[u8]) -> Option<Version> {
        let mut parts = std::str::from_utf8(text).ok()?.splitn(3, '.');
        let mut number = || {
            let part = parts.next()?;
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..end].parse::<u32>().ok().filter(|number| *number < 1 << 10)
        };
        let [major, minor, patch] = [number()?, number()?, number()?];
        Some(Version((major << 20) | (minor << 10) | patch))
    }

    /// Reads the field `redis_version` in the reply to INFO. Valkey has it, too: the version of Redis that it is like.
    pub(crate) fn of_info(reply: &[u8]) -> Option<Version> {
        let mut lines = reply.split(|byte| *byte == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(b"redis_version:"))?;
        Version::parse(value)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version(all) = self;
        write!(f, "{}.{}.{}", all >> 20, (all >> 10) & 1023, all & 1023)
    }
}

/// What all cores know of the versions of the nodes.
#[derive(Debug)]
pub(crate) struct Versions(Vec<AtomicU32>);

/// The version of a node that has not reported it.
const UNKNOWN: u32 = 0;

impl Versions {
    pub(crate) fn new(nodes: usize) -> Self {
        Versions((0..nodes).map(|_| AtomicU32::new(UNKNOWN)).collect())
    }

    /// A node has reported its version.
    pub(crate) fn set(&self, node: usize, version: Version) {
        self.0[node].store(version.0, Relaxed);
    }

    /// The node is another server now.
    pub(crate) fn forget(&self, node: usize) {
        self.0[node].store(UNKNOWN, Relaxed);
    }

    /// The lowest version of those that are known, if any is.
    pub(crate) fn lowest(&self) -> Option<Version> {
        let all = self.0.iter().map(|version| version.load(Relaxed));
        all.filter(|version| *version != UNKNOWN).min().map(Version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_and_shown() {
        for (text, expected) in [
            ("7.0.15", Some("7.0.15")),
            ("8.10.3-rc1", Some("8.10.3")),
            ("255.255.255\r", Some("255.255.255")),
            ("6.2", None),
            ("6.x.1", None),
            ("7.0.1024", None),
            ("", None),
            ("1.2.99999999999", None),
        ] {
            let found = Version::parse(text.as_bytes()).map(|version| version.to_string());
            assert_eq!(found.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_version_is_a_field_of_info() {
        let info = b"$61\r\n# Server\r\nredis_version:6.2.14\r\nredis_git_sha1:00000000\r\n\r\n";
        assert_eq!(Version::of_info(info).map(|version| version.to_string()).unwrap(), "6.2.14");
        for other in ["$-1\r\n", "-NOPERM no permissions\r\n", "$9\r\nno_fields\r\n"] {
            assert_eq!(Version::of_info(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn the_lowest_known_version_is_that_of_all() {
        let versions = Versions::new(3);
        let version = |text: &str| Version::parse(text.as_bytes());
        assert_eq!(versions.lowest(), None);
        versions.set(1, version("7.10.0").unwrap());
        assert_eq!(versions.lowest(), version("7.10.0"));
        versions.set(2, version("7.9.12").unwrap());
        assert_eq!(versions.lowest(), version("7.9.12"));
        // The node was replaced by a newer one.
        versions.set(2, version("8.0.0").unwrap());
        assert_eq!(versions.lowest(), version("7.10.0"));
    }
}
