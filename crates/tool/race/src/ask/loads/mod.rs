//! `[[load]]` of a race file: lists of values that multiply out, fitted to this machine.

mod contradiction;

use crate::ask::rate::{Paces, Rate};
use regatta_record::{Arrivals, BackgroundLoad, Burst, CpuSets, Drive, LoadShape, joined};
use serde::Deserialize;
use std::{collections::BTreeSet, num::NonZeroU32};

/// Default rate, in requests per second, where server and load must share CPUs.
pub const RATE_WHEN_SHARED: u32 = 20_000;

/// The rate of a comparison at an equal rate.
const EQUAL_RATE: &str = "60% of slowest";

/// Loads of a race file: every combination of the values.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loads {
    /// Number of busy connections. Absent: 64.
    #[serde(default = "OneOrMany::usual")]
    connections: OneOrMany<u32>,
    /// Further connections, open and silent.
    #[serde(default = "OneOrMany::zero")]
    idle: OneOrMany<u32>,
    /// The number of idle connections that never read what the server sends. If the list includes 0, the
    /// latencies of the other loads are compared with the load in which every connection reads.
    #[serde(default = "OneOrMany::zero")]
    stalled: OneOrMany<u32>,
    /// Further connections whose members come and go; each stays for 1 s on average.
    #[serde(default = "OneOrMany::zero")]
    passing: OneOrMany<u32>,
    /// Requests in flight on each connection. Absent: 1.
    #[serde(default = "OneOrMany::one")]
    pipeline: OneOrMany<u32>,
    /// Maximum number of requests in flight over all connections; absent: `pipeline` per connection.
    in_flight: Option<OneOrMany<u32>>,
    /// Whether each request, or each conversation, has its own connection.
    #[serde(default)]
    churn: bool,
    /// Requests per second over all connections, or a share of what the contenders can do (`"50% of
    /// slowest"`, `"90% of fastest"`); absent: closed loop. A pilot pass finds what they can do, once the rate
    /// of each is steady. It waits for that for at most `settle`, but between 6 and 20 s, and less if many contenders
    /// share its time: 5 minutes, or a quarter of `time`. If the rate that decides is not known to be steady, or
    /// the race has another one under the closed loop, the report says so.
    rate: Option<OneOrMany<Rate>>,
    /// Arrivals of requests at a rate: `poisson`, as from many users (also if absent), or `constant`.
    arrivals: Option<Arrivals>,
    /// Number of CPUs of the contender; absent: all that the race reserves for it.
    cores: Option<OneOrMany<CoreCount>>,
    /// The rate of all `cores` of this entry, in requests per second, if one of them leaves the load no
    /// CPU.
    rate_when_shared: Option<u32>,
    /// `{ instances = 10, requests = 10 }`: this many instances at once share the connections; each
    /// connection connects, sends this many requests and closes.
    burst: Option<Burst>,
    /// Total number of requests, instead of a window.
    requests: Option<OneOrMany<u32>>,
    /// For the workload `hash`: how often the file is hashed for each request.
    n: Option<OneOrMany<u32>>,
    /// For the workload `hash`: large requests that are always in flight beside the measured ones.
    beside: Option<BackgroundLoad>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "a value or a list of values: numbers; in cores also \"all\"; in rate also shares \
                 such as \"50% of slowest\""
)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    fn values(&self) -> &[T] {
        match self {
            OneOrMany::One(value) => std::slice::from_ref(value),
            OneOrMany::Many(values) => values,
        }
    }
}

impl OneOrMany<u32> {
    fn zero() -> Self {
        OneOrMany::One(0)
    }

    fn one() -> Self {
        OneOrMany::One(1)
    }

    fn usual() -> Self {
        OneOrMany::One(64)
    }

    fn is_none_or_zero(&self) -> bool {
        self.values().is_empty() || self.values().contains(&0)
    }
}

