//! The CPU time of several processes until a moment and between two moments, and a bound on what may be
//! missing from it.
//!
//! No single source is always right. The clock of a process disappears with the process, and a child
//! that is not waited for leaves no trace in its parent (SIGCHLD ignored, wait(2)). A control group
//! counts all processes. The kernel updates both together, whenever the scheduler accounts for a
//! running thread (`update_curr` in kernel/sched/fair.c, at the latest with a tick). So the group's
//! excess over the clocks is what other processes used: exact, except for the rounding of the group's
//! figure, if neither moved while both were read, otherwise within what the group moved meanwhile.

use crate::group::cgroup::{Cgroup, Version};
use regatta_record::{Unseen, UsageSource};

/// Maximum error from the rounding of `cpu.stat`, which counts microseconds, at two moments.
const ROUNDING_NS: u64 = 2_000;

/// The CPU time used until a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// The sum of the clocks of the processes. `None` if it was not read, or, at an edge of a window, if
    /// one of them has ended.
    pub clocks_ns: Option<u64>,
    /// The control group, if there is one.
    pub group: Option<Group>,
}

/// The CPU time of a control group, read right before the clocks and right after them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub version: Version,
    pub before_ns: u64,
    pub after_ns: u64,
}

/// What is known of the processes between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The processes are the same, and the CPU time of those that were waited for has not changed, in
    /// clock ticks.
    pub same: bool,
    /// No process can have come and gone: nothing was started on this machine except their new threads.
    pub alone: bool,
}

impl Reading {
    /// Reads now; `clocks` reads the sum of the clocks.
    pub fn take(group: Option<&Cgroup>, clocks: impl FnOnce() -> Option<u64>) -> Reading {
        let read = || Some((group?.version(), group?.cpu_ns().ok()?));
        let before = read();
        let clocks_ns = clocks();
        let group = before.zip(read()).map(|((version, before_ns), (_, after_ns))| Group {
            version,
            before_ns,
            after_ns,
        });
        Reading { clocks_ns, group }
    }

    /// Returns the CPU time since `earlier`, its source, and what may be missing; `None` if unknown.
    pub fn since(&self, earlier: &Reading, kept: Kept) -> Option<(u64, UsageSource, Unseen)> {
        let clocks = || Some(self.clocks_ns?.saturating_sub(earlier.clocks_ns?));
        let clocks = clocks().filter(|_| kept.same);
        let clocks = |unseen| clocks.map(|ns| (ns, UsageSource::ProcessClocks, unseen));
        let Some((now, then)) = self.group.zip(earlier.group) else {
            return clocks(if kept.alone { Unseen::AtMostNs(0) } else { Unseen::Unbounded });
        };
        let source = match now.version {
            Version::V2 => UsageSource::CgroupV2,
            Version::V1 => UsageSource::CgroupV1,
        };
        let of_group = || {
            let ns = now.before_ns.saturating_sub(then.before_ns);
            Some((ns, source, Unseen::AtMostNs(0)))
        };
        let Some((ns, ..)) = clocks(Unseen::Unbounded) else { return of_group() };
        let at_least = now.before_ns.saturating_sub(then.after_ns).saturating_sub(ns);
        let at_most = now.after_ns.saturating_sub(then.before_ns).saturating_sub(ns);
        match at_least > ROUNDING_NS {
            true => of_group(),
            false => clocks(Unseen::AtMostNs(at_most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCKS: UsageSource = UsageSource::ProcessClocks;
    const GROUP: UsageSource = UsageSource::CgroupV1;
    const SAME: Kept = Kept { same: true, alone: false };

    fn reading(clocks_ns: u64, before_ns: u64, after_ns: u64) -> Reading {
        let group = Group { version: Version::V1, before_ns, after_ns };
        Reading { clocks_ns: Some(clocks_ns), group: Some(group) }
    }

    #[test]
    fn uses_the_clocks_if_they_saw_everything_and_bounds_what_may_be_missing() {
        let earlier = reading(1_000_000, 5_000_000, 5_000_000);
        let later = reading(91_000_000, 95_000_000, 95_000_000);
        let all = Some((90_000_000, CLOCKS, Unseen::AtMostNs(0)));
        assert_eq!(later.since(&earlier, SAME), all);
        // A thread ran while they were read: that time may also belong to another process.
        let moved = reading(91_000_000, 94_990_000, 95_020_000);
        let nearly = Some((90_000_000, CLOCKS, Unseen::AtMostNs(20_000)));
        assert_eq!(moved.since(&earlier, SAME), nearly);
    }

    #[test]
    fn counts_even_a_little_cpu_time_that_only_the_group_saw() {
        let earlier = reading(1_000_000, 5_000_000, 5_000_000);
        // 10 ms in 90: one clock tick.
        let later = reading(91_000_000, 105_000_000, 105_000_000);
        let all = Some((100_000_000, GROUP, Unseen::AtMostNs(0)));
        assert_eq!(later.since(&earlier, SAME), all);
        let little = reading(91_000_000, 95_010_000, 95_010_000);
        assert_eq!(little.since(&earlier, SAME).unwrap().0, 90_010_000);
        let rounded = reading(91_000_000, 95_001_000, 95_001_000);
        assert_eq!(rounded.since(&earlier, SAME).unwrap().1, CLOCKS);
    }

    #[test]
    fn uses_the_group_if_a_process_came_or_went() {
        let (earlier, later) = (reading(1, 5_000, 5_000), reading(50, 9_000, 9_000));
        let other = Kept { same: false, alone: true };
        assert_eq!(later.since(&earlier, other), Some((4_000, GROUP, Unseen::AtMostNs(0))));
    }

    #[test]
    fn without_a_group_it_is_complete_only_if_no_process_was_started() {
        let at = |ns| Reading { clocks_ns: Some(ns), group: None };
        let since = |kept| at(70).since(&at(20), kept);
        assert_eq!(since(SAME), Some((50, CLOCKS, Unseen::Unbounded)));
        let alone = Kept { same: true, alone: true };
        assert_eq!(since(alone), Some((50, CLOCKS, Unseen::AtMostNs(0))));
        assert_eq!(since(Kept { same: false, alone: false }), None);
    }
}
