//! Several kinds of operations: pushed messages are counted exactly, by kind, over threads and
//! processes. Surplus messages are errors.

mod dialect;

use self::dialect::{Deliveries, Times, lines, owed, took};
use crate::common::{Called, Server, answer_lines, assert_undisturbed, plan};
use hdrhistogram::Histogram;
use regatta_load::{
    Arrivals, Burst, Drive, LoadProcessConfig, Plan, Tally, Until, WarmUp, run_dialect,
    run_in_processes,
};
use regatta_record::OperationCounted;
use regatta_testkit::child::example;
use std::{
    num::NonZeroU32,
    sync::{Arc, Mutex, atomic::AtomicBool},
    thread,
    time::{Duration, Instant},
};

/// A server, and the numbers of the requests that it received.
struct Recorded {
    server: Server,
    numbers: Arc<Mutex<Vec<u32>>>,
}

/// A correct server.
fn serve() -> Recorded {
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let seen = numbers.clone();
    let server = Server::lines(move |_, line| {
        seen.lock().unwrap().push(number(line));
        Some(lines(line).concat())
    });
    Recorded { server, numbers }
}

fn number(request: &str) -> u32 {
    request.split_whitespace().nth(1).unwrap().parse().unwrap()
}

impl Recorded {
    /// Stops the server, and returns all received requests.
    fn numbers(mut self) -> Vec<u32> {
        self.server.die();
        let mut numbers = std::mem::take(&mut *self.numbers.lock().unwrap());
        numbers.sort_unstable();
        numbers
    }
}

/// Runs a plan in this process.
fn run(plan: &Plan, times: Times) -> Tally {
    let (began, dialect) = (Instant::now(), Deliveries::new(times));
    let never = AtomicBool::new(false);
    let tally = run_dialect(&dialect, plan, &mut Called::default(), &mut |_| {}, &never).unwrap();
    assert!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
    tally
}

/// Runs a plan in several processes, with [`Times::Made`].
fn run_apart(plan: &Plan, processes: usize) -> Tally {
    let processes = LoadProcessConfig {
        program: example("load_test_helper"),
        arguments: vec!["load-process-of-deliveries".into()],
        least: processes,
    };
    let never = AtomicBool::new(false);
    run_in_processes(plan, &processes, &mut Called::default(), &mut |_| {}, &never).unwrap()
}

fn by_name<'t>(tally: &'t Tally, name: &str) -> &'t OperationCounted {
    tally.operations.iter().find(|counted| counted.operation.name == name).unwrap()
}

/// The expected histograms for these requests: deliveries, and results.
fn expected(numbers: &[u32]) -> [Histogram<u64>; 2] {
    let nothing = || Histogram::new_with_bounds(1, 240_000_000_000, 3).unwrap();
    let [mut deliveries, mut results] = [nothing(), nothing()];
    for &number in numbers {
        (0..owed(number)).for_each(|nth| deliveries.record(took(number, nth)).unwrap());
        results.record(took(number, owed(number))).unwrap();
    }
    [deliveries, results]
}

/// Checks counts and histograms against the requests, if all operations came inside the window.
fn assert_exact(tally: &Tally, numbers: &[u32]) {
    let names: Vec<&str> = tally.operations.iter().map(|one| &*one.operation.name).collect();
    assert_eq!(names, ["deliveries", "results"]);
    for (counted, expected) in tally.operations.iter().zip(expected(numbers)) {
        let name = &counted.operation.name;
        assert_eq!((counted.count, counted.whole_run), (expected.len(), expected.len()), "{name}");
        assert!(counted.histogram == expected, "the latencies of {name} differ");
    }
}

#[test]
fn each_kind_has_its_own_count_and_latencies_with_any_number_of_threads() {
    for (threads, connections, pipeline) in [(1, 1, 1), (1, 5, 16), (2, 7, 3), (4, 9, 64)] {
        let recorded = serve();
        let until = Until::Requests(2_000);
        let plan = Plan { threads, connections, pipeline, until, ..plan(recorded.server.address) };
        let tally = run(&plan, Times::Made);
        assert_undisturbed(&tally);
        assert_eq!((tally.requests, tally.threads), (2_000, threads));
        let numbers = recorded.numbers();
        assert_eq!(numbers.len(), 2_000);
        assert_exact(&tally, &numbers);
    }
}

#[test]
fn one_and_three_processes_merge_into_the_same_buckets() {
    let asked = |how: &dyn Fn(&Plan) -> Tally| {
        let recorded = serve();
        let drive = Drive::Burst(Burst { instances: 6, requests: 40 });
        let of_server = plan(recorded.server.address);
        let until = Until::Done;
        let tally = how(&Plan { connections: 60, pipeline: 3, drive, until, ..of_server });
        assert_undisturbed(&tally);
        assert_eq!(tally.requests, 2_400);
        let numbers = recorded.numbers();
        assert_exact(&tally, &numbers);
        (numbers, tally.processes, tally.counts.operations)
    };
    let one = asked(&|plan| run(plan, Times::Made));
    let threads = asked(&|plan| run(&Plan { threads: 3, ..plan.clone() }, Times::Made));
    let three = asked(&|plan| run_apart(plan, 3));
    assert_eq!((one.1, three.1), (1, 3));
    assert!(one.0 == threads.0 && one.0 == three.0, "the requests differ");
    assert!(one.2 == threads.2 && one.2 == three.2, "the counts differ");
}

