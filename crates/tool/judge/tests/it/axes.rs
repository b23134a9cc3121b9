//! Judging the axes other than connections and pipelining, on simulated races: cores, requested
//! rates, bursts, memory per connection.

use crate::simulated::{LOAD, QUIET, asked, on, open, rounds, truth};
use regatta_judge::judge;
use regatta_record::{
    Asked, Burst, Cell, Drive, Figure, HistoricResult, KernelGrowth, KernelMemorySource, Kind,
    Latency, LoadShape, Outcome, Relation, Round, Summary,
};

const NAMES: [&str; 4] = ["epoll", "epoll-twin", "null", "percore"];

/// The race of these loads on a machine of two CPUs.
fn race(loads: &[LoadShape]) -> (Asked, Vec<Round>) {
    let costs = [5_000.0, 5_000.0, 4_000.0, 5_000.0];
    let field: Vec<_> = NAMES.iter().zip(costs).map(|(n, c)| truth(n, c)).collect();
    (asked(&NAMES, 7, loads), rounds(&field, loads, 7, QUIET, 7))
}

fn cell<'a>(summary: &'a Summary, name: &str, load: LoadShape) -> &'a Cell {
    summary.cells.iter().find(|c| c.contender == name && c.load == load).unwrap()
}

fn of<'a>(
    rounds: &'a mut [Round],
    name: &'a str,
    load: LoadShape,
) -> impl Iterator<Item = &'a mut Round> {
    rounds.iter_mut().filter(move |r| r.contender == name && r.load == load)
}

/// Answers as many requests as were due, at the same cost.
fn hold(rounds: &mut [Round], rate: u64) {
    for r in rounds {
        let requests = rate * r.window_ns / 1_000_000_000;
        let server = r.server.as_mut().unwrap();
        server.cpu_ns = (server.cpu_ns as f64 * requests as f64 / r.requests as f64) as u64;
        (server.user_ns, server.system_ns) = (server.cpu_ns / 5, server.cpu_ns / 5 * 4);
        r.requests = requests;
    }
}

#[test]
fn on_shared_cpus_only_the_cost_is_reported() {
    let (one, two) = (on(1, open(20_000)), on(2, open(20_000)));
    let (asked, mut rounds) = race(&[one, two]);
    hold(&mut rounds, 20_000);
    // On two cores half as much again.
    for r in rounds.iter_mut().filter(|r| r.load == two && r.contender == "percore") {
        let server = r.server.as_mut().unwrap();
        server.cpu_ns = server.cpu_ns * 3 / 2;
    }
    let s = judge(&asked, &rounds);
    let shared = cell(&s, "percore", two);
    assert!(shared.shared_cpus);
    assert_eq!(shared.verdict.kind(), Kind::CostOnly);
    assert_eq!(shared.verdict.because(), "server and load share CPU 1");
    assert!(shared.verdict.voids(Figure::Rate) && !shared.verdict.voids(Figure::Cost));
    assert_eq!((shared.rate_per_s, shared.headroom), (None, None));
    assert_eq!(shared.latency_ns, Latency::default());
    assert_eq!(shared.relation, Some(Relation::Costlier));

    let alone = cell(&s, "percore", one);
    assert!(!alone.shared_cpus && alone.latency_ns.p50.is_some());
    assert_eq!(
        alone.verdict.kind(),
        Kind::AtAskedRate,
        "an idle load is not the limit at a requested rate"
    );
    assert_eq!((alone.headroom, alone.scaling), (None, None));
    assert!((alone.rate_per_s.unwrap().mean - 20_000.0).abs() < 1.0);

    let scaling = shared.scaling.unwrap();
    assert_eq!((scaling.from_cores, scaling.cores, scaling.rate), (1, 2, None));
    let cost = scaling.cost.unwrap();
    assert!(cost.low < 1.5 && 1.5 < cost.high && cost.high - cost.low < 0.1, "{cost:?}");
}

#[test]
fn a_shared_cell_that_did_not_hold_its_rate_is_not_compared() {
    let (one, two) = (on(1, open(20_000)), on(2, open(20_000)));
    let (asked, mut rounds) = race(&[one, two]);
    hold(&mut rounds, 20_000);
    for load in [one, two] {
        of(&mut rounds, "percore", load).for_each(|r| r.requests = r.requests * 9 / 10);
    }
    let s = judge(&asked, &rounds);
    let shared = cell(&s, "percore", two);
    assert_eq!(shared.verdict.kind(), Kind::Overloaded);
    let because = &shared.verdict.because();
    assert!(because.contains("share CPU 1; 18000 of 20000 requests per second were answered"));
    assert!(shared.verdict.voids(Figure::Cost));
    assert_eq!((shared.band, shared.relation, shared.scaling), (None, None, None));
    let alone = cell(&s, "percore", one);
    assert_eq!(alone.verdict.kind(), Kind::Overloaded);
    assert!(!alone.verdict.voids(Figure::Cost), "{:?}", alone.verdict);
}

