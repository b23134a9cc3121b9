//! The shape of a load, and the CPUs of server and load.

use crate::{Arrivals, Burst, Drive};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One load for every contender of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LoadShape {
    /// Open connections that send.
    pub connections: u32,
    /// Further connections, open and silent.
    #[serde(default)]
    pub idle: u32,
    /// The number of those that do not read the server's data.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub stalled: u32,
    /// Further connections whose members join and leave. Each stays for 1 s on average, so about
    /// `passing` of them leave per second.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub passing: u32,
    /// Maximum number of requests in flight on each connection.
    pub pipeline: u32,
    /// When requests are sent.
    #[serde(flatten)]
    pub drive: Drive,
    /// Number of CPUs of the contender; `None`: all that the race has for it.
    pub cores: Option<u32>,
    /// Total number of requests, in place of a fixed window. The window includes connecting, except
    /// where connections join a hub or store values first.
    pub requests: Option<u32>,
    /// For the workload `hash`: how many times each request hashes the file; `None`: once.
    pub n: Option<u32>,
    /// Another load on the same server at the same time.
    pub beside: Option<BackgroundLoad>,
}

/// Large requests of the workload `hash` that are always in flight beside a load: a closed loop
/// from before its window until after it. The load's own latencies then show whether a small
/// request waits for a large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackgroundLoad {
    /// Connections, each with one request in flight.
    pub connections: u32,
    /// How many times each of these requests hashes the file.
    pub n: u32,
}

impl Default for LoadShape {
    /// One connection in a closed loop.
    fn default() -> Self {
        LoadShape::closed(1, 1)
    }
}

impl LoadShape {
    /// Whether it can be raced in duels. What is a cold start by definition is raced in rounds; so are loads beside
    /// others, and members that join and leave on a clock of their own.
    pub fn allows_duels(&self) -> bool {
        let is_cold = self.is_counted() || self.drive.burst().is_some();
        !is_cold && self.beside.is_none() && self.passing == 0
    }

    /// A closed loop with `connections` connections and `pipeline` requests in flight on each.
    pub const fn closed(connections: u32, pipeline: u32) -> Self {
        LoadShape {
            connections,
            idle: 0,
            stalled: 0,
            passing: 0,
            pipeline,
            drive: Drive::Closed,
            cores: None,
            requests: None,
            n: None,
            beside: None,
        }
    }

    /// Maximum number of connections open at once: sending, silent and passing ones, and those of
    /// the load beside.
    pub fn max_open_connections(&self) -> u32 {
        let beside = self.beside.map_or(0, |beside| beside.connections);
        let all = [self.idle, self.passing, beside].into_iter();
        all.fold(self.connections, u32::saturating_add)
    }

    /// Whether latencies at this load may be compared between cells: in open loop, and if
    /// `in_flight` allows fewer requests in flight than the connections could have. In closed loop
    /// each connection waits for its reply before it sends again: then a mean latency is requests
    /// in flight over rate (Little's law), and a server that stalls receives fewer requests
    /// meanwhile (coordinated omission). Counted loads measure cold starts.
    pub fn compares_latency(&self) -> bool {
        let could_have = u64::from(self.connections) * u64::from(self.pipeline);
        match self.drive {
            _ if self.is_counted() => false,
            Drive::Open { .. } => true,
            Drive::Bounded { in_flight } => u64::from(in_flight.get()) < could_have,
            Drive::Closed | Drive::Churn | Drive::Burst(_) => false,
        }
    }

    /// Whether it ends with its last reply instead of a fixed window.
    pub fn is_counted(&self) -> bool {
        self.drive.burst().is_some() || self.requests.is_some()
    }
}

