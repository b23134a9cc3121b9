//! Limits of the processes in a container (setrlimit(2)), as options of an engine.

use rustix::process::{Resource, getrlimit};
use std::{collections::BTreeMap, fs, path::Path};

/// Maximum number of processes of a container.
const PROCESSES: u64 = 32_768;
/// The capability to raise hard limits (capabilities(7)).
const CAP_SYS_RESOURCE: u32 = 24;

/// The limits that podman and docker know.
const RESOURCES: [(&str, Resource); 15] = [
    ("core", Resource::Core),
    ("cpu", Resource::Cpu),
    ("data", Resource::Data),
    ("fsize", Resource::Fsize),
    ("locks", Resource::Locks),
    ("memlock", Resource::Memlock),
    ("msgqueue", Resource::Msgqueue),
    ("nice", Resource::Nice),
    ("nofile", Resource::Nofile),
    ("nproc", Resource::Nproc),
    ("rss", Resource::Rss),
    ("rtprio", Resource::Rtprio),
    ("rttime", Resource::Rttime),
    ("sigpending", Resource::Sigpending),
    ("stack", Resource::Stack),
];

/// Returns the names of the limits of a container.
pub fn ulimit_names() -> impl Iterator<Item = &'static str> {
    RESOURCES.into_iter().map(|(name, _)| name)
}

/// Returns the options of an engine for the limits of a container: `own` ones, soft and hard alike (`None`: as high as
/// possible), and for open files and processes otherwise those of this process. By default, engines raise some
/// limits, which not every user may do.
pub(super) fn options(engine: &Path, own: &BTreeMap<String, Option<u64>>) -> Vec<String> {
    // Docker's daemon sets limits, podman does it with the rights of this process.
    let may_raise = engine.ends_with("docker") || may_raise();
    let highest = |name: &str| {
        let known = RESOURCES.iter().find(|(known, _)| !may_raise && *known == name);
        known.and_then(|(_, resource)| getrlimit(*resource).maximum)
    };
    let files = getrlimit(Resource::Nofile);
    let processes = getrlimit(Resource::Nproc).maximum.unwrap_or(PROCESSES).min(PROCESSES);
    let mut limits = BTreeMap::from([
        ("nofile", (files.current, files.maximum)),
        ("nproc", (Some(processes), Some(processes))),
    ]);
    for (name, limit) in own {
        let limit = limit.or_else(|| highest(name));
        limits.insert(name, (limit, limit));
    }
    let number = |n: Option<u64>| n.map_or("-1".to_owned(), |n| n.to_string());
    let option =
        |(name, (soft, hard))| format!("--ulimit={name}={}:{}", number(soft), number(hard));
    limits.into_iter().map(option).collect()
}

/// Whether this process may raise its hard limits.
fn may_raise() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    effective.is_some_and(|capabilities| capabilities >> CAP_SYS_RESOURCE & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_limits_replace_those_of_this_process() {
        let own = [("nofile".to_owned(), Some(9)), ("core".to_owned(), Some(0))].into();
        let options = options(Path::new("/usr/bin/podman"), &own);
        assert_eq!(options[..2], ["--ulimit=core=0:0", "--ulimit=nofile=9:9"]);
        assert!(options.len() == 3 && options[2].starts_with("--ulimit=nproc="), "{options:?}");
    }

    #[test]
    fn unlimited_is_as_high_as_the_engine_may_set_it() {
        let own = [("memlock".to_owned(), None)].into();
        let of = |engine: &str| options(Path::new(engine), &own).remove(0);
        assert_eq!(of("/usr/bin/docker"), "--ulimit=memlock=-1:-1");
        let hard = getrlimit(Resource::Memlock).maximum.filter(|_| !may_raise());
        let hard = hard.map_or("-1".to_owned(), |hard| hard.to_string());
        assert_eq!(of("/usr/bin/podman"), format!("--ulimit=memlock={hard}:{hard}"));
    }
}
