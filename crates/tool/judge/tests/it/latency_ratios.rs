//! Latency ratios on simulated races with known truth: tails that differ and tails that do not, on
//! a machine that changes its speed, and cells that must not be compared.

use crate::simulated::{
    LOAD, QUIET, asked, normal, open,
    open_loop::{self, Parts},
    rounds, truth,
};
use hdrhistogram::Histogram;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_judge::judge;
use regatta_record::{
    Asked, Cell, Drive, Estimate, LatencyRatio, LoadShape, Operation, Percentile, Round,
    RoundOperation, encode_histogram,
};
use std::num::NonZeroU32;

const NAMES: [&str; 2] = ["epoll", "hub"];
const PASSES: u32 = 7;
/// Standard deviation of the logarithm of all latencies of a round.
const NOISE: f64 = 0.03;

const BOUNDED: LoadShape =
    LoadShape { drive: Drive::Bounded { in_flight: NonZeroU32::new(4).unwrap() }, ..LOAD };

/// Latencies of a round in nanoseconds, `samples` of them: half of them below 1.5 ms × `scale`, and
/// the longest tenth multiplied by `tail`.
fn latencies(samples: u64, scale: f64, tail: f64) -> Histogram<u64> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
    for nth in 0..samples {
        let part = nth as f64 / samples as f64;
        let longer = if part >= 0.9 { tail } else { 1.0 };
        histogram.record((1e6 * (1.0 + part) * scale * longer) as u64).unwrap();
    }
    histogram
}

/// The length of a contender's tail, and the slowness of the machine in a pass.
struct Truth<'a> {
    tail: &'a dyn Fn(&Round) -> f64,
    machine: &'a dyn Fn(u32) -> f64,
    seed: u64,
}

/// A race in which everything is equal except what `truth_is` defines.
fn race(loads: &[LoadShape], passes: u32, truth_is: Truth<'_>) -> (Asked, Vec<Round>) {
    let contenders = NAMES.map(|name| truth(name, 5_000.0));
    let mut rounds = rounds(&contenders, loads, passes, QUIET, truth_is.seed);
    let mut random = SmallRng::seed_from_u64(truth_is.seed);
    for round in &mut rounds {
        let own = (NOISE * normal(&mut random)).exp();
        let scale = own * (truth_is.machine)(round.round);
        record(round, scale, (truth_is.tail)(round));
    }
    (asked(&NAMES, passes, loads), rounds)
}

/// Gives a round such latencies, and with a bound on the requests in flight the rate that follows from them (Little's
/// law).
fn record(round: &mut Round, scale: f64, tail: f64) {
    let mut samples = 2_000;
    if let Drive::Bounded { in_flight } = round.load.drive {
        let window = round.window_ns as f64 / latencies(samples, scale, tail).mean();
        samples = (f64::from(in_flight.get()) * window) as u64;
        round.requests = samples;
    }
    round.histogram = encode_histogram(&latencies(samples, scale, tail));
}

fn steady(_: u32) -> f64 {
    1.0
}

fn alike(_: &Round) -> f64 {
    1.0
}

/// The cell of `hub` at `load`.
fn hub(asked: &Asked, rounds: &[Round], load: LoadShape) -> Cell {
    let mut cells = judge(asked, rounds).cells.into_iter();
    cells.find(|cell| cell.contender == "hub" && cell.load == load).unwrap()
}

fn to_baseline(asked: &Asked, rounds: &[Round]) -> LatencyRatio {
    hub(asked, rounds, asked.loads[0]).latency_to_baseline.unwrap()
}

fn holds(e: Estimate, truth: f64) -> bool {
    e.low <= truth && truth <= e.high
}

/// Width of the interval, as a factor.
fn width(e: Estimate) -> f64 {
    e.high / e.low
}