impl fmt::Display for LoadShape {
    /// The form used in tables: `64 conn`, `64 conn × 16`, `300 conn, 2000 requests, n=1000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} conn", self.connections)?;
        if self.idle > 0 {
            write!(f, " + {} idle", self.idle)?;
        }
        match (self.stalled, self.idle) {
            (0, _) => {}
            (stalled, idle) if stalled == idle => write!(f, " that never read")?,
            (stalled, _) => write!(f, " ({stalled} never read)")?,
        }
        if self.passing > 0 {
            write!(f, " + {} passing", self.passing)?;
        }
        if self.pipeline > 1 {
            write!(f, " × {}", self.pipeline)?;
        }
        match self.drive {
            Drive::Closed | Drive::Burst(_) => {}
            Drive::Bounded { in_flight } => write!(f, ", {in_flight} in flight")?,
            Drive::Open { rate, arrivals: Arrivals::Poisson } => write!(f, ", {rate}/s")?,
            Drive::Open { rate, arrivals: Arrivals::Constant } => write!(f, ", {rate}/s even")?,
            Drive::Churn => write!(f, ", churn")?,
        }
        if let Some(cores) = self.cores {
            write!(f, ", {cores} {}", if cores == 1 { "core" } else { "cores" })?;
        }
        if let Drive::Burst(Burst { instances, requests }) = self.drive {
            write!(f, ", burst of {instances} × {requests}")?;
        }
        if let Some(requests) = self.requests {
            write!(f, ", {requests} requests")?;
        }
        if let Some(n) = self.n {
            write!(f, ", n={n}")?;
        }
        if let Some(BackgroundLoad { connections, n }) = self.beside {
            write!(f, ", beside {connections} conn with n={n}")?;
        }
        Ok(())
    }
}

/// The CPUs of server and load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSets {
    /// The contender's.
    pub server: Vec<u32>,
    /// The load's.
    pub load: Vec<u32>,
    /// CPUs of neither: a contender with more CPUs than `server` takes these first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spare: Vec<u32>,
    /// Whether the load has a machine of its own: its CPUs are others than those of the same numbers in `server`
    /// and `spare`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

impl CpuSets {
    /// The contender's CPUs at `load`: its own first, then the spare ones, then the load's if they are on the same
    /// machine.
    pub fn of_server(&self, load: &LoadShape) -> Vec<u32> {
        let Some(cores) = load.cores else { return self.server.clone() };
        let of_load = if self.apart { &[][..] } else { &self.load };
        let mut cpus = Vec::new();
        for &cpu in self.server.iter().chain(&self.spare).chain(of_load) {
            if !cpus.contains(&cpu) && cpus.len() < cores as usize {
                cpus.push(cpu);
            }
        }
        cpus
    }

    /// The load's CPUs at `load`: with `cores`, its own CPUs that the contender does not use; all of its
    /// own if there are none, and without `cores`.
    pub fn of_load(&self, load: &LoadShape) -> Vec<u32> {
        let own = self.left_by_server(load);
        if load.cores.is_none() || own.is_empty() { self.load.clone() } else { own }
    }

    /// The CPUs of the backends behind the contender at `load`: the spare ones, or the contender's
    /// if there are none.
    pub fn of_backends(&self, load: &LoadShape) -> Vec<u32> {
        let server = self.of_server(load);
        let spare: Vec<u32> =
            self.spare.iter().copied().filter(|cpu| !server.contains(cpu)).collect();
        if spare.is_empty() { server } else { spare }
    }

    /// Whether `cores` of the load leaves no CPU to the load alone.
    pub fn are_shared(&self, load: &LoadShape) -> bool {
        load.cores.is_some() && self.left_by_server(load).is_empty()
    }

    fn left_by_server(&self, load: &LoadShape) -> Vec<u32> {
        if self.apart {
            return self.load.clone();
        }
        let server = self.of_server(load);
        self.load.iter().copied().filter(|cpu| !server.contains(cpu)).collect()
    }

