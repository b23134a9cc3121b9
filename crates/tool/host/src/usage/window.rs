//! The usage of a server inside a measured window. Readings that take a file for each process or thread
//! are taken before and after the window, around the two edges at which the load pauses.

use crate::{
    process::clock::process_clock_ns,
    usage::{
        reading::{Kept, Reading},
        tree::{ObservedProcesses, Spent, Usage},
    },
};
use regatta_record::{Unseen, UsageSource};
use std::time::{Duration, Instant};

/// With more threads than this, the clocks are not read at an edge if there is a control group: the
/// kernel walks over all threads of a process to read its clock.
const MOST_THREADS: usize = 256;
/// The same limit for processes: each takes a system call.
const MOST_PROCESSES: usize = 64;

/// Reads the usage of one server: call [`UsageWindow::before`], then [`UsageWindow::opens`] and
/// [`UsageWindow::closes`] at the edges, then [`UsageWindow::after`].
#[derive(Debug)]
pub struct UsageWindow {
    observed: ObservedProcesses,
    /// Start time of the first reading, and its result.
    before: Option<(Instant, Usage)>,
    opened: Option<Clocks>,
    closed: Option<Clocks>,
    spent: Option<Spent>,
    /// Readings between the two edges.
    laps: Vec<Option<Clocks>>,
    spent_in_laps: Vec<Option<Spent>>,
}

impl UsageWindow {
    /// Prepares for the window of a load against this server.
    pub fn of(observed: ObservedProcesses) -> UsageWindow {
        UsageWindow {
            observed,
            before: None,
            opened: None,
            closed: None,
            spent: None,
            laps: Vec::new(),
            spent_in_laps: Vec::new(),
        }
    }

    /// Returns the processes that it reads.
    pub fn observed(&self) -> &ObservedProcesses {
        &self.observed
    }

    /// Call shortly before the window: reads everything that takes a file for each process or thread.
    pub fn before(&mut self) {
        let at = Instant::now();
        self.before = self.observed.usage().ok().map(|usage| (at, usage));
    }

    /// Call when the window opens: reads the clocks, which takes microseconds.
    pub fn opens(&mut self) {
        self.opened = self.clocks();
    }

    /// Call inside the window, where a part of it ends and the next one begins: reads the clocks.
    pub fn lap(&mut self) {
        let clocks = self.clocks();
        self.laps.push(clocks);
    }

    /// Call when the window closes: reads the clocks again.
    pub fn closes(&mut self) {
        self.closed = self.clocks();
    }

    /// Call after the window: reads everything once more.
    pub fn after(&mut self) {
        let after = self.observed.usage().ok();
        let at = Instant::now();
        let whole = self.before.as_ref().zip(after.as_ref());
        let spent = |edges: Option<(Clocks, Clocks)>| {
            whole.zip(edges).map(|(((began, before), after), (opened, closed))| {
                let kept = after.kept_since(before);
                between(after.since(before), kept, &opened, &closed, at.duration_since(*began))
            })
        };
        let edges = [&[self.opened][..], &self.laps, &[self.closed]].concat();
        let in_laps = edges.windows(2).map(|edges| spent(edges[0].zip(edges[1])));
        let (of_all, in_laps) = (spent(self.opened.zip(self.closed)), in_laps.collect());
        (self.spent, self.spent_in_laps) = (of_all, in_laps);
    }

    /// Returns the usage between each two successive readings inside the window; the whole window
    /// without [`UsageWindow::lap`]. Empty before [`UsageWindow::after`]; `None` as in
    /// [`UsageWindow::spent`].
    pub fn spent_in_laps(&self) -> &[Option<Spent>] {
        &self.spent_in_laps
    }

    /// Returns the usage inside the window; `None` if one of the four readings failed or is still
    /// missing.
    pub fn spent(&self) -> Option<&Spent> {
        self.spent.as_ref()
    }

    fn clocks(&self) -> Option<Clocks> {
        self.before.as_ref().map(|(_, usage)| Clocks::read(&self.observed, usage))
    }
}

