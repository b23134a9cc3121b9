//! The verdicts of method, rule 7, on simulated rounds: which side was the limit, what disturbed
//! the cell, and the remedy on the CPUs of the machine.

use crate::simulated::{
    LOAD, QUIET, asked, open, open_loop,
    open_loop::{Parts, quiet},
    rounds, truth,
};
use regatta_judge::judge;
use regatta_record::{
    Arrivals, Asked, Carried, Cell, CellFinding, Drive, Figure, Kind, Life, LoadShape, Machine,
    NetworkUse, Round, Summary, Verdict, WarmUpDone,
};
use std::num::NonZeroU32;

const NAMES: [&str; 3] = ["epoll", "epoll-twin", "null"];
const AT_RATE: LoadShape = LoadShape { drive: open(10_000), ..LOAD };
const WINDOW_NS: u64 = 2_000_000_000;

/// Seven rounds in which epoll uses 0.98 of a core, the load 0.7 of one.
fn race(load: LoadShape) -> Vec<Round> {
    let field = [truth("epoll", 5_000.0), truth("epoll-twin", 5_000.0), truth("null", 4_000.0)];
    rounds(&field, &[load], 7, QUIET, 7)
}

/// The same with neither side busy: half of each window asleep.
fn sleepy() -> Vec<Round> {
    let mut rounds = race(LOAD);
    rounds.iter_mut().for_each(|r| r.window_ns *= 2);
    rounds
}

fn machine(rounds: &mut [Round], machine: Machine) {
    rounds.iter_mut().for_each(|r| r.machine = Some(machine));
}

fn epoll(summary: &Summary) -> &Cell {
    summary.cells.iter().find(|c| c.contender == "epoll").unwrap()
}

fn judged(rounds: &[Round]) -> Cell {
    let loads: Vec<LoadShape> = vec![rounds[0].load];
    epoll(&judge(&asked(&NAMES, 7, &loads), rounds)).clone()
}

#[track_caller]
fn says(cell: &Cell, kind: Kind, words: &[&str]) {
    assert_eq!(cell.verdict.kind(), kind, "{}", cell.verdict.because());
    for word in words {
        assert!(cell.verdict.because().contains(word), "{word}: {}", cell.verdict.because());
    }
}

#[test]
fn a_load_that_lost_its_cpu_to_another_program_is_the_limit() {
    let mut rounds = sleepy();
    // It ran for half of the window and was runnable for the other half, in turns of 3 ms.
    rounds.iter_mut().for_each(|r| r.load_cpu_ns = r.window_ns / 2);
    let taken = |turns| Machine {
        load_run_delay_ns: Some(WINDOW_NS),
        load_turns: Some(turns),
        ..Machine::default()
    };
    machine(&mut rounds, taken(600));
    let cell = judged(&rounds);
    says(
        &cell,
        Kind::GeneratorBound,
        &[
            "another program took the load's CPU (49% of the window spent waiting)",
            "this machine has no other CPU for the load",
            "load 0.50",
        ],
    );
    assert!(cell.verdict.voids(Figure::Rate) && cell.verdict.voids(Figure::Latency));
    assert!(!cell.verdict.voids(Figure::Cost) && cell.cost_ns_per_request.is_some());
    assert!((cell.load_run_delay.unwrap() - 0.5).abs() < 1e-9);

    // Waking a CPU 60,000 times takes as long, and is no program's fault.
    machine(&mut rounds, taken(60_000));
    says(&judged(&rounds), Kind::Idle, &["server busy 0.49, load 0.50"]);
}

#[test]
fn a_polling_load_is_starved_if_it_had_no_more_cpu_to_poll() {
    let mut rounds = sleepy();
    // Two fifths of its CPU time were spent polling with nothing to do.
    for r in &mut rounds {
        (r.load_cpu_ns, r.load_spun_ns) = (r.window_ns / 2, r.window_ns / 5);
    }
    let waited = |load_run_delay_ns| Machine {
        load_run_delay_ns: Some(load_run_delay_ns),
        load_turns: Some(600),
        ..Machine::default()
    };
    machine(&mut rounds, waited(WINDOW_NS));
    let cell = judged(&rounds);
    says(&cell, Kind::GeneratorBound, &["another program took the load's CPU (49%", "load 0.30"]);
    assert!(cell.verdict.voids(Figure::Rate));
    // Asleep for a third of the window: it could have taken more.
    machine(&mut rounds, waited(WINDOW_NS / 3));
    let cell = judged(&rounds);
    says(&cell, Kind::Noisy, &["another program took the load's CPU", "Also idle"]);
    assert!(cell.verdict.is(Kind::Idle) && !cell.verdict.voids(Figure::Rate));
}

