//! The limits of the control groups that this process is in, and of those above them: processes,
//! memory, CPU time. This is the only place where a container's limits show.

use crate::group::cgroup::{Version, locate};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns the limit on the number of processes and threads; `None` is no limit.
pub fn process_limit() -> Option<u64> {
    let limit = |_, folder: &Path| number(folder, "pids.max");
    tightest("pids", limit)
}

/// Returns the memory limit in bytes. Without a limit, it is `None`, or in version 1 a number that is
/// larger than any memory.
pub fn memory_limit() -> Option<u64> {
    let limit = |version, folder: &Path| match version {
        Version::V2 => number(folder, "memory.max"),
        Version::V1 => number(folder, "memory.limit_in_bytes"),
    };
    tightest("memory", limit)
}

/// Returns the limit on CPU time in thousandths of a CPU, e.g. 1,500 for one and a half; `None` is no
/// limit.
pub fn cpu_limit() -> Option<u64> {
    let limit = |version, folder: &Path| match version {
        Version::V2 => share(&fs::read_to_string(folder.join("cpu.max")).ok()?),
        Version::V1 => {
            let (quota, period) = ("cpu.cfs_quota_us", "cpu.cfs_period_us");
            let read = |file| fs::read_to_string(folder.join(file)).ok();
            share(&format!("{} {}", read(quota)?.trim(), read(period)?.trim()))
        }
    };
    tightest("cpu", limit)
}

/// Returns the lowest `limit` of the own groups and those above them, in both versions.
fn tightest(controller: &str, limit: impl Fn(Version, &Path) -> Option<u64>) -> Option<u64> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = |version| Some((version, locate(version, controller, &mounts, &membership)?));
    let groups: Vec<(Version, PathBuf)> =
        [Version::V2, Version::V1].into_iter().filter_map(own).collect();
    // There are no such files above the hierarchy's mount point, so it is safe to go up to /.
    let all = groups.iter().flat_map(|(version, own)| own.ancestors().map(|up| (*version, up)));
    all.filter_map(|(version, folder)| limit(version, folder)).min()
}

/// Reads a file with a number; `max` and a missing file are no limit.
fn number(folder: &Path, file: &str) -> Option<u64> {
    fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
}

/// Parses `QUOTA PERIOD` to thousandths of a CPU; a quota of `max` or -1 is no limit (cgroups(7)).
fn share(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    quota.checked_mul(1_000)?.checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_cpu_shares_of_both_versions() {
        assert_eq!(share("150000 100000\n"), Some(1_500));
        assert_eq!(share("max 100000\n"), None);
        assert_eq!(share("-1 100000"), None);
        assert_eq!(share("5 0"), None);
    }

    #[test]
    fn a_limit_is_a_number() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("pids.max"), "512\n").unwrap();
        fs::write(folder.path().join("memory.max"), "max\n").unwrap();
        assert_eq!(number(folder.path(), "pids.max"), Some(512));
        assert_eq!(number(folder.path(), "memory.max"), None);
        assert_eq!(number(folder.path(), "absent"), None);
    }
}
