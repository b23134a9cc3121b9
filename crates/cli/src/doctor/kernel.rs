//! What the kernel permits: io_uring and control groups, each found by trying.

use super::check::{Check, Mark};
use regatta_race::{Cgroup, CgroupVersion};
use std::{fs, io};

/// Tries and judges.
pub fn checks() -> Vec<Check> {
    let disabled = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok();
    vec![
        io_uring(try_io_uring(), disabled.as_deref().map(str::trim)),
        cgroups(Cgroup::is_available(CgroupVersion::V2), Cgroup::is_available(CgroupVersion::V1)),
    ]
}

/// Makes a small ring as `uring` makes its own, and drops it.
fn try_io_uring() -> io::Result<()> {
    let mut ring: io_uring::Builder = io_uring::IoUring::builder();
    ring.setup_single_issuer().setup_defer_taskrun().build(2).map(drop)
}

/// `disabled`: 0 for nobody, 1 for those without rights, 2 for everybody; a kernel before 6.6 does
/// not tell.
fn io_uring(tried: io::Result<()>, disabled: Option<&str>) -> Check {
    let Err(error) = tried else { return Check::ok("io_uring", "permitted") };
    let check = Check::ok("io_uring", format!("refused: {error}"));
    let remedy = match (disabled, error.kind()) {
        (Some("1" | "2"), _) => "Run `sysctl -w kernel.io_uring_disabled=0`.",
        // ENOSYS; and EINVAL, where it knows io_uring but not this kind of ring.
        (_, io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => {
            "Run Linux 6.1 or later, with CONFIG_IO_URING."
        }
        (_, io::ErrorKind::PermissionDenied) => {
            "Permit io_uring_setup in the container's seccomp profile (docker: --security-opt \
             seccomp=unconfined)."
        }
        _ => "Raise what the error names, as `ulimit -l` or `ulimit -n`.",
    };
    let why = disabled.filter(|value| *value != "0");
    let why = why.map_or(String::new(), |value| format!(" (kernel.io_uring_disabled is {value})"));
    check.but(
        Mark::Warn,
        format!("The model `uring` cannot run{why}, so races are without it."),
        remedy,
    )
}

/// Whether a group of each version could be made, entered and read.
fn cgroups(v2: bool, v1: bool) -> Check {
    const NAME: &str = "cgroups";
    match (v2, v1) {
        (true, true) => Check::ok(NAME, "v2 (v1 too)"),
        (true, false) => Check::ok(NAME, "v2"),
        (false, true) => Check::ok(NAME, "v1 alone").but(
            Mark::Note,
            "In a v1 group a contender's processes are ended one after the other, and CPU read \
             from it is late by up to a timer tick.",
            "Mount cgroup2, or delegate its subtree to this user (`systemd-run --user --scope -p \
             Delegate=yes regatta …`).",
        ),
        (false, false) => Check::ok(NAME, "none can be made").but(
            Mark::Warn,
            "Without a group the CPU of a contender's processes that end unwaited for is missing, \
             so servers that start processes look cheaper.",
            "Run as root, or with `systemd-run --user --scope -p Delegate=yes regatta …`.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::assert_says;
    use super::*;

    #[test]
    fn a_refused_ring_is_told_with_the_remedy_that_fits() {
        assert_eq!(io_uring(Ok(()), Some("0")).mark, Mark::Ok);
        let refused = |kind: io::ErrorKind, disabled| io_uring(Err(kind.into()), disabled);
        use io::ErrorKind::{InvalidInput, Other, PermissionDenied, Unsupported};
        let by_setting = refused(PermissionDenied, Some("2"));
        let effect = ["`uring`", "io_uring_disabled is 2"];
        assert_says(&by_setting, Mark::Warn, &effect, &["io_uring_disabled=0"]);
        assert_says(&refused(PermissionDenied, Some("0")), Mark::Warn, &["`uring`"], &["seccomp"]);
        for kind in [Unsupported, InvalidInput] {
            assert_says(&refused(kind, None), Mark::Warn, &["`uring`"], &["Linux 6.1"]);
        }
        assert_says(&refused(Other, None), Mark::Warn, &["`uring`"], &["ulimit -l"]);
    }

    #[test]
    fn version_2_is_best_and_none_is_worst() {
        assert_eq!(cgroups(true, true).mark, Mark::Ok);
        assert_eq!(cgroups(true, false).mark, Mark::Ok);
        assert_says(&cgroups(false, true), Mark::Note, &["v1"], &["cgroup2"]);
        assert_says(&cgroups(false, false), Mark::Warn, &["cheaper"], &["root", "Delegate"]);
    }
}