#[test]
fn load_processes_that_share_a_cpu_wait_for_each_other() {
    let mut rounds = sleepy();
    let of = |load_processes| Machine {
        load_run_delay_ns: Some(WINDOW_NS),
        load_turns: Some(600),
        load_processes,
        ..Machine::default()
    };
    machine(&mut rounds, of(None));
    assert!(judged(&rounds).verdict.is(Kind::Noisy));
    machine(&mut rounds, of(Some(3)));
    assert!(!judged(&rounds).verdict.is(Kind::Noisy));
}

#[test]
fn a_server_that_lost_its_cpu_to_another_program_is_noisy() {
    let mut rounds = sleepy();
    let taken = Machine { server_run_delay_ns: Some(WINDOW_NS), ..Machine::default() };
    machine(&mut rounds, taken);
    rounds.iter_mut().for_each(|r| r.server.as_mut().unwrap().voluntary_switches = 100);
    let cell = judged(&rounds);
    says(
        &cell,
        Kind::Noisy,
        &["another program took the server's CPU (50% of the window", "stop it"],
    );
    assert_eq!(cell.verdict.void, [Figure::Latency]);
    assert!(cell.band.is_some());

    // If there are more threads than CPUs, they wait for each other.
    rounds.iter_mut().for_each(|r| r.server.as_mut().unwrap().threads = 12);
    let cell = judged(&rounds);
    says(&cell, Kind::Idle, &[]);
    assert!((cell.server_run_delay.unwrap() - 0.5).abs() < 1e-9, "still reported");
}

/// Like `race`, with a server of seven threads on two CPUs; its busiest thread used the fraction
/// `busiest` of the CPU time.
fn on_two_cpus(load: LoadShape, busiest: Option<f64>) -> Vec<Round> {
    let mut rounds = race(load);
    for server in rounds.iter_mut().filter_map(|r| r.server.as_mut()) {
        (server.cpus, server.threads) = (2, 7);
        server.busiest_thread_ns = busiest.map(|share| (server.cpu_ns as f64 * share) as u64);
    }
    rounds
}

#[test]
fn a_server_with_one_busy_thread_is_server_bound_on_any_number_of_cpus() {
    says(&judged(&on_two_cpus(LOAD, None)), Kind::Idle, &["server busy 0.49 of 2 CPUs, load"]);
    says(&judged(&on_two_cpus(LOAD, Some(0.5))), Kind::Idle, &["server busy 0.49 of 2 CPUs, load"]);
    let cell = judged(&on_two_cpus(LOAD, Some(1.0)));
    says(
        &cell,
        Kind::ServerBound,
        &["server busy 0.49 of 2 CPUs, its busiest thread 0.98 of one", "that thread is the limit"],
    );
    assert!((cell.busiest_thread.unwrap() - 0.98).abs() < 0.01, "{:?}", cell.busiest_thread);
    assert!(
        cell.verdict.void.is_empty() && !cell.verdict.because().contains("would show the limit")
    );
}

#[test]
fn a_server_with_one_busy_thread_is_not_generator_bound() {
    let busy_load = |busiest| {
        let mut rounds = on_two_cpus(LOAD, busiest);
        rounds.iter_mut().for_each(|r| r.load_cpu_ns = r.window_ns);
        judged(&rounds)
    };
    says(&busy_load(Some(0.5)), Kind::GeneratorBound, &[]);
    let cell = busy_load(Some(1.0));
    says(&cell, Kind::CoBound, &["its busiest thread 0.98 of one", "the rate is a lower bound"]);
    assert!(!cell.verdict.voids(Figure::Rate));
}