#[test]
fn operations_outside_the_window_count_only_in_the_whole_run() {
    for processes in [1, 2] {
        let recorded = serve();
        let warm_up = WarmUp::Fixed(Duration::from_millis(100));
        let plan = Plan { connections: 4, warm_up, ..plan(recorded.server.address) };
        let tally = match processes {
            1 => run(&plan, Times::Made),
            _ => run_apart(&plan, processes),
        };
        assert_undisturbed(&tally);
        let whole_run = expected(&recorded.numbers());
        for (counted, whole_run) in tally.operations.iter().zip(&whole_run) {
            assert_eq!(counted.whole_run, whole_run.len());
            let caused_inside = counted.histogram.len();
            assert!(0 < caused_inside && caused_inside < counted.whole_run);
            assert!(0 < counted.count && counted.count < counted.whole_run);
        }
        // A result precedes each reply, and most were received in the same read.
        let (results, requests) = (by_name(&tally, "results").count, tally.requests);
        assert!(results.abs_diff(requests) <= 4, "{results} results and {requests} replies");
    }
}

/// The server sends all operations of a request with one write, so they have the latency of the reply.
/// In a closed loop it counts from the write.
#[test]
fn in_closed_loop_latency_counts_from_the_write() {
    let server = Server::lines(|nth, line| {
        if nth == 10 {
            thread::sleep(Duration::from_millis(60));
        }
        Some(lines(line).concat())
    });
    let tally = run(&plan(server.address), Times::Real);
    assert_undisturbed(&tally);
    let results = by_name(&tally, "results");
    assert_eq!(results.count, tally.requests);
    assert!(results.histogram == tally.histogram);
    assert!(results.histogram.max() >= 60_000_000);
}

/// In an open loop latency counts from the intended send, so a stall of the server delays all deliveries
/// of requests that are due meanwhile.
#[test]
fn in_open_loop_latency_counts_from_the_intended_send() {
    let server = Server::lines(|nth, line| {
        if nth == 20 {
            thread::sleep(Duration::from_millis(200));
        }
        Some(lines(line).concat())
    });
    let rate = NonZeroU32::new(250).unwrap();
    let drive = Drive::Open { rate, arrivals: Arrivals::Constant };
    let until = Until::Elapsed(Duration::from_millis(800));
    let plan = Plan { drive, until, ..plan(server.address) };
    let tally = run(&plan, Times::Real);
    assert_undisturbed(&tally);
    let open = tally.open_loop.as_ref().unwrap();
    assert_eq!((open.due, open.unanswered()), (200, 0));
    let results = by_name(&tally, "results");
    assert_eq!(results.histogram.len(), 200, "all due requests, whenever their results came");
    assert!(results.histogram == tally.histogram);
    let deliveries = &by_name(&tally, "deliveries").histogram;
    // 50 requests were due during the stall; the second half waited for less than 100 ms.
    let long = deliveries.count_between(80_000_000, u64::MAX);
    assert!(long > 30, "{long} deliveries took more than 80 ms");
}

#[test]
fn a_surplus_delivery_is_an_error_and_lowers_no_cost() {
    // Each delivery comes twice. That costs little, and would halve the cost per delivery if it counted.
    let doubles = |line: &str| -> String {
        let twice = |line: String| if line.starts_with("delivery") { line.repeat(2) } else { line };
        lines(line).into_iter().map(twice).collect()
    };
    let server = Server::lines(move |_, line| Some(doubles(line)));
    let strict = Plan { connections: 3, until: Until::Requests(300), ..plan(server.address) };
    let tally = run(&strict, Times::Made);
    let wrong = tally.first_wrong.as_ref().expect("a wrong reply");
    assert!(wrong.received.starts_with("delivery"), "{wrong:?}");
    assert!(tally.errors.wrong_reply > 0);

    // If errors are tolerated, each surplus delivery is an error, and is not counted.
    let server = Server::lines(move |_, line| Some(doubles(line)));
    let lenient = Plan { tolerates: Some(1.0), ..strict };
    let tally = run(&Plan { target: server.address, ..lenient }, Times::Made);
    let (counted, wrong) = (by_name(&tally, "deliveries").whole_run, tally.errors.wrong_reply);
    assert!(wrong > 10, "{wrong} wrong replies");
    // Each connection gets one correct delivery and one surplus one, and is then lost.
    assert_eq!(counted, wrong);
}

#[test]
fn a_delivery_after_the_last_reply_is_an_error() {
    let server = Server::start(|stream, requests| {
        answer_lines(stream, requests, |nth, line| {
            let late = if nth == 99 { "delivery 0001.0 00000000000000000000\n" } else { "" };
            Some(lines(line).concat() + late)
        });
    });
    let until = Until::Requests(100);
    let tally = run(&Plan { until, ..plan(server.address) }, Times::Made);
    let wrong = tally.first_wrong.clone().expect("a wrong reply");
    assert_eq!(wrong.expected, "nothing more");
    assert!(wrong.received.starts_with("delivery 0001.0"), "{wrong:?}");
}