#[test]
fn finds_a_longer_tail_although_the_medians_are_equal() {
    let tail = |round: &Round| if round.contender == "hub" { 1.2 } else { 1.0 };
    let machine = |pass| [1.0, 1.3, 0.8][pass as usize % 3];
    let (asked, rounds) =
        race(&[BOUNDED], PASSES, Truth { tail: &tail, machine: &machine, seed: 1 });
    let summary = judge(&asked, &rounds);
    let cell = |name: &str| summary.cells.iter().find(|cell| cell.contender == name).unwrap();
    let median = |name: &str| cell(name).percentile(Percentile::P50).unwrap().ns;
    assert!((median("hub") / median("epoll") - 1.0).abs() < 0.05);
    let ratio = cell("hub").latency_to_baseline.clone().unwrap();
    for e in [ratio.p95.unwrap(), ratio.p99.unwrap()] {
        assert!(holds(e, 1.2) && e.low > 1.1 && e.high < 1.3, "{e:?}");
    }
    assert_eq!(ratio.missing, None);
    assert_eq!(cell("epoll").latency_to_baseline, None, "the baseline has no ratio");
    assert_eq!(cell("hub").latency_to_all_reading, None);
}

#[test]
fn the_speed_of_the_machine_cancels_within_each_round() {
    let p95 = |machine: &dyn Fn(u32) -> f64| {
        let (asked, rounds) = race(&[BOUNDED], PASSES, Truth { tail: &alike, machine, seed: 2 });
        let cell = hub(&asked, &rounds, BOUNDED);
        let ratio = cell.latency_to_baseline.unwrap().p95.unwrap();
        (width(ratio), width(cell.latency_intervals.p95.unwrap()))
    };
    let (quiet, by_itself) = p95(&steady);
    let (jumping, jumping_by_itself) = p95(&|pass| if pass % 2 == 0 { 1.0 } else { 1.4 });
    assert!(jumping_by_itself > 1.3 && by_itself < 1.1, "the machine changed its speed");
    assert!((jumping - 1.0) / (quiet - 1.0) < 1.05, "{jumping} and {quiet}");
    assert!(quiet < 1.15, "{quiet}");
}

#[test]
fn one_terrible_round_does_not_decide() {
    // Student's t up to 20 rounds, the bootstrap beyond.
    for passes in [PASSES, 25] {
        for victim in NAMES {
            let tail = |round: &Round| {
                if round.contender == victim && round.round == 3 { 20.0 } else { 1.0 }
            };
            let (asked, rounds) =
                race(&[BOUNDED], passes, Truth { tail: &tail, machine: &steady, seed: 3 });
            let ratio = to_baseline(&asked, &rounds);
            for e in [ratio.p95.unwrap(), ratio.p99.unwrap()] {
                assert!(holds(e, 1.0), "{victim}, {passes} rounds: {e:?}");
                assert!(width(e) > 1.2, "the interval shows that something was odd: {e:?}");
            }
        }
    }
}

#[test]
fn intervals_of_identical_copies_contain_1_at_the_nominal_rate() {
    let all = 40;
    let mut seeds = SmallRng::seed_from_u64(4);
    let ratios: Vec<Estimate> = (0..all)
        .map(|_| {
            let seed = seeds.random();
            let (asked, rounds) =
                race(&[BOUNDED], PASSES, Truth { tail: &alike, machine: &steady, seed });
            to_baseline(&asked, &rounds).p95.unwrap()
        })
        .collect();
    let right = ratios.iter().filter(|e| holds(**e, 1.0)).count();
    assert!(right >= 34, "{right} of {all}, at 95%");
    assert!(ratios.iter().all(|e| width(*e) < 1.25), "{ratios:?}");
}

#[test]
fn an_open_loop_counts_from_the_intended_send() {
    let load = LoadShape { drive: open(1_000), ..LOAD };
    let (asked, mut rounds) =
        race(&[load], PASSES, Truth { tail: &alike, machine: &steady, seed: 5 });
    for (seed, round) in rounds.iter_mut().enumerate() {
        let mut parts = open_loop::quiet(2_000, seed as u64);
        if round.contender == "hub" {
            // Its connections are busy for a while: the service of a request is not longer.
            parts.iter_mut().step_by(15).for_each(|part| part.wait = 1_000_000);
        }
        open_loop::set(round, &parts, 0);
    }
    let ratio = to_baseline(&asked, &rounds);
    assert!(ratio.p95.unwrap().low > 5.0 && ratio.missing.is_none(), "{ratio:?}");
}

const LAST: Operation = Operation::new(
    "last_deliveries",
    "delivery to the last member",
    "deliveries to the last member",
);