/// A number of cores, or `"all"`: every CPU that this program may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum CoreCount {
    /// A number of cores.
    Count(u32),
    /// `"all"`.
    Word(All),
}

/// The word `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum All {
    /// All CPUs that this program may use.
    All,
}

impl CoreCount {
    /// Returns the number of cores, with `available` for `all`.
    pub fn resolve(self, available: u32) -> u32 {
        match self {
            CoreCount::Count(n) => n,
            CoreCount::Word(All::All) => available,
        }
    }
}

/// Returns the number of CPUs that a contender of a race could have.
pub fn available(cpus: &CpuSets) -> u32 {
    let of_load = if cpus.apart { &[][..] } else { &cpus.load };
    let all: BTreeSet<&u32> = cpus.server.iter().chain(&cpus.spare).chain(of_load).collect();
    all.len() as u32
}

impl Loads {
    /// Returns the default load: 64 connections in a closed loop, one request in flight on each.
    pub(crate) fn usual() -> Vec<Loads> {
        vec![toml::from_str("").expect("every key has a default")]
    }

    /// Returns a load of these connections and requests in flight on each, in a closed loop or at a rate.
    pub(crate) fn one(connections: u32, pipeline: u32, rate: Option<Rate>) -> Loads {
        let usual = Self::usual().remove(0);
        Loads {
            connections: OneOrMany::One(connections),
            pipeline: OneOrMany::One(pipeline),
            rate: rate.map(OneOrMany::One),
            ..usual
        }
    }

    /// Returns the two loads that show what a server costs: at an equal rate, where all do the same work, and
    /// at saturation, where the CPUs of the server or of the load are full.
    pub(crate) fn regimes(connections: u32, pipeline: u32) -> Vec<Loads> {
        let equal = Rate::Text(EQUAL_RATE.to_owned());
        [Some(equal), None].map(|rate| Loads::one(connections, pipeline, rate)).into()
    }

    /// Whether its rates depend on a pilot pass.
    pub(crate) fn needs_pilot(&self) -> bool {
        self.rates().any(Rate::is_share)
    }

    /// Its rates.
    pub(crate) fn rates(&self) -> impl Iterator<Item = &Rate> {
        self.rate.iter().flat_map(OneOrMany::values)
    }

    /// Returns the closed-loop loads whose rates a pilot pass must measure for it. All of their connections read.
    pub(crate) fn pilot_loads(&self, cpus: &CpuSets) -> Vec<LoadShape> {
        if !self.needs_pilot() {
            return Vec::new();
        }
        let (shapes, _) = self.shapes(cpus, &Paces::default());
        let closed = |load: LoadShape| LoadShape { drive: Drive::Closed, stalled: 0, ..load };
        shapes.into_iter().map(closed).collect()
    }