#[test]
fn more_cpus_are_not_advised_for_an_overloaded_server_with_one_busy_thread() {
    let overloaded = |busiest| {
        let waiting = |_: u64, p: Parts| Parts { wait: 400_000_000, service: 6_000_000, ..p };
        let mut rounds = at_rate(AT_RATE, 6_000, waiting);
        for round in &mut rounds {
            let server = round.server.as_mut().unwrap();
            (server.cpus, server.threads) = (2, 7);
            server.busiest_thread_ns = Some((round.window_ns as f64 * busiest) as u64);
        }
        let mut asked = asked(&NAMES, 7, &[AT_RATE]);
        (asked.cpus.server, asked.cpus.load, asked.cpus.spare) = (vec![0, 1], vec![2], vec![3]);
        epoll(&judge(&asked, &rounds)).clone()
    };
    says(&overloaded(0.5), Kind::Overloaded, &["give it a third core: --server-cpus 0,1,3"]);
    let cell = overloaded(0.97);
    says(
        &cell,
        Kind::Overloaded,
        &["its busiest thread used 0.97 of a CPU", "more CPUs do not help"],
    );
    assert!(!cell.verdict.because().contains("--server-cpus"), "{}", cell.verdict.because());
}

#[test]
fn steal_is_noisy_and_named() {
    let mut rounds = race(LOAD);
    machine(&mut rounds, Machine { steal: Some(0.043), ..Machine::default() });
    let cell = judged(&rounds);
    says(&cell, Kind::Noisy, &["the hypervisor gave 4.3% of the CPUs' time", "Also server-bound"]);
    assert!(cell.verdict.voids(Figure::Latency) && !cell.verdict.voids(Figure::Rate));
    assert!(cell.verdict.also().map(|one| one.kind).eq([Kind::ServerBound]));
    assert_eq!(cell.steal, Some(0.043));
    machine(&mut rounds, Machine { steal: Some(0.01), ..Machine::default() });
    says(&judged(&rounds), Kind::ServerBound, &[]);
}

#[test]
fn a_null_server_that_is_no_faster_shows_that_the_server_is_not_the_limit() {
    let mut rounds = sleepy();
    let epolls: Vec<(u32, u64)> =
        rounds.iter().filter(|r| r.contender == "epoll").map(|r| (r.round, r.requests)).collect();
    for (round, requests) in epolls {
        let null = rounds.iter_mut().find(|r| r.contender == "null" && r.round == round);
        null.unwrap().requests = requests;
    }
    let cell = judged(&rounds);
    says(
        &cell,
        Kind::GeneratorBound,
        &[
            "neither side was busy (server busy 0.49, load 0.35)",
            "the null server reaches only 1.00 times the rate",
            "more `connections`",
        ],
    );
    // If another tenant explains it, that comes first.
    machine(&mut rounds, Machine { steal: Some(0.3), ..Machine::default() });
    says(
        &judged(&rounds),
        Kind::Noisy,
        &["the hypervisor gave 30%", "Also generator-bound: neither"],
    );
}

#[test]
fn the_remedy_names_cpus_of_this_machine() {
    let mut rounds = sleepy();
    rounds.iter_mut().for_each(|r| r.load_cpu_ns = r.window_ns * 98 / 100);
    let mut asked: Asked = asked(&NAMES, 7, &[LOAD]);
    asked.cpus.spare = vec![2, 3];
    let summary = judge(&asked, &rounds);
    says(epoll(&summary), Kind::GeneratorBound, &["give the load a second core: --load-cpus 1,2"]);
    asked.cpus.spare = vec![];
    let summary = judge(&asked, &rounds);
    says(epoll(&summary), Kind::GeneratorBound, &["this machine has no CPU left", "`rate`"]);
}

/// Rounds at 10,000 requests per second. `change` modifies the parts of each request, and `unsent`
/// requests are not sent.
fn at_rate(load: LoadShape, unsent: u64, change: impl Fn(u64, Parts) -> Parts) -> Vec<Round> {
    let mut rounds = race(load);
    for r in &mut rounds {
        let parts = quiet(20_000 - unsent, u64::from(r.round));
        let parts: Vec<Parts> =
            parts.into_iter().enumerate().map(|(i, p)| change(i as u64, p)).collect();
        open_loop::set(r, &parts, unsent);
    }
    rounds
}

