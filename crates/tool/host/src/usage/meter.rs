//! The CPU time of servers from moment to moment: that of each slice of a duel, and of a server whose cost is
//! observed. That of a round is read around its window ([`crate::UsageWindow`]).

use crate::{process::clock::process_clock_ns, usage::tree::ObservedProcesses};

/// With more processes than this, the clocks are not read if there is a control group.
const MOST_PROCESSES: usize = 64;

/// Measures the CPU time of servers between two calls.
#[derive(Debug)]
pub struct Meter(Vec<OfServer>);

impl Meter {
    /// Returns a meter of these servers together.
    pub fn of(observed: Vec<ObservedProcesses>) -> Meter {
        Meter(observed.into_iter().map(|observed| OfServer { observed, last: None }).collect())
    }

    /// Returns the CPU time since the last call, nanoseconds; `None` at the first call, or if it is
    /// unknown because a process came or went and there is no control group.
    pub fn lap(&mut self) -> Option<u64> {
        // Collected first, so that every server is read even if one fails.
        let each: Vec<Option<u64>> = self.0.iter_mut().map(OfServer::lap).collect();
        each.into_iter().sum()
    }
}

#[derive(Debug)]
struct OfServer {
    observed: ObservedProcesses,
    last: Option<Reading>,
}

#[derive(Debug)]
struct Reading {
    processes: Vec<u32>,
    clocks: Option<u64>,
    cgroup: Option<u64>,
}

impl OfServer {
    fn lap(&mut self) -> Option<u64> {
        let processes = self.observed.pids();
        let cgroup = self.observed.cgroup().and_then(|group| group.cpu_ns().ok());
        let is_many = processes.len() > MOST_PROCESSES && cgroup.is_some();
        let clocks = || processes.iter().map(|&pid| process_clock_ns(pid).ok()).sum();
        let clocks = if is_many { None } else { clocks() };
        let now = Reading { processes, clocks, cgroup };
        let since = self.last.as_ref().and_then(|last| now.since(last));
        self.last = Some(now);
        since
    }
}

impl Reading {
    fn since(&self, last: &Reading) -> Option<u64> {
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let clocks = since(self.clocks, last.clocks).filter(|_| self.processes == last.processes);
        clocks.or_else(|| since(self.cgroup, last.cgroup))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(processes: &[u32], clocks: Option<u64>, cgroup: Option<u64>) -> Reading {
        Reading { processes: processes.to_vec(), clocks, cgroup }
    }

    #[test]
    fn uses_the_clocks_if_the_processes_are_the_same() {
        let first = reading(&[1, 2], Some(10), Some(100));
        assert_eq!(reading(&[1, 2], Some(15), Some(300)).since(&first), Some(5));
        assert_eq!(reading(&[1, 3], Some(15), Some(300)).since(&first), Some(200));
        assert_eq!(reading(&[1, 2], None, Some(300)).since(&first), Some(200));
        assert_eq!(reading(&[1, 3], Some(15), None).since(&first), None);
    }

    #[test]
    fn a_lap_is_the_time_since_the_last_one() {
        let mut meter = Meter::of(vec![ObservedProcesses::tree(std::process::id())]);
        assert_eq!(meter.lap(), None);
        // A lap is void if another test of this process starts or ends a child during it.
        let lap = (0..100).find_map(|_| {
            let until = std::time::Instant::now() + std::time::Duration::from_millis(50);
            while std::time::Instant::now() < until {}
            meter.lap()
        });
        assert!(lap.unwrap() > 1_000_000);
        assert_eq!(Meter::of(Vec::new()).lap(), Some(0), "no servers, no time");
    }
}