    /// Returns the loads that fit these CPUs, in the order of the file, and a sentence for each core
    /// count that does not fit. A load at a share that `paces` cannot resolve is returned as
    /// a closed loop.
    pub(crate) fn shapes(&self, cpus: &CpuSets, paces: &Paces) -> (Vec<LoadShape>, Vec<String>) {
        let available = available(cpus);
        let mut left_out = Vec::new();
        let mut counts = self.core_counts(available);
        let shared =
            |cores: Option<u32>| cpus.are_shared(&LoadShape { cores, ..LoadShape::closed(1, 1) });
        counts.retain(|&cores| {
            let why = match cores {
                Some(n) if n > available => format!("only {available} available"),
                Some(_) if self.has_no_rate() && shared(cores) => format!(
                    "server and load would have to share them, which needs a fixed rate, but {} \
                     has none",
                    match () {
                        () if self.churn => "a connection per request",
                        () if self.in_flight.is_some() => "a load with `in_flight`",
                        () => "a counted load",
                    }
                ),
                Some(_) if self.beside.is_some() && shared(cores) => {
                    "server and loads would have to share them".to_owned()
                }
                _ => return true,
            };
            left_out.push(format!("{} on {} CPUs: {why}", self.in_words(), cores.unwrap_or(0)));
            false
        });
        let has_rate = !self.is_counted() && self.in_flight.is_none();
        let fixed = counts.iter().any(|cores| shared(*cores)) && has_rate;
        let when_shared = fixed.then(|| self.rate_when_shared.unwrap_or(RATE_WHEN_SHARED));
        let rates: Vec<Option<&Rate>> = match &self.rate {
            Some(rates) => rates.values().iter().map(Some).collect(),
            None => vec![None],
        };
        let requests = values_or_none(&self.requests);
        let mut shapes = Vec::new();
        for closed in self.closed_shapes() {
            for &requests in &requests {
                for &n in &values_or_none(&self.n) {
                    for &rate in &rates {
                        shapes.extend(counts.iter().map(|&cores| {
                            let closed = LoadShape { requests, n, cores, ..closed };
                            // Loads that are compared with each other have the same rate.
                            let all_reading = LoadShape { stalled: 0, ..closed };
                            let of_file = |rate: &Rate| rate.resolve(&all_reading, paces);
                            match rate.map_or(when_shared, of_file).and_then(NonZeroU32::new) {
                                Some(rate) => LoadShape { drive: self.open(rate), ..closed },
                                None => closed,
                            }
                        }));
                    }
                }
            }
        }
        (shapes, left_out)
    }

    /// Returns the loads multiplied out, except for rates, requests, `n` and cores.
    fn closed_shapes(&self) -> Vec<LoadShape> {
        let mut shapes = Vec::new();
        for &connections in self.connections.values() {
            for &idle in self.idle.values() {
                for &passing in self.passing.values() {
                    for &pipeline in self.pipeline.values() {
                        let closed = LoadShape::closed(connections, pipeline);
                        for in_flight in values_or_none(&self.in_flight) {
                            let drive = self.drive(in_flight);
                            shapes.extend(self.stalled.values().iter().map(|&stalled| LoadShape {
                                idle,
                                stalled,
                                passing,
                                drive,
                                beside: self.beside,
                                ..closed
                            }));
                        }
                    }
                }
            }
        }
        shapes
    }

    /// Returns the drive of a load without a rate.
    fn drive(&self, in_flight: Option<u32>) -> Drive {
        match (self.burst, in_flight.and_then(NonZeroU32::new)) {
            (Some(burst), _) => Drive::Burst(burst),
            (None, Some(in_flight)) => Drive::Bounded { in_flight },
            (None, None) if self.churn => Drive::Churn,
            (None, None) => Drive::Closed,
        }
    }

    fn open(&self, rate: NonZeroU32) -> Drive {
        Drive::Open { rate, arrivals: self.arrivals.unwrap_or_default() }
    }

    /// Whether it always runs as fast as it can, so that it cannot have a rate. False for bursts, which
    /// may share CPUs with the server.
    fn has_no_rate(&self) -> bool {
        self.churn || self.requests.is_some() || self.in_flight.is_some()
    }

    fn core_counts(&self, available: u32) -> Vec<Option<u32>> {
        let Some(cores) = &self.cores else { return vec![None] };
        let mut counts: Vec<Option<u32>> = Vec::new();
        for count in cores.values().iter().map(|count| Some(count.resolve(available))) {
            if !counts.contains(&count) {
                counts.push(count);
            }
        }
        counts
    }

    /// Describes the entry, e.g. `64 conn` or `64, 1000 conn × 3`.
    fn in_words(&self) -> String {
        let list = |values: &[u32]| joined(values, ", ");
        let pipeline = match self.pipeline.values() {
            [1] => String::new(),
            values => format!(" × {}", list(values)),
        };
        let burst = if self.burst.is_some() { ", burst" } else { "" };
        let requests = self
            .requests
            .as_ref()
            .map_or_else(String::new, |requests| format!(", {} requests", list(requests.values())));
        format!("{} conn{pipeline}{burst}{requests}", list(self.connections.values()))
    }
}