#[test]
fn the_ratio_is_of_the_latency_of_the_cell() {
    let (asked, mut rounds) =
        race(&[BOUNDED], PASSES, Truth { tail: &alike, machine: &steady, seed: 6 });
    for round in &mut rounds {
        let tail = if round.contender == "hub" { 3.0 } else { 1.0 };
        let count = round.requests;
        let histogram = encode_histogram(&latencies(2_000, 10.0, tail));
        let one = RoundOperation { operation: LAST, count, whole_run: count, histogram };
        round.operations = vec![one];
    }
    let by_replies = to_baseline(&asked, &rounds).p95.unwrap();
    assert!(by_replies.high < 1.1, "{by_replies:?}");
    let deliveries = to_baseline(&Asked { latency_of: LAST, ..asked.clone() }, &rounds);
    assert!((deliveries.p95.unwrap().mean / 3.0 - 1.0).abs() < 0.01, "{deliveries:?}");

    // A contender that was not counted in one round keeps this round.
    let hub = |round: &&mut Round| round.contender == "hub" && round.round == 2;
    rounds.iter_mut().find(hub).unwrap().operations.clear();
    let missing = to_baseline(&Asked { latency_of: LAST, ..asked }, &rounds);
    assert!(!missing.is_there(), "{missing:?}");
    assert!(missing.missing.unwrap().starts_with("1 of 7 starts"));
}

/// The reason given instead of both ratios.
fn refused(asked: &Asked, rounds: &[Round]) -> String {
    let ratio = to_baseline(asked, rounds);
    assert!(!ratio.is_there(), "{ratio:?}");
    ratio.missing.unwrap()
}

#[test]
fn closed_loops_and_cells_on_shared_cpus_have_no_ratio() {
    let same = |load| race(&[load], PASSES, Truth { tail: &alike, machine: &steady, seed: 7 });
    let (asked, rounds) = same(LOAD);
    let why = refused(&asked, &rounds);
    assert!(why.starts_with("latencies are compared only at a `rate`"), "{why}");
    let (mut asked, rounds) = same(LoadShape { cores: Some(1), drive: open(1_000), ..LOAD });
    asked.cpus.load = asked.cpus.server.clone();
    let why = refused(&asked, &rounds);
    assert!(why.starts_with("server and load share CPUs"), "{why}");
}

#[test]
fn cells_that_were_not_run_are_not_compared() {
    let loads = [BOUNDED, LoadShape { stalled: 1, ..BOUNDED }];
    for without in NAMES {
        let (asked, mut rounds) =
            race(&loads, PASSES, Truth { tail: &alike, machine: &steady, seed: 9 });
        rounds.retain(|round| round.contender != without);
        let cell = hub(&asked, &rounds, loads[1]);
        assert_eq!(cell.rounds > 0, without != "hub");
        assert!(cell.latency_to_baseline.is_none(), "{without}: {:?}", cell.latency_to_baseline);
        // A contender is compared with itself whether or not there is a baseline.
        assert_eq!(cell.latency_to_all_reading.is_some(), without != "hub");
    }
    let (asked, mut rounds) =
        race(&loads, PASSES, Truth { tail: &alike, machine: &steady, seed: 9 });
    rounds.retain(|round| round.load.stalled > 0);
    assert!(hub(&asked, &rounds, loads[1]).latency_to_all_reading.is_none());
}

#[test]
fn void_and_overloaded_latencies_have_no_ratio() {
    let load = LoadShape { drive: open(1_000), ..LOAD };
    let (asked, mut rounds) =
        race(&[load], PASSES, Truth { tail: &alike, machine: &steady, seed: 8 });
    let mut set = |name: &str, change: fn(usize, &mut Parts), unsent: u64| {
        for (seed, round) in rounds.iter_mut().enumerate() {
            let mut parts = open_loop::quiet(2_000 - unsent, seed as u64);
            if round.contender == name {
                parts.iter_mut().enumerate().for_each(|(nth, part)| change(nth, part));
            }
            open_loop::set(round, &parts, if round.contender == name { unsent } else { 0 });
        }
        refused(&asked, &rounds)
    };
    let late = |nth: usize, part: &mut Parts| {
        if nth.is_multiple_of(20) {
            part.lag = 3_000_000;
        }
    };
    assert_eq!(set("hub", late, 0), "its latency is void; see the verdict");
    assert_eq!(set("epoll", late, 0), "the latency of epoll is void; see the verdict");
    let overload = |_: usize, part: &mut Parts| part.wait = 400_000_000;
    let why = set("hub", overload, 100);
    assert!(why.starts_with("its latency was measured under overload"), "{why}");
}

