//! Simulated rounds: contenders with known true costs on a machine with known noise. Shared by the
//! tests of the referee and by the examples that print simulated races for tests of reports.

pub mod counted;
pub mod five;
pub mod lives;
pub mod open_loop;

pub mod sweep;

use hdrhistogram::Histogram;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_record::{
    Arrivals, Asked, CpuSets, Drive, Entry, FORMAT, LoadShape, Operation, Round, Schedule, Server,
    Setup, UsageSource, encode_histogram,
};
use std::num::NonZeroU32;

/// The true properties of a contender.
#[derive(Clone, Debug)]
pub struct Truth {
    pub name: &'static str,
    /// Server CPU per request in nanoseconds.
    pub cost_ns: f64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Lines of its source.
    pub lines: u32,
}

pub fn truth(name: &'static str, cost_ns: f64) -> Truth {
    Truth { name, cost_ns, memory_mib: 3, lines: 120 }
}

/// The machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Standard deviation of the logarithm of each round's cost.
    pub noise: f64,
    /// The same for a factor that all cells of one pass share.
    pub drift: f64,
    /// Load CPU per request in nanoseconds.
    pub load_ns: f64,
    /// Samples in each histogram.
    pub samples: u32,
}

pub const QUIET: Machine = Machine { noise: 0.01, drift: 0.05, load_ns: 3_600.0, samples: 200 };

/// A standard normal value (Box and Muller, 1958).
pub fn normal(random: &mut SmallRng) -> f64 {
    let u: f64 = 1.0 - random.random::<f64>();
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

pub fn asked(names: &[&str], rounds: u32, loads: &[LoadShape]) -> Asked {
    let entry = |name: &&str| Entry {
        name: (*name).to_owned(),
        about: format!("simulated {name}"),
        start: vec![(*name).to_owned(), "--port".to_owned(), "{port}".to_owned()],
        version: None,
        released: None,
        env: Default::default(),
        lines_of_code: Some(120),
        manifest: String::new(),
        dir: Default::default(),
        stand_in_for: None,
        one_core_as: None,
        running: None,
        skipped: None,
    };
    Asked {
        format: FORMAT,
        name: "simulated".to_owned(),
        workload: "double".to_owned(),
        cost_per: Operation::REQUESTS,
        latency_of: Operation::REQUESTS,
        contenders: names.iter().map(|n| (*n).to_owned()).collect(),
        baseline: names[0].to_owned(),
        twin_of: names.iter().find_map(|n| n.strip_suffix("-twin")).map(str::to_owned),
        rounds,
        window_s: 2.0,
        warm_up_s: 1.0,
        seed: 42,
        loads: loads.to_vec(),
        cpus: CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() },
        left_out: Vec::new(),
        over: None,
        then_source: None,
        then: Vec::new(),
        setup: Setup::default(),
        fingerprint: None,
        server: None,
        pilot: vec![],
        pilot_shares: vec![],
        workload_file: None,
        precision: None,
        schedule: Schedule::Rounds,
        slice_s: None,
        time_s: None,
        fail_over: None,
        busy_poll: false,
        heads: None,
        settle_s: 0.0,
        entries: names.iter().map(entry).collect(),
    }
}

pub const LOAD: LoadShape = LoadShape::closed(64, 1);

/// `rate` Poisson arrivals per second.
pub const fn open(rate: u32) -> Drive {
    Drive::Open { rate: NonZeroU32::new(rate).unwrap(), arrivals: Arrivals::Poisson }
}

/// `LOAD` on `cores` cores, with another drive.
pub const fn on(cores: u32, drive: Drive) -> LoadShape {
    LoadShape { cores: Some(cores), drive, ..LOAD }
}

/// All rounds of a race of `contenders` at `loads`.
pub fn rounds(
    contenders: &[Truth],
    loads: &[LoadShape],
    passes: u32,
    machine: Machine,
    seed: u64,
) -> Vec<Round> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut rounds = Vec::new();
    for pass in 0..passes {
        let shared = (machine.drift * normal(&mut random)).exp();
        for load in loads {
            for truth in contenders {
                rounds.push(round(truth, *load, pass, machine, shared, &mut random));
            }
        }
    }
    rounds
}

#[expect(clippy::too_many_arguments, reason = "all that a round depends on")]
fn round(
    truth: &Truth,
    load: LoadShape,
    pass: u32,
    machine: Machine,
    shared: f64,
    random: &mut SmallRng,
) -> Round {
    let own = (machine.noise * normal(random)).exp();
    let cost_ns = truth.cost_ns * shared * own / f64::from(load.pipeline).sqrt();
    let load_ns = machine.load_ns * shared / f64::from(load.pipeline).sqrt();
    let window_ns = 2e9;
    let requests = 0.98 * window_ns / cost_ns.max(load_ns);
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
    let median = f64::from(load.connections * load.pipeline) * window_ns / requests;
    for _ in 0..machine.samples {
        let latency = median * (0.35 * normal(random)).exp();
        histogram.saturating_record(latency as u64);
    }
    Round {
        format: FORMAT,
        round: pass,
        contender: truth.name.to_owned(),
        workload: "double".to_owned(),
        load,
        seed: u64::from(pass),
        started_unix_s: 1_790_000_000 + u64::from(pass) * 60,
        requests: requests as u64,
        window_ns: window_ns as u64,
        slices: (0..20).map(|_| (requests / 20.0 * (0.01 * normal(random)).exp()) as u64).collect(),
        load_cpu_ns: (requests * load_ns) as u64,
        load_cpus: 1,
        server: Some(Server {
            cpu_ns: (requests.floor() * cost_ns) as u64,
            user_ns: (requests * cost_ns * 0.2) as u64,
            system_ns: (requests * cost_ns * 0.8) as u64,
            source: UsageSource::CgroupV1,
            cpus: 1,
            voluntary_switches: (requests * 0.02) as u64,
            involuntary_switches: (requests * 0.001) as u64,
            memory_bytes: truth.memory_mib * 1024 * 1024 + 40_960 * u64::from(pass),
            processes: 1,
            threads: 1,
            ..Server::default()
        }),
        histogram: encode_histogram(&histogram),
        ..Round::default()
    }
}
