//! The CPU of several processes at a moment, and between two moments, with what may be missing of it.
//!
//! No source is right for all. The clock of a process goes with the process, and a child that nobody waits
//! for leaves no trace in its parent (SIGCHLD ignored, wait(2)). A control group keeps all. Both are
//! brought up to date together, whenever the scheduler looks at a running thread (`update_curr` in
//! kernel/sched/fair.c, at the latest with a tick), so what the group has beyond the clocks is what
//! processes used that are not among them: to the nanosecond where neither moved while both were read,
//! and else within what the group moved meanwhile.

use crate::cgroup::{Cgroup, Version};
use regatta_record::{Unseen, UsageSource};

/// What is less than that may be the rounding of `cpu.stat`, which counts microseconds, at two moments.
const ROUNDING_NS: u64 = 2_000;

/// What was used until a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// The sum of the clocks of the processes, if it was read and none of them has ended.
    pub clocks_ns: Option<u64>,
    /// The control group, where there is one.
    pub group: Option<Group>,
}

/// A control group, read right before the clocks and right after them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub version: Version,
    pub before_ns: u64,
    pub after_ns: u64,
}

/// What is known of the processes between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The same ones are there, and nobody was waited for.
    pub same: bool,
    /// Nobody came and went meanwhile, since nobody on this machine was started but their new threads.
    pub alone: bool,
}

impl Reading {
    /// Now; `clocks` reads the sum of the clocks.
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

    /// CPU since `earlier`, where it was read, and what may be missing; `None` if it cannot be told.
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
    fn clocks_that_saw_all_are_taken_and_say_how_little_may_be_missing() {
        let earlier = reading(1_000_000, 5_000_000, 5_000_000);
        let later = reading(91_000_000, 95_000_000, 95_000_000);
        let all = Some((90_000_000, CLOCKS, Unseen::AtMostNs(0)));
        assert_eq!(later.since(&earlier, SAME), all);
        // A thread ran while they were read: what it used then may also have been somebody else's.
        let moved = reading(91_000_000, 94_990_000, 95_020_000);
        let nearly = Some((90_000_000, CLOCKS, Unseen::AtMostNs(20_000)));
        assert_eq!(moved.since(&earlier, SAME), nearly);
    }

    #[test]
    fn what_only_the_group_saw_is_counted_however_little_it_is() {
        let earlier = reading(1_000_000, 5_000_000, 5_000_000);
        // 10 ms in 90: less than what two ticks and 1% would have forgiven.
        let later = reading(91_000_000, 105_000_000, 105_000_000);
        let all = Some((100_000_000, GROUP, Unseen::AtMostNs(0)));
        assert_eq!(later.since(&earlier, SAME), all);
        let little = reading(91_000_000, 95_010_000, 95_010_000);
        assert_eq!(little.since(&earlier, SAME).unwrap().0, 90_010_000);
        let rounded = reading(91_000_000, 95_001_000, 95_001_000);
        assert_eq!(rounded.since(&earlier, SAME).unwrap().1, CLOCKS);
    }

    #[test]
    fn where_somebody_came_or_went_the_group_is_taken() {
        let (earlier, later) = (reading(1, 5_000, 5_000), reading(50, 9_000, 9_000));
        let other = Kept { same: false, alone: true };
        assert_eq!(later.since(&earlier, other), Some((4_000, GROUP, Unseen::AtMostNs(0))));
    }

    #[test]
    fn without_a_group_it_is_complete_only_where_nobody_was_started() {
        let at = |ns| Reading { clocks_ns: Some(ns), group: None };
        let since = |kept| at(70).since(&at(20), kept);
        assert_eq!(since(SAME), Some((50, CLOCKS, Unseen::Unbounded)));
        let alone = Kept { same: true, alone: true };
        assert_eq!(since(alone), Some((50, CLOCKS, Unseen::AtMostNs(0))));
        assert_eq!(since(Kept { same: false, alone: false }), None);
    }
}