    /// Whether a thread of the load may run on a CPU of the contender at `load`, as those of a load without CPUs of
    /// its own may.
    pub fn overlap(&self, load: &LoadShape) -> bool {
        let (server, own) = (self.of_server(load), self.of_load(load));
        !self.apart && (own.is_empty() || own.iter().any(|cpu| server.contains(cpu)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    fn at(rate: u32, arrivals: Arrivals, connections: u32) -> LoadShape {
        let rate = NonZeroU32::new(rate).unwrap();
        LoadShape { drive: Drive::Open { rate, arrivals }, ..LoadShape::closed(connections, 1) }
    }

    fn with(cores: Option<u32>) -> LoadShape {
        LoadShape { cores, ..LoadShape::closed(64, 1) }
    }

    #[test]
    fn more_cores_use_spare_cpus_first_and_then_the_loads() {
        let cpus =
            CpuSets { server: vec![4, 5], load: vec![0, 1], spare: vec![2], ..CpuSets::default() };
        let of = |cores| (cpus.of_server(&with(cores)), cpus.of_load(&with(cores)));
        assert_eq!(of(None), (vec![4, 5], vec![0, 1]));
        assert_eq!(of(Some(1)), (vec![4], vec![0, 1]));
        assert_eq!(of(Some(3)), (vec![4, 5, 2], vec![0, 1]));
        assert_eq!(of(Some(4)), (vec![4, 5, 2, 0], vec![1]));
        assert!(!cpus.are_shared(&with(Some(4))));
        assert_eq!(of(Some(5)), (vec![4, 5, 2, 0, 1], vec![0, 1]), "none remains: they share");
        assert!(cpus.are_shared(&with(Some(5))));
        assert_eq!(cpus.of_backends(&with(None)), [2]);
        assert_eq!(cpus.of_backends(&with(Some(3))), [4, 5, 2], "only the contender's remain");
        assert!(!cpus.are_shared(&with(None)));
    }

    #[test]
    fn cpus_of_two_machines_are_never_shared() {
        let here = CpuSets { server: vec![0, 1], load: vec![0, 1], ..CpuSets::default() };
        let apart = CpuSets { apart: true, ..here.clone() };
        for cores in [None, Some(1), Some(2), Some(4)] {
            assert!(cores == Some(1) || here.overlap(&with(cores)), "{cores:?}");
            assert!(!apart.overlap(&with(cores)) && !apart.are_shared(&with(cores)), "{cores:?}");
            assert_eq!(apart.of_load(&with(cores)), [0, 1]);
        }
        assert_eq!(apart.of_server(&with(Some(4))), [0, 1], "the load's CPUs are elsewhere");
    }

    #[test]
    fn closed_loops_do_not_compare_latencies() {
        let bounded = |in_flight| {
            let drive = Drive::Bounded { in_flight: NonZeroU32::new(in_flight).unwrap() };
            LoadShape { drive, ..LoadShape::closed(64, 2) }
        };
        assert!(at(7, Arrivals::Poisson, 2).compares_latency());
        assert!(bounded(1).compares_latency() && bounded(127).compares_latency());
        assert!(!bounded(128).compares_latency(), "the bound has no effect");
        let counted = LoadShape { requests: Some(9), ..bounded(1) };
        let churn = LoadShape { drive: Drive::Churn, ..LoadShape::closed(64, 1) };
        for load in [LoadShape::closed(64, 1), counted, churn] {
            assert!(!load.compares_latency(), "{load}");
        }
    }

    #[test]
    fn a_load_is_displayed_as_in_tables() {
        let drive = Drive::Burst(Burst { instances: 10, requests: 10 });
        let shape = LoadShape { drive, cores: Some(1), ..LoadShape::closed(5_000, 3) };
        assert_eq!(shape.to_string(), "5000 conn × 3, 1 core, burst of 10 × 10");
        let shape = LoadShape { idle: 10_000, ..at(20_000, Arrivals::Poisson, 10) };
        assert_eq!(shape.to_string(), "10 conn + 10000 idle, 20000/s");
        let stalled =
            |idle, stalled| LoadShape { idle, stalled, ..LoadShape::closed(10, 1) }.to_string();
        assert_eq!(stalled(1, 1), "10 conn + 1 idle that never read");
        assert_eq!(stalled(100, 1), "10 conn + 100 idle (1 never read)");
        assert_eq!(shape.max_open_connections(), 10_010);
        let shape = LoadShape { passing: 50, ..LoadShape::closed(10, 1) };
        assert_eq!(
            (shape.to_string().as_str(), shape.max_open_connections()),
            ("10 conn + 50 passing", 60)
        );
        let shape =
            LoadShape { requests: Some(2_000), n: Some(1_000), ..LoadShape::closed(300, 1) };
        assert_eq!(shape.to_string(), "300 conn, 2000 requests, n=1000");
        assert!(shape.is_counted());
        let beside = Some(BackgroundLoad { connections: 8, n: 1_000 });
        let shape = LoadShape { n: Some(1), beside, ..at(200, Arrivals::Poisson, 100) };
        assert_eq!(shape.to_string(), "100 conn, 200/s, n=1, beside 8 conn with n=1000");
        assert_eq!((shape.max_open_connections(), shape.is_counted()), (108, false));
        assert_eq!(at(7, Arrivals::Constant, 2).to_string(), "2 conn, 7/s even");
        let shape = LoadShape { drive: Drive::Churn, cores: Some(2), ..LoadShape::closed(64, 1) };
        assert_eq!(shape.to_string(), "64 conn, churn, 2 cores");
        let drive = Drive::Bounded { in_flight: NonZeroU32::MIN };
        let shape = LoadShape { drive, ..LoadShape::closed(64, 1) };
        assert_eq!(shape.to_string(), "64 conn, 1 in flight");
    }
}