#[test]
fn cost_and_rate_scale_over_cores_in_pairs() {
    let (one, two, four) = (on(1, Drive::Closed), on(2, Drive::Closed), LOAD);
    let (mut asked, mut rounds) = race(&[four, two, one]);
    asked.cpus.server = vec![0, 1, 2, 3];
    asked.cpus.load = vec![4];
    for r in rounds.iter_mut().filter(|r| r.load != one) {
        // Twice the rate at the same cost, on two cores and on all four.
        (r.requests, r.load_cpu_ns) = (r.requests * 2, r.load_cpu_ns * 2);
        r.load_cpus = 2;
        let server = r.server.as_mut().unwrap();
        (server.cpu_ns, server.cpus) = (server.cpu_ns * 2, 2);
    }
    let s = judge(&asked, &rounds);
    for (load, cores) in [(two, 2), (four, 4)] {
        let scaling = cell(&s, "epoll", load).scaling.unwrap();
        assert_eq!((scaling.from_cores, scaling.cores), (1, cores));
        let (cost, rate) = (scaling.cost.unwrap(), scaling.rate.unwrap());
        assert!((cost.mean - 1.0).abs() < 0.03, "{cost:?}");
        assert!((rate.mean / 2.0 - 1.0).abs() < 0.03, "{rate:?}");
        assert!(cost.high / cost.low < 1.1, "the machine's drift cancels out: {cost:?}");
    }
    assert_eq!(cell(&s, "epoll", one).scaling, None, "the fewest cores have no reference");
    // A single common pass gives no interval.
    rounds.retain(|r| r.load != one || r.round == 3);
    assert_eq!(cell(&judge(&asked, &rounds), "epoll", two).scaling, None);
}

#[test]
fn a_burst_is_measured_by_its_instances() {
    let burst = LoadShape {
        drive: Drive::Burst(Burst { instances: 2, requests: 10 }),
        ..LoadShape::closed(5_000, 3)
    };
    let (mut asked, mut rounds) = race(&[burst]);
    asked.then = vec![HistoricResult {
        contender: "percore".into(),
        figure: Some("8.94 s".into()),
        note: None,
        loads: vec![burst],
    }];
    for r in &mut rounds {
        let wobble = u64::from(r.round) * 1_000_000;
        r.instances_ns = vec![900_000_000 + wobble, 1_100_000_000 + wobble];
        // It starts slowly and ends slowly; this is neither drift nor a second mode.
        r.slices.iter_mut().take(8).for_each(|n| *n /= 10);
        r.server.as_mut().unwrap().user_growth_bytes = Some(1 << 20);
    }
    let s = judge(&asked, &rounds);
    let c = cell(&s, "percore", burst);
    let instance = c.instance_s.unwrap();
    assert!((instance.mean - 1.003).abs() < 1e-5, "{instance:?}");
    assert!(1.0 < instance.low && instance.high < 1.006, "{instance:?}");
    assert_eq!(c.slowest_instance_s, Some(1.106));
    assert_eq!(c.verdict.kind(), Kind::ServerBound, "{:?}", c.verdict);
    assert_eq!(c.user_bytes_per_connection, None, "its connections are closed");
    assert_eq!(c.then.as_deref(), Some("8.94 s"));
    assert_eq!(cell(&s, "epoll", burst).then, None);
    assert_eq!(cell(&s, "epoll", burst).instance_s.map(|e| e.mean > 1.0), Some(true));
    // The null server is no faster, but a burst is not judged by that.
    rounds.iter_mut().for_each(|r| r.window_ns = 20_000_000_000);
    let s = judge(&asked, &rounds);
    let verdict = &cell(&s, "epoll", burst).verdict;
    assert_eq!((verdict.kind(), verdict.void.len()), (Kind::Idle, 0));
    assert!(verdict.because().ends_with("; the time was spent waiting, connecting included"));
}

#[test]
fn a_burst_on_shared_cpus_is_cost_only() {
    let burst = on(2, Drive::Burst(Burst { instances: 2, requests: 10 }));
    let (asked, mut rounds) = race(&[burst]);
    rounds.iter_mut().for_each(|r| r.instances_ns = vec![900_000_000; 2]);
    let s = judge(&asked, &rounds);
    let c = cell(&s, "epoll", burst);
    assert_eq!((c.verdict.kind(), c.headroom), (Kind::CostOnly, None));
    assert!(c.instance_s.is_some() && c.verdict.voids(Figure::Rate), "shown, but void");
}

#[test]
fn memory_is_reported_per_connection() {
    let idle = LoadShape { idle: 990, ..LoadShape::closed(10, 1) };
    let (asked, mut rounds) = race(&[idle]);
    for r in &mut rounds {
        let round = i64::from(r.round);
        let server = r.server.as_mut().unwrap();
        server.user_growth_bytes = Some(500_000 + 1_000 * round);
        let source = KernelMemorySource::BothEnds;
        server.kernel_growth = Some(KernelGrowth { bytes: 7_000_000 - 1_000 * round, source });
    }
    let s = judge(&asked, &rounds);
    let c = cell(&s, "percore", idle);
    assert_eq!(c.user_bytes_per_connection, Some(503.0), "the median round, 1,000 connections");
    assert_eq!(c.kernel_bytes_per_connection, Some(6_997.0));
    assert_eq!(c.kernel_memory_source, Some(KernelMemorySource::BothEnds));
    // A figure that was not read is absent.
    for r in of(&mut rounds, "percore", idle) {
        r.server.as_mut().unwrap().kernel_growth = None;
    }
    assert_eq!(cell(&judge(&asked, &rounds), "percore", idle).kernel_bytes_per_connection, None);
}

#[test]
fn reports_omitted_loads_and_failed_bursts() {
    let drive = Drive::Burst(Burst { instances: 2, requests: 10 });
    let burst = LoadShape { drive, ..LOAD };
    let (mut asked, mut rounds) = race(&[burst]);
    asked.left_out = vec!["64 conn on 8 CPUs: there are 2 to use".into()];
    of(&mut rounds, "percore", burst).next().unwrap().outcome =
        Outcome::Failed { because: "percore was not through with the burst".into() };
    let s = judge(&asked, &rounds);
    assert!(s.doubts.iter().any(|d| d.contains("left out: 64 conn on 8 CPUs")), "{:?}", s.doubts);
    assert_eq!(cell(&s, "percore", burst).verdict.kind(), Kind::Failed);
    assert_eq!(cell(&s, "percore", burst).instance_s, None);
}
