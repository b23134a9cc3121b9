//! What a server used inside a measured window. What grows with the number of its processes and
//! threads is read before the window and after it, around the two moments at which the load rests.

use crate::{
    clock::process_clock_ns,
    reading::{Kept, Reading},
    usage::{Observed, Spent, Usage},
};
use regatta_record::{Unseen, UsageSource};
use std::time::{Duration, Instant};

/// Of more threads than this the clocks of the processes are not read at an edge, if there is a control
/// group: the kernel walks over all threads of a process to read its clock.
const MOST_THREADS: usize = 256;
/// Nor of more processes: each takes a system call.
const MOST_PROCESSES: usize = 64;

/// Reads what one server used: first [`UsageWindow::before`], then at the edges, then
/// [`UsageWindow::after`].
#[derive(Debug)]
pub struct UsageWindow {
    observed: Observed,
    /// When the reading began, and what it was.
    before: Option<(Instant, Usage)>,
    opened: Option<Clocks>,
    closed: Option<Clocks>,
    spent: Option<Spent>,
}

impl UsageWindow {
    /// Around the window of a load towards this server.
    pub fn of(observed: Observed) -> UsageWindow {
        UsageWindow { observed, before: None, opened: None, closed: None, spent: None }
    }

    /// Whom it reads.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// Shortly before the window: reads all that takes a file for each process or thread.
    pub fn before(&mut self) {
        let at = Instant::now();
        self.before = self.observed.usage().ok().map(|usage| (at, usage));
    }

    /// The window opens: reads what takes microseconds.
    pub fn opens(&mut self) {
        self.opened = self.clocks();
    }

    /// The window closes: reads the same.
    pub fn closes(&mut self) {
        self.closed = self.clocks();
    }

    /// After the window: reads all once more.
    pub fn after(&mut self) {
        let after = self.observed.usage().ok();
        let at = Instant::now();
        let edges = self.opened.zip(self.closed);
        self.spent = self.before.as_ref().zip(after).zip(edges).map(|(whole, (opened, closed))| {
            let ((began, before), after) = whole;
            let kept = after.kept_since(before);
            between(after.since(before), kept, &opened, &closed, at.duration_since(*began))
        });
    }

    /// What it used inside the window; `None` if it could not be read at one of the four moments, or
    /// was not read yet.
    pub fn spent(&self) -> Option<&Spent> {
        self.spent.as_ref()
    }

    fn clocks(&self) -> Option<Clocks> {
        self.before.as_ref().map(|(_, usage)| Clocks::read(&self.observed, usage))
    }
}

/// What several servers used together; `None` if one could not be read.
pub fn spent_together(windows: &[UsageWindow]) -> Option<Spent> {
    let each: Option<Vec<Spent>> = windows.iter().map(|window| window.spent().cloned()).collect();
    each?.into_iter().reduce(Spent::plus)
}

/// The CPU used until a moment, read in a time that hardly depends on who used it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    at: Instant,
    reading: Reading,
}

impl Clocks {
    /// Of the processes that were `found` before.
    pub fn read(observed: &Observed, found: &Usage) -> Clocks {
        let group = observed.cgroup();
        let few = found.threads() <= MOST_THREADS && found.pids().count() <= MOST_PROCESSES;
        let clocks = || found.pids().map(|pid| process_clock_ns(pid).ok()).sum();
        let reading = Reading::take(group, || (few || group.is_none()).then(clocks).flatten());
        Clocks { at: Instant::now(), reading }
    }
}