#[test]
fn too_few_latencies_in_one_round_remove_the_percentile() {
    let (asked, mut rounds) =
        race(&[BOUNDED], PASSES, Truth { tail: &alike, machine: &steady, seed: 9 });
    let cut = |rounds: &mut [Round], samples| {
        let is_it = |round: &&mut Round| round.contender == "epoll" && round.round == 4;
        let round = rounds.iter_mut().find(is_it).unwrap();
        round.histogram = encode_histogram(&latencies(samples, 1.0, 1.0));
    };
    cut(&mut rounds, 500);
    let ratio = to_baseline(&asked, &rounds);
    assert!(ratio.p95.is_some() && ratio.p99.is_none());
    let why = ratio.missing.unwrap();
    assert!(why.starts_with("p99: 1 of 7 starts have fewer than ten latencies"), "{why}");
    cut(&mut rounds, 150);
    let why = refused(&asked, &rounds);
    assert!(why.starts_with("1 of 7 starts have"), "both for one reason: {why}");
    // Requests without a reply took longer than all others: the round is not left out because of
    // them.
    cut(&mut rounds, 2_000);
    rounds.iter_mut().find(|round| round.contender == "hub").unwrap().errors.timeout = 300;
    let why = refused(&asked, &rounds);
    assert!(why.contains("requests without a reply"), "{why}");
}

#[test]
fn an_interval_needs_rounds_and_must_be_meaningful() {
    let same =
        |passes| race(&[BOUNDED], passes, Truth { tail: &alike, machine: &steady, seed: 10 });
    let (asked, rounds) = same(1);
    let why = refused(&asked, &rounds);
    assert!(why.starts_with("an interval needs 2 rounds"), "{why}");
    let (asked, mut rounds) = same(2);
    assert!(to_baseline(&asked, &rounds).p95.is_some());
    let odd = rounds.iter_mut().find(|round| round.contender == "hub").unwrap();
    record(odd, 2.0, 1.0);
    let why = refused(&asked, &rounds);
    assert!(why.starts_with("the interval extends beyond a tenth"), "{why}");
}

const READING: LoadShape = LoadShape { idle: 1, drive: open(1_000), ..LOAD };
const STALLED: LoadShape = LoadShape { stalled: 1, ..READING };

#[test]
fn a_load_with_stalled_connections_is_compared_with_the_load_without() {
    let tail = |round: &Round| match (round.contender.as_str(), round.load.stalled) {
        ("hub", 1) => 1.2,
        _ => 1.0,
    };
    let machine = |pass| if pass % 2 == 0 { 1.0 } else { 1.4 };
    let (asked, rounds) =
        race(&[READING, STALLED], PASSES, Truth { tail: &tail, machine: &machine, seed: 11 });
    let summary = judge(&asked, &rounds);
    let cell = |name: &str, load| {
        let is_it = |cell: &&Cell| cell.contender == name && cell.load == load;
        summary.cells.iter().find(is_it).unwrap()
    };
    let ratio = |name: &str| cell(name, STALLED).latency_to_all_reading.clone().unwrap();
    let (hub, epoll) = (ratio("hub").p99.unwrap(), ratio("epoll").p99.unwrap());
    assert!((hub.mean / 1.2 - 1.0).abs() < 0.05 && hub.low > 1.1 && hub.high < 1.3, "{hub:?}");
    assert!(holds(epoll, 1.0) && epoll.high < 1.1, "the baseline is compared too: {epoll:?}");
    assert_eq!(cell("hub", READING).latency_to_all_reading, None);
    assert!(cell("hub", STALLED).latency_to_baseline.as_ref().unwrap().p99.unwrap().low > 1.1);

    // Only passes in which both loads were run are paired.
    let mut fewer = rounds.clone();
    fewer.retain(|round| round.round < 5 || round.load == STALLED);
    let five = self::hub(&asked, &fewer, STALLED).latency_to_all_reading.unwrap();
    fewer.retain(|round| round.round < 5);
    assert_eq!(self::hub(&asked, &fewer, STALLED).latency_to_all_reading.unwrap(), five);

    // Without the other load there is no ratio.
    let alone = Asked { loads: vec![STALLED], ..asked };
    assert_eq!(self::hub(&alone, &rounds, STALLED).latency_to_all_reading, None);
}