#[test]
fn the_verdict_on_a_held_rate_names_the_arrivals() {
    let cell = judged(&at_rate(AT_RATE, 0, |_, p| p));
    says(&cell, Kind::AtAskedRate, &["10000 requests per second, Poisson arrivals; 99% were sent"]);
    assert_eq!(cell.verdict.void, []);
    let open = cell.open_loop.unwrap();
    assert_eq!((open.due, open.unsent, open.misshapen), (7 * 20_000, 0, 0));
    assert!(open.service_ns.p50.unwrap().abs_diff(40_000) < 1_000, "{:?}", open.service_ns);
    let p99 = cell.latency_intervals.p99.unwrap();
    assert!(p99.low < cell.latency_ns.p99.unwrap() as f64 && p99.high / p99.low < 1.1, "{p99:?}");
    assert_eq!(cell.little_residual, None, "the concurrency is not known");

    let rate = NonZeroU32::new(10_000).unwrap();
    let drive = Drive::Open { rate, arrivals: Arrivals::Constant };
    let even = LoadShape { drive, ..AT_RATE };
    says(&judged(&at_rate(even, 0, |_, p| p)), Kind::AtAskedRate, &["per second, evenly spaced"]);
}

#[test]
fn a_stalling_server_is_not_generator_bound() {
    // In each second, nothing is answered for 100 ms: requests that arrive meanwhile wait.
    let stalled = |i: u64, p: Parts| match i % 10_000 {
        n @ 0..1_000 => Parts { wait: (1_000 - n) * 90_000, service: 10_000_000, ..p },
        _ => p,
    };
    let cell = judged(&at_rate(AT_RATE, 0, stalled));
    says(&cell, Kind::AtAskedRate, &[]);
    assert!(cell.latency_ns.p99.unwrap() > 80_000_000, "{:?}", cell.latency_ns);
    let open = cell.open_loop.unwrap();
    assert!(open.wait_ns.p99.unwrap() > 70_000_000 && open.send_lag_ns.p99.unwrap() < 20_000);
}

/// The window of each round, with the time until the last reply, is `longer` than that of the requests.
fn drained(mut rounds: Vec<Round>, longer: f64, busy: f64) -> Vec<Round> {
    for r in &mut rounds {
        r.window_ns = (r.window_ns as f64 * longer) as u64;
        r.server.as_mut().unwrap().cpu_ns = (r.window_ns as f64 * busy) as u64;
    }
    rounds
}

/// Every request is answered, but the last ones long after the end of the window.
#[test]
fn a_server_that_answers_all_too_late_does_not_hold_the_rate() {
    let queued = |i: u64, p: Parts| Parts { wait: 50_000 * i, ..p };
    for busy in [0.5, 0.95] {
        let cell = judged(&drained(at_rate(AT_RATE, 0, queued), 1.5, busy));
        says(&cell, Kind::Overloaded, &["6667"]);
        // With a connection for each request, the server has them all.
        let taken = |i: u64, p: Parts| Parts { service: 50_000 * i, ..p };
        let cell = judged(&drained(at_rate(AT_RATE, 0, taken), 1.5, busy));
        let expected = if busy > 0.9 { Kind::Overloaded } else { Kind::AtAskedRate };
        says(&cell, expected, &[]);
    }
    // A slow server that keeps up.
    let slow = |_, p: Parts| Parts { service: 100_000_000, ..p };
    says(&judged(&drained(at_rate(AT_RATE, 0, slow), 1.05, 0.5)), Kind::AtAskedRate, &[]);
    says(&judged(&drained(at_rate(AT_RATE, 0, slow), 1.05, 0.95)), Kind::AtAskedRate, &[]);
    // Some wait for a short time.
    let some = |i: u64, p: Parts| Parts { wait: (i % 2) * 2_000_000, ..p };
    says(&judged(&drained(at_rate(AT_RATE, 0, some), 1.05, 0.5)), Kind::AtAskedRate, &[]);
}

#[test]
fn a_late_load_is_the_limit() {
    let late =
        |i: u64, p: Parts| if i.is_multiple_of(50) { Parts { lag: 3_000_000, ..p } } else { p };
    let mut rounds = at_rate(AT_RATE, 0, late);
    let cell = judged(&rounds);
    says(
        &cell,
        Kind::GeneratorBound,
        &[
            "1% of the sends were late by 3.0 ms or more",
            "Poisson arrivals",
            "stop other programs (`regatta doctor` finds them)",
        ],
    );
    assert!(cell.verdict.voids(Figure::Latency) && !cell.verdict.voids(Figure::Cost));
    assert!(cell.cost_ns_per_request.is_some() && cell.band.is_some());

    // Its CPU was taken: the verdict names this.
    rounds.iter_mut().for_each(|r| r.load_cpu_ns = r.window_ns / 2);
    let taken = Machine {
        load_run_delay_ns: Some(WINDOW_NS / 2),
        load_turns: Some(600),
        ..Machine::default()
    };
    machine(&mut rounds, taken);
    says(&judged(&rounds), Kind::GeneratorBound, &["another program took the load's CPU (48%"]);

    // A busy server is never excused by the load; but its latency is void.
    for r in &mut rounds {
        r.server.as_mut().unwrap().cpu_ns = r.window_ns * 97 / 100;
    }
    let cell = judged(&rounds);
    says(&cell, Kind::AtAskedRate, &["Also at-asked-rate: the load itself was late"]);
    assert_eq!(cell.verdict.void, [Figure::Latency]);
}

