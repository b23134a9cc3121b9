//! The usage of a tree of processes: CPU time and context switches. It is read at two moments and
//! subtracted.
//!
//! CPU time is read from the processes' clocks and from the control group (see `reading`). If neither
//! can be trusted, the CPU time of ended processes is taken from the processes that waited for them, in
//! clock ticks (10 ms). It is lost if no process waited; [`Spent::unseen`] shows that.

use crate::{
    group::cgroup::Cgroup,
    process::{
        clock::process_clock_ns,
        scheduled::{Scheduled, Switches, scheduled, switches},
        tree::{Stat, Ticks, descendants, forks},
    },
    usage::reading::{Kept, Reading},
};
use regatta_record::{Server, Unseen, UsageSource};
use rustix::{
    param::clock_ticks_per_second,
    thread::{CpuSet, sched_getaffinity},
};
use std::{collections::BTreeMap, io};

/// The processes whose usage is read.
#[derive(Clone, Debug)]
pub struct ObservedProcesses {
    root: u32,
    /// Whether the root itself is counted: false for a supervisor, true for a running server.
    with_root: bool,
    cgroup: Option<Cgroup>,
    /// Whether the processes are those of the control group, rather than those of the tree.
    by_group: bool,
}

/// The usage until one moment.
#[derive(Clone, Debug)]
pub struct Usage {
    processes: BTreeMap<Identity, Process>,
    /// CPU time of ended processes that the supervisor waited for.
    reaped: Ticks,
    reading: Reading,
    /// Number of processes and threads ever started on this machine, if needed and known.
    forks: Option<u64>,
}

/// A pid can be reused; together with the start time it identifies a process forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    pid: u32,
    started: u64,
}

#[derive(Clone, Debug)]
struct Process {
    cpu_ns: u64,
    own: Ticks,
    waited_for: Ticks,
    /// Switches by thread; empty for a zombie.
    switches: BTreeMap<u32, Switches>,
    /// Scheduling times by thread, of the threads that were read.
    scheduled: BTreeMap<u32, Scheduled>,
    /// Whether all of its threads were read.
    all_scheduled: bool,
}

/// Maximum number of threads whose [`Scheduled`] is read, process by process and in the order of thread
/// ids: each takes a file.
const THREADS_READ: usize = 256;

/// The usage between two moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// CPU time, user and system, nanoseconds.
    pub cpu_ns: u64,
    /// User time as reported by the kernel, in steps of a clock tick, nanoseconds.
    pub user_ns: u64,
    /// System time as reported by the kernel, in steps of a clock tick, nanoseconds.
    pub system_ns: u64,
    /// The source of `cpu_ns`.
    pub source: UsageSource,
    /// CPU time that ended processes may have used beyond `cpu_ns`.
    pub unseen: Unseen,
    /// Voluntary context switches of the threads alive at the later moment.
    pub voluntary_switches: u64,
    /// Involuntary context switches of the threads alive at the later moment.
    pub involuntary_switches: u64,
    /// Time that the threads alive at both moments were runnable but had no CPU, nanoseconds; `None` if
    /// the kernel does not report it, if there are no such threads, or if there are more than 256
    /// threads.
    pub run_delay_ns: Option<u64>,
    /// CPU time of the thread that used the most, among those alive at the later moment, nanoseconds. At
    /// most 256 threads are read, process by process, so there may be a busier one. `None` if the kernel
    /// does not report it.
    pub busiest_thread_ns: Option<u64>,
    /// Processes alive at the later moment.
    pub processes: u32,
    /// Threads alive at the later moment.
    pub threads: u32,
}

impl ObservedProcesses {
    /// Observes all descendants of `supervisor`, but not itself.
    pub(crate) fn below(supervisor: u32, cgroup: Option<Cgroup>) -> ObservedProcesses {
        ObservedProcesses { root: supervisor, with_root: false, cgroup, by_group: false }
    }