/// The part that was used between the edges of a window, of what was used from a little before until
/// a little after it, which took `length`.
///
/// Only the CPU was read at the edges, where that tells it; else it is the window's share of the time. Of
/// all else it is the share of the CPU.
fn between(whole: Spent, kept: Kept, opened: &Clocks, closed: &Clocks, length: Duration) -> Spent {
    let read = closed.reading.since(&opened.reading, kept);
    let inside = closed.at.duration_since(opened.at);
    let (cpu_ns, source, unseen) = read.unwrap_or_else(|| {
        let share = (inside.as_secs_f64() / length.as_secs_f64()).min(1.0);
        ((whole.cpu_ns as f64 * share) as u64, UsageSource::ProcessTree, Unseen::Unbounded)
    });
    let share = match whole.cpu_ns {
        0 => 1.0,
        all => (cpu_ns as f64 / all as f64).min(1.0),
    };
    let part = |of: u64| (of as f64 * share).round() as u64;
    Spent {
        cpu_ns,
        source,
        unseen,
        user_ns: part(whole.user_ns),
        system_ns: part(whole.system_ns),
        voluntary_switches: part(whole.voluntary_switches),
        involuntary_switches: part(whole.involuntary_switches),
        run_delay_ns: whole.run_delay_ns.map(part),
        // No thread runs for longer than the window is.
        busiest_thread_ns: whole.busiest_thread_ns.map(|ns| part(ns).min(inside.as_nanos() as u64)),
        ..whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cgroup::Version, reading::Group};

    const MS: u64 = 1_000_000;
    const SAME: Kept = Kept { same: true, alone: false };
    const OTHERS: Kept = Kept { same: false, alone: false };

    fn whole(cpu_ms: u64, source: UsageSource) -> Spent {
        Spent {
            cpu_ns: cpu_ms * MS,
            user_ns: 40 * MS,
            system_ns: 60 * MS,
            source,
            unseen: Unseen::Unbounded,
            voluntary_switches: 1_000,
            involuntary_switches: 10,
            run_delay_ns: Some(20 * MS),
            busiest_thread_ns: Some(90 * MS),
            processes: 3,
            threads: 7,
        }
    }

    /// At a moment: the clocks of the processes and the control group, milliseconds.
    fn clocks(at: Instant, processes: Option<u64>, cgroup: Option<u64>) -> Clocks {
        let clocks_ns = processes.map(|ms| ms * MS);
        let of_group = |ns| Group { version: Version::V2, before_ns: ns, after_ns: ns };
        Clocks { at, reading: Reading { clocks_ns, group: cgroup.map(|ms| of_group(ms * MS)) } }
    }

    #[test]
    fn what_was_used_around_the_window_is_not_counted() {
        let at = Instant::now();
        let (processes, cgroup) = (UsageSource::ProcessClocks, UsageSource::CgroupV2);
        let length = Duration::from_millis(400);
        let opened = clocks(at, Some(50), Some(1_050));
        let closed = clocks(at + length / 4, Some(100), Some(1_100));
        let spent = between(whole(100, processes), SAME, &opened, &closed, length);
        assert_eq!((spent.cpu_ns, spent.source), (50 * MS, processes));
        assert_eq!(spent.unseen, Unseen::AtMostNs(0));
        assert_eq!((spent.user_ns, spent.system_ns), (20 * MS, 30 * MS));
        assert_eq!((spent.voluntary_switches, spent.involuntary_switches), (500, 5));
        assert_eq!((spent.run_delay_ns, spent.busiest_thread_ns), (Some(10 * MS), Some(45 * MS)));
        assert_eq!((spent.processes, spent.threads), (3, 7));
        let busier = Spent { busiest_thread_ns: Some(999 * MS), ..whole(100, processes) };
        let spent = between(busier, SAME, &opened, &closed, length);
        assert_eq!(spent.busiest_thread_ns, Some(100 * MS), "no more than the window");
        // Processes came or went around it: only the control group has seen them all.
        let spent = between(whole(100, cgroup), OTHERS, &opened, &closed, length);
        assert_eq!((spent.cpu_ns, spent.source, spent.user_ns), (50 * MS, cgroup, 20 * MS));
        // Their clocks were not read at the edges, since there are many.
        let without = |clocks: Clocks| {
            let reading = Reading { clocks_ns: None, ..clocks.reading };
            Clocks { reading, ..clocks }
        };
        let (opened, closed) = (without(opened), without(closed));
        let spent = between(whole(100, processes), SAME, &opened, &closed, length);
        assert_eq!((spent.cpu_ns, spent.source), (50 * MS, cgroup));
    }

    #[test]
    fn what_ended_unseen_inside_the_window_is_counted_by_the_group() {
        let at = Instant::now();
        let length = Duration::from_millis(600);
        let opened = clocks(at, Some(50), Some(1_050));
        let closed = clocks(at + length, Some(550), Some(1_565));
        let spent = between(whole(500, UsageSource::ProcessClocks), SAME, &opened, &closed, length);
        assert_eq!((spent.cpu_ns, spent.source), (515 * MS, UsageSource::CgroupV2));
    }

    #[test]
    fn without_a_reading_to_be_trusted_it_is_the_share_of_the_time() {
        let at = Instant::now();
        let length = Duration::from_millis(400);
        let (opened, closed) =
            (clocks(at, Some(50), None), clocks(at + length / 4, Some(90), None));
        let spent = between(whole(100, UsageSource::ProcessTree), OTHERS, &opened, &closed, length);
        assert_eq!((spent.cpu_ns, spent.source), (25 * MS, UsageSource::ProcessTree));
        assert_eq!(spent.unseen, Unseen::Unbounded);
        let nothing = between(whole(0, UsageSource::ProcessTree), OTHERS, &opened, &closed, length);
        assert_eq!((nothing.cpu_ns, nothing.voluntary_switches), (0, 1_000));
    }
}