#[test]
fn few_requests_are_compared_at_their_highest_percentile() {
    // 504 requests in all: a p95 and no p99.
    let few = |change: &dyn Fn(u64, Parts) -> Parts| {
        let mut rounds = race(AT_RATE);
        for r in &mut rounds {
            let parts = quiet(72, u64::from(r.round)).into_iter().enumerate();
            open_loop::set(r, &parts.map(|(i, p)| change(i as u64, p)).collect::<Vec<_>>(), 0);
        }
        let mut asked = asked(&NAMES, 7, &[AT_RATE]);
        asked.loads[0].drive = open(36);
        rounds.iter_mut().for_each(|r| r.load.drive = open(36));
        epoll(&judge(&asked, &rounds)).clone()
    };
    let cell = few(&|_, p| p);
    says(&cell, Kind::AtAskedRate, &["95% were sent within"]);
    assert_eq!(cell.latency_ns.p99, None);
    let late = few(&|i, p| if i % 10 == 0 { Parts { lag: 3_000_000, ..p } } else { p });
    says(&late, Kind::GeneratorBound, &["5% of the sends were late by 3.0 ms or more"]);
    // 3 ms in 60 ms, although there is no p99 of either.
    let slow = few(&|_, p| Parts { lag: 3_000_000, service: 60_000_000, ..p });
    says(&slow, Kind::AtAskedRate, &[]);
}

#[test]
fn a_lag_that_is_short_compared_with_the_latency_voids_nothing() {
    let slow = |_: u64, p: Parts| Parts { lag: 150_000, service: 20_000_000, ..p };
    says(&judged(&at_rate(AT_RATE, 0, slow)), Kind::AtAskedRate, &[]);
    let short = |_: u64, p: Parts| Parts { lag: 60_000, ..p };
    says(&judged(&at_rate(AT_RATE, 0, short)), Kind::AtAskedRate, &[]);
}

#[test]
fn the_verdict_on_an_overload_names_the_fates_of_requests() {
    let waiting = |_: u64, p: Parts| Parts { wait: 400_000_000, service: 6_000_000, ..p };
    let rounds = at_rate(AT_RATE, 6_000, waiting);
    let cell = judged(&rounds);
    says(
        &cell,
        Kind::Overloaded,
        &[
            "7000 of 10000 requests per second were answered (Poisson arrivals)",
            "though the load was on time",
            "30% were never sent, because no connection became free",
            "70% were sent late",
            "half of the sent requests had waited 400 ms or more",
            "lower the rate",
        ],
    );
    assert_eq!(cell.verdict.void, []);
    assert_eq!(cell.latency_ns.p90, None, "it falls among those that were never sent");
    assert!(cell.latency_ns.p50.is_some() && cell.latency_intervals.p90.is_none());
    assert_eq!(cell.latency_ns.max, None);
}

#[test]
fn requests_that_were_lost_or_timed_out_count_like_unsent_ones() {
    let mut rounds = at_rate(AT_RATE, 6_000, |_, p| p);
    for fate in ["unsent", "lost", "timed out"] {
        for r in &mut rounds {
            let open = r.open_loop.as_mut().unwrap();
            match fate {
                "lost" => open.lost = std::mem::take(&mut open.unsent),
                "timed out" => open.timed_out = std::mem::take(&mut open.lost),
                _ => {}
            }
        }
        says(&judged(&rounds), Kind::Overloaded, &["7000 of 10000 requests per second"]);
    }
}

