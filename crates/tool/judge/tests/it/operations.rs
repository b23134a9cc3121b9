//! Operations of several kinds, on simulated races: costs per operation of the requested kind, and
//! the figures of each kind.

use crate::simulated::{LOAD, QUIET, asked, open_loop, rounds, truth};
use hdrhistogram::Histogram;
use regatta_judge::{Side, diff, judge};
use regatta_record::{
    Arrivals, Asked, Cell, CpuSets, Curve, Drive, Figure, Kind, LoadShape, Operation, Over,
    Percentile, RoleUsage, Round, RoundOperation, encode_histogram,
};
use std::num::NonZeroU32;

const DELIVERIES: Operation = Operation::new("deliveries", "delivery", "deliveries");
const NAMES: [&str; 3] = ["epoll", "epoll-twin", "hub"];
const PASSES: u32 = 7;
const LOADS: [LoadShape; 1] = [LOAD];

/// A race in which each request of each contender causes `each` deliveries. They take `ms`
/// milliseconds in the first pass and one more in each further pass; costs are per delivery.
fn race(each: u64, ms: u64) -> (Asked, Vec<Round>) {
    let field = [5_000.0, 5_000.0, 10_000.0];
    let field = [0, 1, 2].map(|i| truth(NAMES[i], field[i]));
    let mut rounds = rounds(&field, &LOADS, PASSES, QUIET, 3);
    for round in &mut rounds {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 240_000_000_000, 3).unwrap();
        let count = round.requests * each;
        histogram.record_n((ms + u64::from(round.round)) * 1_000_000, count).unwrap();
        round.operations = vec![RoundOperation {
            operation: DELIVERIES,
            count,
            whole_run: count + 10,
            histogram: encode_histogram(&histogram),
        }];
    }
    (Asked { cost_per: DELIVERIES, ..asked(&NAMES, PASSES, &LOADS) }, rounds)
}

fn hub(asked: &Asked, rounds: &[Round]) -> Cell {
    judge(asked, rounds).cells.into_iter().find(|cell| cell.contender == "hub").unwrap()
}

