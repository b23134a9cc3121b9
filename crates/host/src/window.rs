//! What a server used inside a measured window. What grows with the number of its processes and
//! threads is read before the window and after it, around the two moments at which the load rests.

use crate::{
    cgroup::Version,
    clock::process_clock_ns,
    usage::{Observed, Spent, Usage},
};
use regatta_record::UsageSource;
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
            between(after.since(before), &opened, &closed, at.duration_since(*began))
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
    /// The sum of the processes' clocks, if it was read and none of them has ended.
    processes: Option<u64>,
    cgroup: Option<(Version, u64)>,
}

impl Clocks {
    /// Of the processes that were `found` before.
    pub fn read(observed: &Observed, found: &Usage) -> Clocks {
        let group = observed.cgroup();
        let cgroup = group.and_then(|group| Some((group.version(), group.cpu_ns().ok()?)));
        let few = found.threads() <= MOST_THREADS && found.pids().count() <= MOST_PROCESSES;
        let clocks = || found.pids().map(|pid| process_clock_ns(pid).ok()).sum();
        let processes = if few || cgroup.is_none() { clocks() } else { None };
        Clocks { at: Instant::now(), processes, cgroup }
    }

    fn processes_since(&self, earlier: &Clocks) -> Option<(u64, UsageSource)> {
        let ns = self.processes?.saturating_sub(earlier.processes?);
        Some((ns, UsageSource::ProcessClocks))
    }

    fn cgroup_since(&self, earlier: &Clocks) -> Option<(u64, UsageSource)> {
        let ((version, now), (_, then)) = self.cgroup.zip(earlier.cgroup)?;
        let source = match version {
            Version::V2 => UsageSource::CgroupV2,
            Version::V1 => UsageSource::CgroupV1,
        };
        Some((now.saturating_sub(then), source))
    }
}

/// The part that was used between the edges of a window, of what was used from a little before until
/// a little after it, which took `length`.
///
/// Only the CPU was read at the edges: it is told by the source that can be trusted for the whole, where
/// that was read, else it is the window's share of the time. Of all else it is the share of the CPU.
fn between(whole: Spent, opened: &Clocks, closed: &Clocks, length: Duration) -> Spent {
    let read = match whole.source {
        UsageSource::ProcessClocks => {
            closed.processes_since(opened).or_else(|| closed.cgroup_since(opened))
        }
        UsageSource::CgroupV2 | UsageSource::CgroupV1 => closed.cgroup_since(opened),
        UsageSource::ProcessTree => None,
    };
    let inside = closed.at.duration_since(opened.at);
    let (cpu_ns, source) = read.unwrap_or_else(|| {
        let share = (inside.as_secs_f64() / length.as_secs_f64()).min(1.0);
        ((whole.cpu_ns as f64 * share) as u64, UsageSource::ProcessTree)
    });
    let share = match whole.cpu_ns {
        0 => 1.0,
        all => (cpu_ns as f64 / all as f64).min(1.0),
    };
    let part = |of: u64| (of as f64 * share).round() as u64;
    Spent {
        cpu_ns,
        source,
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

    const MS: u64 = 1_000_000;

    fn whole(cpu_ms: u64, source: UsageSource) -> Spent {
        Spent {
            cpu_ns: cpu_ms * MS,
            user_ns: 40 * MS,
            system_ns: 60 * MS,
            source,
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
        let cgroup = cgroup.map(|ms| (Version::V2, ms * MS));
        Clocks { at, processes: processes.map(|ms| ms * MS), cgroup }
    }

    #[test]
    fn what_was_used_around_the_window_is_not_counted() {
        let at = Instant::now();
        let (processes, cgroup) = (UsageSource::ProcessClocks, UsageSource::CgroupV2);
        let length = Duration::from_millis(400);
        let opened = clocks(at, Some(50), Some(1_050));
        let closed = clocks(at + length / 4, Some(100), Some(1_090));
        let spent = between(whole(100, processes), &opened, &closed, length);
        assert_eq!((spent.cpu_ns, spent.source), (50 * MS, processes));
        assert_eq!((spent.user_ns, spent.system_ns), (20 * MS, 30 * MS));
        assert_eq!((spent.voluntary_switches, spent.involuntary_switches), (500, 5));
        assert_eq!((spent.run_delay_ns, spent.busiest_thread_ns), (Some(10 * MS), Some(45 * MS)));
        let busier = Spent { busiest_thread_ns: Some(999 * MS), ..whole(100, processes) };
        let spent = between(busier, &opened, &closed, length);
        assert_eq!(spent.busiest_thread_ns, Some(100 * MS), "no more than the window");
        assert_eq!((spent.processes, spent.threads), (3, 7));
        // Processes came or went around it: only the control group has seen them all.
        let spent = between(whole(80, cgroup), &opened, &closed, length);
        assert_eq!((spent.cpu_ns, spent.source, spent.user_ns), (40 * MS, cgroup, 20 * MS));
        // Their clocks were not read at the edges, since there are many.
        let [opened, closed] = [opened, closed].map(|clocks| Clocks { processes: None, ..clocks });
        let spent = between(whole(100, processes), &opened, &closed, length);
        assert_eq!((spent.cpu_ns, spent.source), (40 * MS, cgroup));
    }

    #[test]
    fn without_a_reading_to_be_trusted_it_is_the_share_of_the_time() {
        let at = Instant::now();
        let length = Duration::from_millis(400);
        let (opened, closed) =
            (clocks(at, Some(50), None), clocks(at + length / 4, Some(90), None));
        let spent = between(whole(100, UsageSource::ProcessTree), &opened, &closed, length);
        assert_eq!((spent.cpu_ns, spent.source), (25 * MS, UsageSource::ProcessTree));
        let nothing = between(whole(0, UsageSource::ProcessTree), &opened, &closed, length);
        assert_eq!((nothing.cpu_ns, nothing.voluntary_switches), (0, 1_000));
    }
}