/// The load may permit refusals.
#[test]
fn refused_requests_are_one_of_the_outcomes_and_of_the_fates() {
    let waiting = |_: u64, p: Parts| Parts { wait: 400_000_000, service: 6_000_000, ..p };
    let mut rounds = at_rate(AT_RATE, 6_000, waiting);
    for r in &mut rounds {
        let open = r.open_loop.as_mut().unwrap();
        open.refused = std::mem::take(&mut open.unsent);
    }
    let cell = judged(&rounds);
    says(&cell, Kind::Overloaded, &["7000 of 10000 requests per second", "30% were refused"]);
    let open = cell.open_loop.unwrap();
    let answered = 7 * 14_000;
    assert_eq!(open.due, answered + open.unsent + open.timed_out + open.lost + open.refused);
}

#[test]
fn a_load_without_cpu_is_the_limit_even_if_no_connection_is_free() {
    let waiting = |_: u64, p: Parts| Parts { wait: 400_000_000, service: 6_000_000, ..p };
    let mut rounds = at_rate(AT_RATE, 6_000, waiting);
    rounds.iter_mut().for_each(|r| r.load_cpu_ns = r.window_ns * 99 / 100);
    says(
        &judged(&rounds),
        Kind::GeneratorBound,
        &["the load had no CPU left", "7000 were answered"],
    );
}

#[test]
fn arrivals_that_lost_their_shape() {
    let mut rounds = at_rate(AT_RATE, 0, |_, p| p);
    let mut misshape = |n: u32| {
        for r in rounds.iter_mut().filter(|r| r.contender == "epoll" && r.round < n) {
            r.open_loop.as_mut().unwrap().arrivals.kept = false;
        }
        judge(&asked(&NAMES, 7, &[AT_RATE]), &rounds)
    };
    let summary = misshape(2);
    says(epoll(&summary), Kind::AtAskedRate, &[]);
    let doubt = "epoll at 64 conn, 10000/s got requests at other times than requested (Poisson arrivals) in \
                 2 of 7 starts";
    assert!(summary.doubts.iter().any(|d| d.starts_with(doubt)), "{:?}", summary.doubts);
    let summary = misshape(4);
    says(epoll(&summary), Kind::GeneratorBound, &["in 4 of 7 starts the sends did not have"]);
}

#[test]
fn a_warm_up_that_lacked_time_or_requests_is_a_doubt() {
    let done = |ns, requests| WarmUpDone { ns, requests, needed_ns: 10, needed_requests: 100 };
    for (warm_up, is_short) in [(done(10, 100), false), (done(9, 100), true), (done(10, 99), true)]
    {
        let mut rounds = race(LOAD);
        rounds.iter_mut().for_each(|r| r.warm_up = Some(warm_up));
        let summary = judge(&asked(&NAMES, 7, &[LOAD]), &rounds);
        assert_eq!(!summary.doubts.is_empty(), is_short, "{warm_up:?}: {:?}", summary.doubts);
    }
}

#[test]
fn latencies_of_another_number_of_requests_in_flight_are_void() {
    let mut rounds = race(LOAD);
    let summary = judge(&asked(&NAMES, 7, &[LOAD]), &rounds);
    assert!(epoll(&summary).little_residual.unwrap().abs() < 0.1);
    assert_eq!(summary.doubts, Vec::<String>::new());
    // Without requests for half of the time.
    rounds.iter_mut().for_each(|r| r.requests /= 2);
    let summary = judge(&asked(&NAMES, 7, &[LOAD]), &rounds);
    assert!(epoll(&summary).little_residual.unwrap() > 0.7);
    let is_found = |one: &&CellFinding| one.kind == Kind::InFlight;
    let verdict = &epoll(&summary).verdict;
    let found = verdict.findings.iter().find(is_found).unwrap().to_string();
    assert!(found.contains(" of 64 requests were in flight on average"), "{found}");
    assert!(verdict.voids(Figure::Latency) && !verdict.voids(Figure::Cost), "{verdict:?}");
}

/// What an interface of 1 Gbit/s carried in the windows of [`sleepy`], as a share of its speed: sent by the server, and
/// received by the load.
fn sent(share: f64) -> Carried {
    let ns = 2 * WINDOW_NS;
    let bytes = (share * 1e9 / 8.0 * ns as f64 / 1e9) as u64;
    Carried {
        interface: "eth0".into(),
        line_bits_per_s: Some(1_000_000_000),
        ns,
        received_bytes: bytes / 100,
        sent_bytes: bytes,
    }
}

fn received(share: f64) -> Carried {
    let Carried { received_bytes: sent_bytes, sent_bytes: received_bytes, .. } = sent(share);
    Carried { received_bytes, sent_bytes, ..sent(share) }
}