/// Whether two figures are equal up to rounding.
fn same(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

#[test]
fn every_cost_is_per_operation_of_the_requested_kind() {
    let (per_delivery, mut rounds) = race(50, 3);
    for round in rounds.iter_mut().filter(|round| round.contender == "hub") {
        let role = |name: &str| RoleUsage {
            name: name.into(),
            count: 1,
            cpus: vec![0],
            used: round.server.clone(),
        };
        round.roles = vec![role("server"), role("app")];
    }
    let per_request = Asked { cost_per: Operation::REQUESTS, ..per_delivery.clone() };
    let (deliveries, requests) = (hub(&per_delivery, &rounds), hub(&per_request, &rounds));
    let costs = |cell: &Cell| {
        [
            cell.cost_ns_per_request.unwrap().mean,
            cell.load_cpu_ns_per_request.unwrap().mean,
            cell.switches_per_request.unwrap(),
            cell.roles[1].cost_ns_per_request.unwrap().mean,
        ]
    };
    assert!((costs(&requests)[0] / 10_000.0 - 1.0).abs() < 0.1, "{:?}", costs(&requests));
    for (delivery, request) in costs(&deliveries).into_iter().zip(costs(&requests)) {
        assert!(same(delivery * 50.0, request), "{delivery} per delivery, {request} per request");
    }
    // Costs are compared; rates remain rates of requests.
    let ratio = |cell: &Cell| cell.ratio_to_baseline.unwrap().mean;
    assert!(same(ratio(&deliveries), ratio(&requests)) && ratio(&requests) > 1.9);
    assert_eq!(deliveries.rate_per_s, requests.rate_per_s);
    assert_eq!(
        (deliveries.requests, deliveries.latency_ns),
        (requests.requests, requests.latency_ns)
    );
    assert_eq!(deliveries.operations, requests.operations);
}

#[test]
fn each_kind_has_its_number_rate_and_latency() {
    let (asked, rounds) = race(50, 3);
    let cell = hub(&asked, &rounds);
    let [deliveries] = &cell.operations[..] else { panic!("{:?}", cell.operations) };
    assert_eq!((&deliveries.operation, deliveries.count), (&DELIVERIES, cell.requests * 50));
    assert!(same(deliveries.rate_per_s.unwrap().mean, 50.0 * cell.rate_per_s.unwrap().mean));
    // 3 to 9 ms.
    let ms = |ns: Option<u64>| ns.unwrap() / 1_000_000;
    assert_eq!((ms(deliveries.latency_ns.p50), ms(deliveries.latency_ns.p99)), (6, 9));
    let p50 = deliveries.latency_intervals.p50.unwrap();
    assert!(p50.low < 6e6 && 6e6 < p50.high, "{p50:?}");

    let cpus = CpuSets { server: vec![0], load: vec![0], spare: vec![], ..CpuSets::default() };
    let shared = LoadShape { cores: Some(1), ..LOAD };
    let rounds: Vec<Round> = rounds.into_iter().map(|r| Round { load: shared, ..r }).collect();
    let cell = hub(&Asked { cpus, loads: vec![shared], ..asked }, &rounds);
    assert!(cell.shared_cpus && cell.cost_ns_per_request.is_some());
    let [deliveries] = &cell.operations[..] else { panic!("{:?}", cell.operations) };
    assert_eq!((deliveries.rate_per_s, deliveries.latency_ns.p50), (None, None));
}

#[test]
fn a_round_without_operations_of_the_cost_kind_fails() {
    let (asked, mut rounds) = race(50, 3);
    let round = rounds.iter_mut().find(|round| round.contender == "hub").unwrap();
    round.operations[0].count = 0;
    let cell = hub(&asked, &rounds);
    assert_eq!((cell.verdict.kind(), cell.cost_ns_per_request), (Kind::Failed, None));
    let because = &cell.verdict.because();
    assert!(because.contains("no delivery inside the window, and costs are"), "{because}");
    let per_request = Asked { cost_per: Operation::REQUESTS, ..asked };
    assert!(hub(&per_request, &rounds).cost_ns_per_request.is_some());
}

/// A hub that closes connections of members, and lets them wait for their first reply, has fewer deliveries to make.
#[test]
fn members_that_were_away_void_rate_and_latency() {
    let (asked, rounds) = race(50, 3);
    let with = |absent: fn(&Round) -> u64| {
        let mut rounds = rounds.clone();
        for round in rounds.iter_mut().filter(|round| round.contender == "hub") {
            round.absent = absent(round);
        }
        hub(&asked, &rounds).verdict
    };
    let few = with(|round| round.operations[0].whole_run / 1_100);
    assert!(!few.is(Kind::MembersAway) && !few.voids(Figure::Rate), "{few:?}");
    let many = with(|round| if round.round < 2 { round.operations[0].whole_run } else { 0 });
    assert_eq!(many.kind(), Kind::MembersAway);
    assert!(many.voids(Figure::Rate) && many.voids(Figure::Latency) && !many.voids(Figure::Cost));
    let expected = "in 2 of 7 starts 50% of the deliveries were owed to nobody";
    assert!(many.because().starts_with(expected), "{}", many.because());
}

/// Unsolicited deliveries end a round as wrong replies: there is no cost, however many were
/// counted.
#[test]
fn surplus_deliveries_disqualify_and_do_not_lower_a_cost() {
    let (asked, mut rounds) = race(50, 3);
    let round = rounds.iter_mut().find(|round| round.contender == "hub").unwrap();
    round.operations[0].count *= 10;
    round.errors.wrong_reply = 1;
    let cell = hub(&asked, &rounds);
    assert_eq!((cell.verdict.kind(), cell.cost_ns_per_request), (Kind::Disqualified, None));
    assert!(cell.verdict.voids(Figure::Cost));
}

#[test]
fn costs_per_different_operations_are_not_compared() {
    let (per_delivery, rounds) = race(50, 3);
    let per_request = Asked { cost_per: Operation::REQUESTS, ..per_delivery.clone() };
    let side = |name, asked| Side { name, asked, rounds: &rounds };
    let refused = diff(side("old", &per_request), side("new", &per_delivery), None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "costs of old are per request, and those of new per delivery: they cannot be compared"
    );
    let gate = diff(side("old", &per_delivery), side("new", &per_delivery), None).unwrap();
    assert!(gate.method.starts_with("server CPU per delivery over"), "{}", gate.method);
}

/// The line over rates is CPU over requests per second, whatever kind costs are per.
#[test]
fn the_line_over_rates_is_per_request() {
    let loads = [10_000, 20_000, 40_000].map(|rate| {
        let rate = NonZeroU32::new(rate).unwrap();
        LoadShape { drive: Drive::Open { rate, arrivals: Arrivals::Poisson }, ..LOAD }
    });
    let (_, mut rounds) = race(50, 3);
    let mut all = Vec::new();
    for load in loads {
        let Drive::Open { rate, .. } = load.drive else { panic!("{load}") };
        let rate = f64::from(rate.get());
        for round in &mut rounds {
            let requests = (rate * round.window_ns as f64 / 1e9) as u64;
            round.server.as_mut().unwrap().cpu_ns = requests * 5_000;
            round.operations[0].count = requests * 50;
            (round.load, round.requests) = (load, requests);
        }
        all.extend(rounds.iter().cloned());
    }
    let curve = |cost_per| -> Curve {
        let asked = Asked { cost_per, ..asked(&NAMES, PASSES, &loads) };
        judge(&asked, &all).curves.into_iter().find(|curve| curve.contender == "hub").unwrap()
    };
    let (requests, deliveries) = (curve(Operation::REQUESTS), curve(DELIVERIES));
    let (Over::Rate { points: a, .. }, Over::Rate { points: b, .. }) =
        (&requests.over, &deliveries.over)
    else {
        panic!("{requests:?}")
    };
    assert_eq!(a, b);
    assert!(a.iter().all(|point| point.cpu_ns_per_s.is_some()), "{a:?}");
}

const LAST: Operation = Operation::new(
    "last_deliveries",
    "delivery to the last member",
    "deliveries to the last member",
);

/// A server that replies at once and delivers later is judged by its deliveries: the percentiles of
/// a cell are theirs, and those of the replies are listed separately.
#[test]
fn the_latency_of_a_cell_is_of_the_requested_kind() {
    let (asked, mut rounds) = race(50, 3);
    let asked = Asked { latency_of: LAST, ..asked };
    for round in &mut rounds {
        let mut last = round.operations[0].clone();
        last.operation = LAST;
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 240_000_000_000, 3).unwrap();
        let ms = if round.contender == "hub" { 200 } else { 20 };
        histogram.record_n(ms * 1_000_000, round.requests).unwrap();
        (last.count, last.whole_run) = (round.requests, round.requests);
        last.histogram = encode_histogram(&histogram);
        round.operations.push(last);
    }
    let by_replies = hub(&Asked { latency_of: Operation::REQUESTS, ..asked.clone() }, &rounds);
    let cell = hub(&asked, &rounds);
    let p99 = |cell: &Cell| cell.percentile(Percentile::P99).unwrap().ns;
    assert!((p99(&cell) / 200e6 - 1.0).abs() < 0.01, "{}", p99(&cell));
    assert!(p99(&by_replies) < 20e6, "{}", p99(&by_replies));
    assert_eq!(by_replies.operations.len(), 2);
    let [replies, deliveries, last] = &cell.operations[..] else { panic!("{:?}", cell.operations) };
    assert_eq!(replies.operation, Operation::REQUESTS);
    assert_eq!((replies.count, &replies.rate_per_s), (cell.requests, &cell.rate_per_s));
    assert_eq!(replies.latency_ns, by_replies.latency_ns);
    assert_eq!(replies.latency_intervals, by_replies.latency_intervals);
    assert_eq!((&deliveries.operation, &last.operation), (&DELIVERIES, &LAST));
    assert_eq!(last.latency_ns, cell.latency_ns);
}