/// Returns the joint usage of several servers; `None` if there are none, or if one could not be read.
pub fn spent_together<'s>(all: impl IntoIterator<Item = Option<&'s Spent>>) -> Option<Spent> {
    let each: Option<Vec<Spent>> = all.into_iter().map(Option::<&Spent>::cloned).collect();
    each?.into_iter().reduce(Spent::plus)
}

/// The CPU time used until a moment. The time to read it is limited if there is a control group.
/// Without one, it grows with the number of processes and threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    at: Instant,
    reading: Reading,
}

impl Clocks {
    /// Reads the clocks of the processes `found` before.
    pub fn read(observed: &ObservedProcesses, found: &Usage) -> Clocks {
        let group = observed.cgroup();
        let few = found.threads() <= MOST_THREADS && found.pids().count() <= MOST_PROCESSES;
        let clocks = || found.pids().map(|pid| process_clock_ns(pid).ok()).sum();
        let reading = Reading::take(group, || (few || group.is_none()).then(clocks).flatten());
        Clocks { at: Instant::now(), reading }
    }
}

/// Returns the usage between the edges of a window. `whole` is the usage from a little before until a
/// little after the window, over a time of `length`.
///
/// Only the CPU time was read at the edges. If that reading cannot be trusted, the window gets its share
/// of the time. The other times and the switches are scaled by the share of the CPU time.
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
        // No thread runs for longer than the window.
        busiest_thread_ns: whole.busiest_thread_ns.map(|ns| part(ns).min(inside.as_nanos() as u64)),
        ..whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{group::cgroup::Version, usage::reading::Group};

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

    /// Returns readings of the processes' clocks and the control group, in milliseconds.
    fn clocks(at: Instant, processes: Option<u64>, cgroup: Option<u64>) -> Clocks {
        let clocks_ns = processes.map(|ms| ms * MS);
        let of_group = |ns| Group { version: Version::V2, before_ns: ns, after_ns: ns };
        Clocks { at, reading: Reading { clocks_ns, group: cgroup.map(|ms| of_group(ms * MS)) } }
    }

    #[test]
    fn usage_outside_the_window_is_not_counted() {
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
        // There are too many processes to read their clocks at the edges.
        let without = |clocks: Clocks| {
            let reading = Reading { clocks_ns: None, ..clocks.reading };
            Clocks { reading, ..clocks }
        };
        let (opened, closed) = (without(opened), without(closed));
        let spent = between(whole(100, processes), SAME, &opened, &closed, length);
        assert_eq!((spent.cpu_ns, spent.source), (50 * MS, cgroup));
    }

    #[test]
    fn each_part_of_a_window_has_its_own_usage() {
        let mut window = UsageWindow::of(ObservedProcesses::tree(std::process::id()));
        window.before();
        let of_group = |ms: u64| Some(clocks(Instant::now(), None, Some(ms)));
        (window.opened, window.closed) = (of_group(1_000), of_group(1_100));
        window.laps = vec![of_group(1_030), of_group(1_090)];
        window.after();
        let parts = window.spent_in_laps().iter().map(|part| part.as_ref().unwrap().cpu_ns / MS);
        assert_eq!(parts.collect::<Vec<_>>(), [30, 60, 10]);
        assert_eq!(window.spent().unwrap().cpu_ns, 100 * MS);
    }

    #[test]
    fn the_group_counts_processes_that_ended_unseen_inside_the_window() {
        let at = Instant::now();
        let length = Duration::from_millis(600);
        let opened = clocks(at, Some(50), Some(1_050));
        let closed = clocks(at + length, Some(550), Some(1_565));
        let spent = between(whole(500, UsageSource::ProcessClocks), SAME, &opened, &closed, length);
        assert_eq!((spent.cpu_ns, spent.source), (515 * MS, UsageSource::CgroupV2));
    }

    #[test]
    fn without_a_reliable_reading_the_window_gets_its_share_of_the_time() {
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