fn values_or_none(values: &Option<OneOrMany<u32>>) -> Vec<Option<u32>> {
    match values {
        Some(values) => values.values().iter().copied().map(Some).collect(),
        None => vec![None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(text: &str) -> Loads {
        toml::from_str(text).unwrap()
    }

    fn cpus(server: &[u32], load: &[u32]) -> CpuSets {
        CpuSets {
            server: server.to_vec(),
            load: load.to_vec(),
            spare: vec![],
            ..CpuSets::default()
        }
    }

    fn shapes_of(text: &str, cpus: &CpuSets) -> Vec<String> {
        loads(text).shapes(cpus, &Paces::default()).0.iter().map(LoadShape::to_string).collect()
    }

    #[test]
    fn lists_multiply_out() {
        let two = cpus(&[0], &[1]);
        let all = "connections = [10, 64]\nidle = [0, 1000]\npipeline = [1, 16]\nrate = [100, 200]";
        let shapes = shapes_of(all, &two);
        assert_eq!(shapes.len(), 16);
        assert_eq!(shapes[0], "10 conn, 100/s");
        assert_eq!(shapes[15], "64 conn + 1000 idle × 16, 200/s");
    }

    #[test]
    fn shared_cores_give_the_whole_entry_one_rate() {
        let text = "connections = 64\ncores = [1, 2, \"all\"]";
        let (shapes, left_out) = loads(text).shapes(&cpus(&[0], &[1]), &Paces::default());
        assert_eq!(
            shapes_of(text, &cpus(&[0], &[1])),
            ["64 conn, 20000/s, 1 core", "64 conn, 20000/s, 2 cores"]
        );
        assert!(left_out.is_empty());
        assert_eq!(
            shapes.iter().map(|l| cpus(&[0], &[1]).are_shared(l)).collect::<Vec<_>>(),
            [false, true]
        );
        let on_four = shapes_of("connections = 64\ncores = [1, 2]", &cpus(&[0, 1], &[2, 3]));
        assert_eq!(on_four, ["64 conn, 1 core", "64 conn, 2 cores"], "closed loop");
        let own_rate = "connections = 64\ncores = [1, 2]\nrate_when_shared = 500";
        assert_eq!(shapes_of(own_rate, &cpus(&[0], &[1]))[0], "64 conn, 500/s, 1 core");
        let burst = "connections = 20\nburst = { instances = 10, requests = 3 }\ncores = \"all\"";
        assert_eq!(shapes_of(burst, &cpus(&[0], &[1])), ["20 conn, 2 cores, burst of 10 × 3"]);
    }

    #[test]
    fn loads_that_do_not_fit_this_machine_are_left_out_with_a_reason() {
        let text = "connections = [64, 1000]\ncores = [1, 8]";
        let (shapes, left_out) = loads(text).shapes(&cpus(&[0], &[1]), &Paces::default());
        assert_eq!(shapes.len(), 2);
        assert!(shapes.iter().all(|l| l.cores == Some(1) && l.drive == Drive::Closed));
        assert_eq!(left_out, ["64, 1000 conn on 8 CPUs: only 2 available"]);
        let (shapes, left_out) = loads("connections = 64\nchurn = true\ncores = [1, 2]")
            .shapes(&cpus(&[0], &[1]), &Paces::default());
        assert_eq!(shapes.len(), 1);
        assert!(left_out[0].contains("needs a fixed rate"), "{left_out:?}");
    }

    #[test]
    fn arrivals_apply_only_where_there_is_a_rate() {
        let with_cores = loads("connections = 64\ncores = [1, 2]\narrivals = \"constant\"");
        assert_eq!(with_cores.contradiction(), None);
        let of = |server: &[u32], load: &[u32]| {
            with_cores.shapes(&cpus(server, load), &Paces::default()).0[0].drive
        };
        let rate = NonZeroU32::new(RATE_WHEN_SHARED).unwrap();
        let even = Drive::Open { rate, arrivals: Arrivals::Constant };
        assert_eq!(of(&[0], &[1]), even, "at the rate of cores that are shared");
        assert_eq!(of(&[0, 1], &[2, 3]), Drive::Closed, "closed loop");
    }

    #[test]
    fn counted_loads_multiply_out_by_requests_and_n() {
        let two = cpus(&[0], &[1]);
        let counted = "connections = 300\nrequests = 2000\nn = [1, 1000]";
        let expected = ["300 conn, 2000 requests, n=1", "300 conn, 2000 requests, n=1000"];
        assert_eq!(shapes_of(counted, &two), expected);
        let churn = "connections = 100\nchurn = true\nrequests = 1000";
        assert_eq!(shapes_of(churn, &two), ["100 conn, churn, 1000 requests"]);
        assert_eq!(loads(counted).contradiction().or(loads(churn).contradiction()), None);
        let (shapes, left_out) =
            loads("connections = 9\nrequests = 5\ncores = [1, 2]").shapes(&two, &Paces::default());
        assert_eq!(shapes.len(), 1);
        assert!(left_out[0].contains("9 conn, 5 requests on 2 CPUs"), "{left_out:?}");
        assert!(left_out[0].contains("a counted load has none"), "{left_out:?}");
    }

    #[test]
    fn in_flight_multiplies_out() {
        let two = cpus(&[0], &[1]);
        let hub = "connections = [100, 1000]\nin_flight = [1, 4]";
        let expected = [
            "100 conn, 1 in flight",
            "100 conn, 4 in flight",
            "1000 conn, 1 in flight",
            "1000 conn, 4 in flight",
        ];
        assert_eq!(shapes_of(hub, &two), expected);
        assert_eq!(loads(hub).contradiction(), None);
        let passing = "connections = 100\npassing = [0, 50]\nin_flight = 4";
        let expected = ["100 conn, 4 in flight", "100 conn + 50 passing, 4 in flight"];
        assert_eq!(shapes_of(passing, &two), expected);
        let (shapes, left_out) =
            loads("connections = 9\nin_flight = 4\ncores = [1, 2]").shapes(&two, &Paces::default());
        assert_eq!(shapes.len(), 1);
        assert!(left_out[0].contains("a load with `in_flight` has none"), "{left_out:?}");
    }

    #[test]
    fn loads_with_and_without_connections_that_do_not_read_have_the_same_rate() {
        let two = cpus(&[0], &[1]);
        let text = "connections = 999\nidle = 1\nstalled = [0, 1]\nrate = \"30% of slowest\"";
        assert_eq!(loads(text).contradiction(), None);
        let all_reading = LoadShape { idle: 1, ..LoadShape::closed(999, 1) };
        let paces = Paces::assumed(&[all_reading]);
        let (shapes, _) = loads(text).shapes(&two, &paces);
        let named: Vec<String> = shapes.iter().map(LoadShape::to_string).collect();
        let expected = ["999 conn + 1 idle, 30000/s", "999 conn + 1 idle that never read, 30000/s"];
        assert_eq!(named, expected);
        assert_eq!(shapes[0], LoadShape { stalled: 0, ..shapes[1] });
    }

    #[test]
    fn a_load_beside_applies_to_every_load_of_its_entry() {
        let two = cpus(&[0], &[1]);
        let fair = "connections = 100\nrate = 200\nn = 1\nbeside = { connections = 8, n = 1000 }";
        assert_eq!(shapes_of(fair, &two), ["100 conn, 200/s, n=1, beside 8 conn with n=1000"]);
        assert_eq!(loads(fair).contradiction(), None);
        assert_eq!(loads(fair).hash_only_key(), Some("n"));
        let (shapes, left_out) =
            loads(&format!("{fair}\ncores = \"all\"")).shapes(&two, &Paces::default());
        assert!(shapes.is_empty() && left_out[0].contains("loads would have to share"));
    }
}