    /// Observes all processes in a control group, which exists while `supervisor` runs.
    pub(crate) fn in_group(supervisor: u32, cgroup: Cgroup) -> ObservedProcesses {
        ObservedProcesses {
            root: supervisor,
            with_root: false,
            cgroup: Some(cgroup),
            by_group: true,
        }
    }

    /// Observes `pid` and all of its descendants. Descendants that lose their parents leave the tree
    /// (they become children of init), unless `pid` is their reaper.
    pub fn tree(pid: u32) -> ObservedProcesses {
        ObservedProcesses { root: pid, with_root: true, cgroup: None, by_group: false }
    }

    /// Returns the number of CPUs that the root may run on; `None` if it is gone.
    pub fn cpus(&self) -> Option<u32> {
        Some(self.affinity()?.count())
    }

    /// Returns the number of CPUs that the roots of `all` may run on together; `None` if all are gone.
    pub fn cpus_of(all: &[ObservedProcesses]) -> Option<u32> {
        let sets: Vec<CpuSet> = all.iter().filter_map(ObservedProcesses::affinity).collect();
        let is_in_one = |cpu: &usize| sets.iter().any(|set| set.is_set(*cpu));
        (!sets.is_empty()).then(|| (0..CpuSet::MAX_CPU).filter(is_in_one).count() as u32)
    }

    fn affinity(&self) -> Option<CpuSet> {
        let pid = rustix::process::Pid::from_raw(self.root.try_into().ok()?)?;
        sched_getaffinity(Some(pid)).ok()
    }

    /// Whether the root may run on one of `cpus`; if `cpus` is empty, on one of the caller's CPUs.
    /// `false` if the root is gone.
    pub fn may_run_on(&self, cpus: &[u32]) -> bool {
        let Some(own) = self.affinity() else { return false };
        let callers = sched_getaffinity(None).ok().filter(|_| cpus.is_empty());
        let is_meant = |cpu: usize| match &callers {
            Some(callers) => callers.is_set(cpu),
            None => cpus.contains(&(cpu as u32)),
        };
        (0..CpuSet::MAX_CPU).any(|cpu| own.is_set(cpu) && is_meant(cpu))
    }

    /// Reads the usage until now. Fails if the root is gone.
    pub fn usage(&self) -> io::Result<Usage> {
        self.usage_while(|| ())
    }

    /// Like [`ObservedProcesses::usage`]; calls `meanwhile` between reading the clocks and the rest.
    fn usage_while(&self, mut meanwhile: impl FnMut()) -> io::Result<Usage> {
        // If processes end all the time, the loss is accepted: it is `unseen`.
        const TRIES: usize = 5;
        let mut read = self.read(&mut meanwhile)?;
        for _ in 1..TRIES {
            if !read.1 {
                break;
            }
            read = self.read(&mut meanwhile)?;
        }
        Ok(read.0)
    }

    /// Reads the usage, and whether it may lack the CPU time of a process that ended meanwhile: one whose
    /// clock was read, but which was gone when its entry was read. Those who waited for it may have been read
    /// before they did.
    fn read(&self, meanwhile: &mut impl FnMut()) -> io::Result<(Usage, bool)> {
        // Read first: a process started from now on is in the next count of forks, or in `pids`.
        let forks = if self.cgroup.is_none() { forks() } else { None };
        let pids = self.pids();
        // The group and the clocks first, because they must be close together in time.
        let mut clocks = Vec::new();
        let reading = Reading::take(self.cgroup.as_ref(), || {
            clocks.extend(pids.iter().map(|&pid| (pid, process_clock_ns(pid))));
            None
        });
        meanwhile();
        let root = Stat::of(self.root).map_err(|error| {
            io::Error::new(error.kind(), format!("process {} cannot be read: {error}", self.root))
        })?;
        let mut processes = BTreeMap::new();
        let mut threads = 0;
        let mut is_short = false;
        for (pid, cpu_ns) in clocks {
            // One that was gone before is counted by the process that waited for it, which is read only now.
            let Ok(cpu_ns) = cpu_ns else { continue };
            // Parents are read before their children: no time is counted twice.
            let stat = Stat::of(pid);
            is_short |= stat.is_err();
            if let Ok(stat) = stat {
                let identity = Identity { pid, started: stat.started };
                let switches = if stat.is_zombie() { BTreeMap::new() } else { switches(pid) };
                let read = switches.keys().take(THREADS_READ.saturating_sub(threads));
                let scheduled = scheduled(pid, read);
                threads += switches.len();
                let all_scheduled = threads <= THREADS_READ;
                let Stat { own, waited_for, .. } = stat;
                let process =
                    Process { cpu_ns, own, waited_for, switches, scheduled, all_scheduled };
                processes.insert(identity, process);
            }
        }
        let reaped = if self.with_root { Ticks::default() } else { root.waited_for };
        let clocks_ns = Some(processes.values().map(|process| process.cpu_ns).sum());
        let reading = Reading { clocks_ns, ..reading };
        Ok((Usage { processes, reaped, reading, forks }, is_short))
    }

