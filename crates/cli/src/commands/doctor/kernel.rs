//! Checks that the kernel permits io_uring and control groups, by trying them.

use super::check::{Check, Mark};
use regatta_host::{Cgroup, CgroupVersion};
use regatta_serve::Model;

/// Tries and judges.
pub fn checks() -> Vec<Check> {
    vec![
        io_uring(Model::Uring.refused()),
        cgroups(Cgroup::is_available(CgroupVersion::V2), Cgroup::is_available(CgroupVersion::V1)),
    ]
}

fn io_uring(refused: Option<String>) -> Check {
    const NAME: &str = "io_uring";
    let Some(because) = refused else { return Check::ok(NAME, "permitted") };
    Check::ok(NAME, "refused").marked(
        Mark::Warn,
        format!("The model `uring` fails in every race: {because}."),
        "Fix that, or race without the model: `regatta race --skip uring`.",
    )
}

/// Judges which versions of control groups could be created, read and removed.
fn cgroups(v2: bool, v1: bool) -> Check {
    const NAME: &str = "cgroups";
    match (v2, v1) {
        (true, true) => Check::ok(NAME, "v2 (v1 too)"),
        (true, false) => Check::ok(NAME, "v2"),
        (false, true) => Check::ok(NAME, "v1 only").marked(
            Mark::Note,
            "In a v1 group, a contender's processes are killed one by one, and its CPU time is late \
             by up to a timer tick.",
            "Mount cgroup2, or delegate its subtree to this user (`systemd-run --user --scope -p \
             Delegate=yes regatta …`).",
        ),
        (false, false) => Check::ok(NAME, "cannot be created").marked(
            Mark::Warn,
            "Without a control group, the CPU time of processes that exit without being waited for \
             is missing, so servers that start processes look cheaper.",
            "Run as root, or with `systemd-run --user --scope -p Delegate=yes regatta …`.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::assert_says;
    use super::*;

    #[test]
    fn warns_of_a_refused_ring_with_its_reason() {
        assert_eq!(io_uring(None).mark, Mark::Ok);
        let refused = io_uring(Some("this kernel has none".into()));
        assert_says(&refused, Mark::Warn, &["`uring`", "this kernel has none"], &["--skip uring"]);
    }

    #[test]
    fn prefers_cgroup_v2_and_warns_if_there_is_none() {
        assert_eq!(cgroups(true, true).mark, Mark::Ok);
        assert_eq!(cgroups(true, false).mark, Mark::Ok);
        assert_says(&cgroups(false, true), Mark::Note, &["v1"], &["cgroup2"]);
        assert_says(&cgroups(false, false), Mark::Warn, &["cheaper"], &["root", "Delegate"]);
    }
}