fn at(speed: Option<u64>, carried: Carried) -> Carried {
    Carried { line_bits_per_s: speed, ..carried }
}

fn over(rounds: &mut [Round], load: Option<Carried>, server: Option<Carried>) {
    for round in rounds {
        let (load, server) = (load.clone(), server.clone());
        let network = Some(NetworkUse { ns: 0, load, server });
        round.life = Some(Life { network, ..Life::default() });
    }
}

#[test]
fn a_full_network_between_two_sides_with_time_is_the_limit() {
    let mut rounds = sleepy();
    over(&mut rounds, None, Some(sent(0.93)));
    let cell = judged(&rounds);
    let words = [
        "neither side was busy",
        "and eth0 of the server's machine carried 0.930 Gbit/s of the 1 Gbit/s that it reports as its speed",
        "use a faster network",
    ];
    says(&cell, Kind::NetworkBound, &words);
    assert_eq!(cell.verdict.void, [Figure::Rate, Figure::Latency], "the cost is the server's own");
    // The load's interface is the narrow one.
    over(&mut rounds, Some(received(0.95)), Some(at(Some(10_000_000_000), sent(0.96))));
    let words = ["eth0 of the load's machine carried 0.950 Gbit/s"];
    says(&judged(&rounds), Kind::NetworkBound, &words);
    let json = serde_json::to_string(&cell.verdict).unwrap();
    assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), cell.verdict);
}

#[test]
fn an_end_that_contradicts_the_other_shows_nothing() {
    let is_bound = |load, server| {
        let mut rounds = sleepy();
        over(&mut rounds, load, server);
        judged(&rounds).verdict.kind() == Kind::NetworkBound
    };
    let veth = |carried| Some(at(None, carried));
    assert!(is_bound(veth(received(0.93)), Some(sent(0.93))), "the load has no speed");
    assert!(!is_bound(veth(received(0.4)), Some(sent(0.93))), "another program sent the half");
    assert!(!is_bound(veth(sent(0.93)), Some(sent(0.93))), "nobody received it");
    let false_speed = Some(at(Some(100_000_000), received(0.93)));
    assert!(!is_bound(false_speed, Some(sent(0.93))), "nine times the speed of the other end");
    assert!(!is_bound(veth(received(9.0)), veth(sent(9.0))), "no end has a speed");
}

#[test]
fn slices_without_bytes_do_not_make_a_full_network_less_full() {
    let mut rounds = sleepy();
    over(&mut rounds, None, Some(sent(0.95)));
    rounds.iter_mut().step_by(2).for_each(|round| {
        round.life.as_mut().unwrap().network = Some(NetworkUse::default());
    });
    says(&judged(&rounds), Kind::NetworkBound, &["carried 0.950 Gbit/s"]);
}

#[test]
fn a_server_that_does_not_hold_the_rate_is_overloaded_whatever_the_network_carried() {
    let mut rounds = at_rate(AT_RATE, 6_000, |_, p| p);
    over(&mut rounds, Some(received(0.97)), Some(sent(0.97)));
    let cell = judged(&rounds);
    says(&cell, Kind::Overloaded, &["7000 of 10000 requests per second"]);
    assert_eq!(cell.verdict.void, []);
}

#[test]
fn a_full_network_is_not_the_limit_of_a_side_that_was_busy_or_of_a_rate() {
    let full = || (Some(received(0.97)), Some(sent(0.97)));
    let kind = |mut rounds: Vec<Round>, (load, server): (Option<Carried>, Option<Carried>)| {
        over(&mut rounds, load, server);
        judged(&rounds).verdict.kind()
    };
    assert_eq!(kind(race(LOAD), full()), Kind::ServerBound);
    let mut busy = sleepy();
    busy.iter_mut().for_each(|r| r.load_cpu_ns = r.window_ns * 97 / 100);
    assert_eq!(kind(busy, full()), Kind::GeneratorBound);
    assert_ne!(kind(sleepy(), (Some(received(0.89)), None)), Kind::NetworkBound, "11% are free");
    let impossible = (Some(received(1.1)), None);
    assert_ne!(kind(sleepy(), impossible), Kind::NetworkBound, "that speed cannot be true");
    assert_ne!(kind(sleepy(), (None, None)), Kind::NetworkBound, "nothing is known");
}