    /// Returns its control group, if it has one.
    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// Returns the ids of the current processes.
    pub fn pids(&self) -> Vec<u32> {
        if let Some(group) = self.cgroup.as_ref().filter(|_| self.by_group) {
            return group.all_pids();
        }
        let mut pids = descendants(self.root);
        if self.with_root {
            pids.insert(0, self.root);
        }
        pids
    }
}

impl Usage {
    /// Returns the usage since `earlier`.
    ///
    /// The source is the clocks of the processes, under three conditions: the processes are the same
    /// at both moments, the CPU time of those that were waited for has not changed (in clock ticks), and
    /// the control group, if there is one, saw no more than they did (children that are not waited for
    /// leave no other trace). Otherwise it is the control group; without one, the tree.
    pub fn since(&self, earlier: &Usage) -> Spent {
        let ticks = self.ticks().minus(earlier.ticks());
        let read = self.reading.since(&earlier.reading, self.kept_since(earlier));
        let (cpu_ns, source, unseen) = read.unwrap_or_else(|| {
            let tree = self.tree_ns().saturating_sub(earlier.tree_ns());
            (tree, UsageSource::ProcessTree, Unseen::Unbounded)
        });
        let switches = self.switches_since(earlier);
        let living = self.processes.values().filter(|process| !process.switches.is_empty());
        Spent {
            cpu_ns,
            user_ns: ticks_to_ns(ticks.user),
            system_ns: ticks_to_ns(ticks.system),
            source,
            unseen,
            voluntary_switches: switches.voluntary,
            involuntary_switches: switches.involuntary,
            run_delay_ns: self.run_delay_since(earlier),
            busiest_thread_ns: self.busiest_thread_since(earlier),
            processes: living.clone().count() as u32,
            threads: living.map(|process| process.switches.len() as u32).sum(),
        }
    }