/// A request without a reply has no delivery to a last member either: it counts as slower than all
/// others.
#[test]
fn unsent_requests_count_as_the_slowest_deliveries() {
    let load = LoadShape {
        drive: Drive::Open { rate: NonZeroU32::new(1_000).unwrap(), arrivals: Arrivals::Poisson },
        ..LOAD
    };
    let (asked, mut rounds) = race(50, 3);
    let asked = Asked { latency_of: DELIVERIES, loads: vec![load], ..asked };
    for round in &mut rounds {
        round.load = load;
    }
    let held = hub(&asked, &rounds);
    for round in rounds.iter_mut().filter(|round| round.contender == "hub") {
        let (requests, operations) = (open_loop::quiet(1_000, 1), round.operations.clone());
        open_loop::set(round, &requests, 100 * round.requests);
        round.operations = operations;
    }
    let overloaded = hub(&asked, &rounds);
    assert!(held.percentile(Percentile::P50).is_some());
    assert_eq!(overloaded.percentile(Percentile::P50), None, "most were never sent");
}

/// Each answered stream has its first message, so streams without an answer count as slower than all of
/// them. The longest gaps are those of right streams.
#[test]
fn unsent_requests_count_as_the_slowest_first_messages() {
    let load = LoadShape {
        drive: Drive::Open { rate: NonZeroU32::new(1_000).unwrap(), arrivals: Arrivals::Poisson },
        ..LOAD
    };
    for (kind, is_known) in [(Operation::FIRST_MESSAGES, false), (DELIVERIES, true)] {
        let (asked, mut rounds) = race(1, 3);
        let asked = Asked { loads: vec![load], cost_per: Operation::REQUESTS, ..asked };
        for round in &mut rounds {
            round.load = load;
            let mut operations = round.operations.clone();
            operations[0].operation = kind.clone();
            open_loop::set(round, &open_loop::quiet(1_000, 1), 100 * round.requests);
            round.operations = operations;
        }
        let cell = hub(&asked, &rounds);
        let latency = &cell.operations[0].latency_ns;
        assert_eq!(latency.p50.is_some(), is_known, "{kind:?} {latency:?}");
    }
}