    /// Returns the ids of the processes found.
    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.keys().map(|identity| identity.pid)
    }

    /// Returns the number of threads of the living processes.
    pub(crate) fn threads(&self) -> usize {
        self.processes.values().map(|process| process.switches.len()).sum()
    }

    /// Compares the processes with those of `earlier`.
    pub(crate) fn kept_since(&self, earlier: &Usage) -> Kept {
        let born = self.processes.iter().flat_map(|(identity, process)| {
            let then = earlier.processes.get(identity);
            let is_new =
                move |thread: &&u32| then.is_none_or(|p| !p.switches.contains_key(*thread));
            process.switches.keys().filter(is_new)
        });
        let started = self.forks.zip(earlier.forks).map(|(now, then)| now.saturating_sub(then));
        let alone = started.is_some_and(|started| started <= born.count() as u64);
        Kept { same: self.is_same_tree(earlier), alone }
    }

    fn is_same_tree(&self, earlier: &Usage) -> bool {
        let waited_for = |process: &Process| process.waited_for;
        self.reaped == earlier.reaped
            && self.processes.keys().eq(earlier.processes.keys())
            && self
                .processes
                .values()
                .map(waited_for)
                .eq(earlier.processes.values().map(waited_for))
    }

    /// Returns the clocks of the living processes plus the ticks of ended ones, nanoseconds.
    fn tree_ns(&self) -> u64 {
        let waited_for: u64 = self.processes.values().map(|one| one.waited_for.total()).sum();
        self.reading.clocks_ns.unwrap_or(0) + ticks_to_ns(waited_for + self.reaped.total())
    }

    fn ticks(&self) -> Ticks {
        let all = self.processes.values().flat_map(|process| [process.own, process.waited_for]);
        all.fold(self.reaped, Ticks::plus)
    }

    fn switches_since(&self, earlier: &Usage) -> Switches {
        let mut sum = Switches::default();
        for (identity, process) in &self.processes {
            let then = earlier.processes.get(identity);
            for (thread, now) in &process.switches {
                let then = then.and_then(|then| then.switches.get(thread)).copied();
                let then = then.unwrap_or_default();
                sum.voluntary += now.voluntary.saturating_sub(then.voluntary);
                sum.involuntary += now.involuntary.saturating_sub(then.involuntary);
            }
        }
        sum
    }

    fn run_delay_since(&self, earlier: &Usage) -> Option<u64> {
        let mut sum = None;
        for (identity, process) in &self.processes {
            let Some(then) = earlier.processes.get(identity) else { continue };
            if !(process.all_scheduled && then.all_scheduled) {
                return None;
            }
            for (thread, now) in &process.scheduled {
                let then = then.scheduled.get(thread);
                let waited = then.map(|then| now.waited_ns.saturating_sub(then.waited_ns));
                sum = waited.map(|waited| sum.unwrap_or(0) + waited).or(sum);
            }
        }
        sum
    }

    /// Returns the CPU time of the busiest thread. For a thread that is new, that is all of its time.
    fn busiest_thread_since(&self, earlier: &Usage) -> Option<u64> {
        let of_process = |(identity, process): (&Identity, &Process)| {
            let earlier = earlier.processes.get(identity);
            let of_thread = |(thread, now): (&u32, &Scheduled)| {
                let then = earlier.and_then(|process| process.scheduled.get(thread));
                now.ran_ns.saturating_sub(then.map_or(0, |then| then.ran_ns))
            };
            process.scheduled.iter().map(of_thread).max()
        };
        self.processes.iter().filter_map(of_process).max()
    }
}

impl Spent {
    /// Returns the joint usage of two sets of processes. Its source is the less reliable of the two, and
    /// its run delay is known only if both are.
    pub fn plus(self, other: Spent) -> Spent {
        let unreliability = |source: UsageSource| match source {
            UsageSource::ProcessClocks => 0,
            UsageSource::CgroupV2 => 1,
            UsageSource::CgroupV1 => 2,
            UsageSource::ProcessTree => 3,
        };
        let [a, b] = [self.source, other.source];
        let delays = self.run_delay_ns.zip(other.run_delay_ns);
        Spent {
            busiest_thread_ns: self.busiest_thread_ns.max(other.busiest_thread_ns),
            cpu_ns: self.cpu_ns + other.cpu_ns,
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            source: if unreliability(a) >= unreliability(b) { a } else { b },
            unseen: self.unseen.plus(other.unseen),
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
            run_delay_ns: delays.map(|(a, b)| a + b),
            processes: self.processes + other.processes,
            threads: self.threads + other.threads,
        }
    }

    /// Converts it to the record of a round, with the contender's number of CPUs and its memory.
    pub fn into_record(self, cpus: u32, memory_bytes: u64) -> Server {
        Server {
            cpu_ns: self.cpu_ns,
            user_ns: self.user_ns,
            system_ns: self.system_ns,
            source: self.source,
            unseen: Some(self.unseen),
            cpus,
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
            busiest_thread_ns: self.busiest_thread_ns,
            memory_bytes,
            processes: self.processes,
            threads: self.threads,
            ..Server::default()
        }
    }
}

fn ticks_to_ns(ticks: u64) -> u64 {
    ticks * (1_000_000_000 / clock_ticks_per_second())
}

#[cfg(test)]
mod tests;
