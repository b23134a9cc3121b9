//! The open loop: due requests are sent independent of earlier replies, every due request is counted,
//! and the parts of the latency are attributed correctly.

use crate::common::{Server, assert_undisturbed, at, double, plan, run};
use regatta_load::{
    Arrivals, Drive, Error, OpenTally, Phase, Plan, Progress, Tally, Until, WarmUp,
};
use std::{
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

const RATE: u32 = 1_000;

/// Constant arrivals, 300 of them in a window of 300 ms.
fn at_rate(server: &Server) -> Plan {
    Plan { drive: at(RATE, Arrivals::Constant), ..plan(server.address) }
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Checks what must hold for every open loop: every due request is counted once.
fn open(tally: &Tally) -> &OpenTally {
    let open = tally.open_loop.as_ref().expect("an open loop");
    let answered = tally.histogram.len();
    assert_eq!(open.due, answered + open.timed_out + open.lost + open.unsent, "{open:?}");
    for part in [&open.wait, &open.lag, &open.service] {
        assert_eq!(part.len(), answered);
    }
    assert!(open.late <= open.due - open.unsent, "{open:?}");
    let sum = open.wait.mean() + open.lag.mean() + open.service.mean();
    let off = (sum - tally.histogram.mean()).abs();
    assert!(answered == 0 || off <= 0.005 * sum + 10.0, "parts of {sum}, off by {off}");
    open
}

/// All pipelines together hold more requests than are due, so that no stall changes the counts.
#[test]
fn the_number_of_constant_arrivals_matches_the_rate_exactly() {
    for threads in [1, 2] {
        let server = Server::double();
        let plan = Plan { connections: 60, pipeline: 8, threads, ..at_rate(&server) };
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        let open = open(&tally);
        assert_eq!((open.due, open.unsent, tally.histogram.len()), (300, 0, 300));
        // Some may be sent in a warm-up of length zero, on a busy machine more than one by each thread.
        let sent = server.requests();
        assert!(sent >= 360 && sent == tally.replies, "{sent} of {}", tally.replies);
    }
}

#[test]
fn the_seed_determines_the_number_of_poisson_arrivals() {
    let server = Server::double();
    let drive = at(RATE, Arrivals::Poisson);
    let due = |seed, threads, warm_up| {
        let warm_up = WarmUp::Fixed(ms(warm_up));
        let plan = Plan { connections: 60, pipeline: 8, drive, seed, threads, ..at_rate(&server) };
        let tally = run(&Plan { warm_up, ..plan }).unwrap();
        assert_undisturbed(&tally);
        open(&tally).due
    };
    for threads in [1, 2] {
        let first = due(1, threads, 0);
        // 300 are expected, with a standard deviation of 17.
        assert!((200..400).contains(&first), "{first}");
        assert_eq!(first, due(1, threads, 50), "the warm-up does not matter");
    }
    let others: Vec<_> = (2..5).map(|seed| due(seed, 1, 0)).collect();
    assert!(others.iter().any(|other| *other != others[0]), "{others:?}");
}

#[test]
fn the_warm_up_has_the_same_rate_and_its_replies_are_in_no_histogram() {
    let server = Server::double();
    let warm_up = WarmUp::Fixed(ms(200));
    let plan = Plan { connections: 60, pipeline: 10, warm_up, ..at_rate(&server) };
    let tally = run(&plan).unwrap();
    assert_undisturbed(&tally);
    assert_eq!((open(&tally).due, tally.histogram.len()), (300, 300));
    let before = server.requests() - 60 - 300;
    let due = tally.warm_up_ns / (1_000_000_000 / u64::from(RATE)) + 2;
    assert!((150..=due).contains(&before), "{before} of {due}");
}

#[test]
fn late_replies_of_the_warm_up_are_not_recorded_in_the_window() {
    // Every request but the first of a connection is answered after 150 ms: the last ones of the
    // warm-up inside the window, and the last ones of the window after it.
    let server = Server::lines(|i, line| {
        if i > 0 {
            thread::sleep(ms(150));
        }
        Some(double(line))
    });
    let drive = at(100, Arrivals::Constant);
    let warm_up = WarmUp::Fixed(ms(300));
    let plan = Plan { connections: 100, drive, warm_up, ..at_rate(&server) };
    let tally = run(&plan).unwrap();
    let open = open(&tally);
    assert_eq!((open.due, tally.histogram.len()), (30, 30));
    // Most replies inside the window belong to requests before it.
    assert!(tally.requests > 0 && tally.errors.total() == 0, "{:?}", tally.errors);
    assert!(open.service.min() >= 149_000_000, "{}", open.service.min());
    assert!(server.requests() - 100 > 30 + 10, "{}", server.requests());
}

#[test]
fn the_load_sleeps_between_requests() {
    let server = Server::double();
    let drive = at(20, Arrivals::Constant);
    let until = Until::Elapsed(Duration::from_secs(1));
    // Long enough that even a late wake-up leaves time to spin.
    for (spin, spun) in [(Duration::ZERO, 0..=0), (ms(5), 1..=200_000_000)] {
        let plan = Plan { connections: 4, drive, until, spin, ..at_rate(&server) };
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        let open = open(&tally);
        assert_eq!((open.due, open.spin_ns), (20, spin.as_nanos() as u64));
        assert!(spun.contains(&tally.spun_ns), "{}", tally.spun_ns);
        assert!(tally.load_cpu_ns < tally.window_ns / 4, "it was busy for {}", tally.load_cpu_ns);
        assert!(open.arrivals.gaps == 19, "{:?}", open.arrivals);
    }
}

/// A server that stalls for 100 ms of every 400 ms, on all of its connections at once.
fn stalling() -> Server {
    let began = Instant::now();
    Server::lines(move |_, line| {
        let at = began.elapsed().as_millis() % 400;
        if at < 100 {
            thread::sleep(ms(100 - at as u64));
        }
        Some(double(line))
    })
}

/// A quarter of all requests are due while the server stalls. In a closed loop each stall delays only
/// one request per connection: twelve in three stalls. The test compares the numbers of slow requests,
/// because they do not depend on the speed of the machine.
#[test]
fn open_loop_shows_a_stall_that_closed_loop_hides() {
    let until = Until::Elapsed(ms(1_200));
    type Latency = hdrhistogram::Histogram<u64>;
    let at_p90 = |h: &Latency| h.value_at_quantile(0.9);
    let long = |h: &Latency| h.count_between(30_000_000, h.high());
    let server = stalling();
    let plan = Plan { connections: 4, until, ..at_rate(&server) };
    let tally = run(&plan).unwrap();
    let open = open(&tally);
    let latency = at_p90(&tally.histogram);
    assert!(latency > 30_000_000, "{latency} ns");
    assert!(at_p90(&open.wait) > latency / 2, "{} ns for a connection", at_p90(&open.wait));
    assert!(open.service.max() > 60_000_000, "{} ns", open.service.max());
    let lag = open.lag.value_at_quantile(0.5);
    assert!(lag < latency / 10, "{lag} ns of the load's own");
    let closed = run(&Plan { drive: Drive::Closed, ..plan }).unwrap();
    let (seen, there) = (long(&closed.histogram), long(&tally.histogram));
    assert!(seen < there / 3, "{seen} long ones in closed loop, {there} in open");
}

#[test]
fn requests_without_a_free_connection_queue_and_are_counted() {
    for (threads, arrivals) in
        [(1, Arrivals::Constant), (2, Arrivals::Constant), (2, Arrivals::Poisson)]
    {
        let server = Server::lines(|_, line| {
            thread::sleep(ms(10));
            Some(double(line))
        });
        let (timeout, drive) = (ms(200), at(RATE, arrivals));
        let plan =
            Plan { connections: 2, pipeline: 2, threads, drive, timeout, ..at_rate(&server) };
        let began = Instant::now();
        let tally = run(&plan).unwrap();
        // The window, the grace period, a reply, and a margin for a busy machine.
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let open = open(&tally);
        // 300 were due; two connections each answer one per 10 ms, for 500 ms at most.
        assert!(open.unsent > 100, "{}", open.unsent);
        assert!(open.late > 0 && open.wait.max() > 20_000_000, "{open:?}");
        let sent = server.requests() - 2;
        let written = open.due - open.unsent;
        // On a busy machine, some are sent between the connects and the start of the window.
        assert!((written..=written + 30).contains(&sent), "{sent}, {written}");
    }
}

#[test]
fn pipelines_are_filled_and_never_exceeded() {
    let (most, outstanding) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    // Reads the available requests, sleeps, answers all of them.
    let server = Server::start({
        let (most, outstanding) = (most.clone(), outstanding.clone());
        move |mut stream, requests| {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = stream.read(&mut buffer) {
                let text = std::str::from_utf8(&buffer[..n]).unwrap();
                let lines = text.lines().count() as u64;
                requests.fetch_add(lines, SeqCst);
                most.fetch_max(outstanding.fetch_add(lines, SeqCst) + lines, SeqCst);
                thread::sleep(ms(10));
                let replies: String = text.lines().map(double).collect();
                outstanding.fetch_sub(lines, SeqCst);
                if std::io::Write::write_all(&mut stream, replies.as_bytes()).is_err() {
                    return;
                }
            }
        }
    });
    let plan = Plan { pipeline: 4, timeout: ms(500), ..at_rate(&server) };
    let tally = run(&plan).unwrap();
    open(&tally);
    let most = most.load(SeqCst);
    assert!((2..=4).contains(&most), "{most} were outstanding");
    assert!(tally.histogram.len() > 20, "{}", tally.histogram.len());
}

#[test]
fn requests_to_a_silent_server_time_out_or_stay_unsent() {
    for threads in [1, 2] {
        // The opening requests are answered.
        let server = Server::lines(|i, line| {
            if i > 0 {
                thread::sleep(ms(700));
            }
            Some(double(line))
        });
        let timeout = ms(100);
        let plan = Plan { connections: 20, threads, timeout, ..at_rate(&server) };
        let tally = run(&plan).unwrap();
        let open = open(&tally);
        assert!(open.due >= 250, "{open:?}");
        assert!(open.timed_out >= 15 && open.unsent > 50, "{open:?}");
        assert_eq!(tally.histogram.len(), 0);
        assert!(tally.errors.timeout >= open.timed_out, "{:?}", tally.errors);
    }
}

#[test]
fn when_the_server_closes_a_connection_others_continue_the_schedule() {
    for pipeline in [1, 4] {
        let server = Server::lines(|i, line| (i < 20).then(|| double(line)));
        let plan = Plan { connections: 30, pipeline, ..at_rate(&server) };
        let tally = run(&plan).unwrap();
        assert_eq!(tally.first_wrong, None);
        let open = open(&tally);
        assert!(tally.histogram.len() > 100, "{open:?}");
        assert!(open.lost <= tally.errors.total(), "{open:?} {:?}", tally.errors);
    }
    // No connection stays open for long.
    let server = Server::lines(|i, line| (i < 2).then(|| double(line)));
    let plan = Plan { connections: 4, timeout: ms(300), ..at_rate(&server) };
    let tally = run(&plan).unwrap();
    let open = open(&tally);
    assert!(open.lost > 0, "{open:?}");
}

#[test]
fn every_due_request_is_counted_after_a_wrong_reply_or_a_stop() {
    let server = Server::lines(|i, line| Some(if i < 5 { double(line) } else { "0.5\n".into() }));
    let tally = run(&Plan { connections: 10, pipeline: 2, ..at_rate(&server) }).unwrap();
    assert!(tally.first_wrong.is_some());
    assert!(open(&tally).due < 300);

    let server = Server::lines(|i, line| {
        if i > 0 {
            thread::sleep(ms(20));
        }
        Some(double(line))
    });
    let stop = AtomicBool::new(false);
    let mut stops = |progress: &Progress| stop.store(progress.phase == Phase::Measuring, SeqCst);
    let until = Until::Elapsed(Duration::from_secs(60));
    let plan = Plan { connections: 2, until, ..at_rate(&server) };
    let tally =
        regatta_load::run(&plan, &mut crate::common::Called::default(), &mut stops, &stop).unwrap();
    assert!(tally.interrupted);
    let open = open(&tally);
    assert!(open.due < 60_000 / 2 && open.lost > 0 && open.unsent > 0, "{open:?}");
}

/// Returns the result of `run`. Panics if it takes longer than 30 s.
fn in_time<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let running = thread::spawn(move || sender.send(run()));
    let result = receiver.recv_timeout(Duration::from_secs(30)).expect("the run ends in time");
    running.join().unwrap().unwrap();
    result
}

/// Checks that the run ended inside the warm-up, and has no window.
fn assert_no_window(tally: &Tally) {
    let open = open(tally);
    assert_eq!((open.due, tally.histogram.len(), tally.window_ns), (0, 0, 0));
}

const LONG_WARM_UP: WarmUp = WarmUp::Fixed(Duration::from_secs(600));

/// Runs a load that `ends` cuts short in the warm-up, through the server or the stop flag.
fn cut_short(threads: usize, ends: fn(&mut Server, &AtomicBool)) -> Tally {
    in_time(move || {
        let mut server = Server::double();
        let plan = Plan { connections: 4, threads, warm_up: LONG_WARM_UP, ..at_rate(&server) };
        let stop = AtomicBool::new(false);
        let mut on_progress = |progress: &Progress| {
            if progress.phase == Phase::WarmingUp {
                ends(&mut server, &stop);
            }
        };
        regatta_load::run(&plan, &mut crate::common::Called::default(), &mut on_progress, &stop)
            .unwrap()
    })
}

#[test]
fn a_stop_inside_the_warm_up_ends_the_run() {
    for threads in [1, 2] {
        let tally = cut_short(threads, |_, stop| stop.store(true, SeqCst));
        assert!(tally.interrupted);
        assert_no_window(&tally);
    }
}

#[test]
fn a_server_that_dies_inside_the_warm_up_ends_the_run() {
    for threads in [1, 2] {
        let tally = cut_short(threads, |server, _| server.die());
        assert!(tally.server_died);
        assert_no_window(&tally);
    }
}

#[test]
fn a_wrong_reply_inside_the_warm_up_ends_the_run() {
    for threads in [1, 2] {
        let tally = in_time(move || {
            let wrong = |i, line: &str| Some(if i < 5 { double(line) } else { "0.5\n".into() });
            let server = Server::lines(wrong);
            let plan = Plan { connections: 4, threads, ..at_rate(&server) };
            run(&Plan { warm_up: LONG_WARM_UP, ..plan }).unwrap()
        });
        assert!(tally.first_wrong.is_some());
        assert_no_window(&tally);
    }
}

/// Two threads that never sleep share one CPU: one of them hardly runs in a window of a millisecond.
#[test]
fn a_thread_that_misses_the_window_still_counts_its_share_of_requests() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..).find(|cpu| allowed.is_set(*cpu)).unwrap() as u32;
    for _ in 0..10 {
        let tally = in_time(move || {
            let server = Server::double();
            let drive = at(100_000, Arrivals::Constant);
            let (warm_up, until) = (WarmUp::Fixed(ms(20)), Until::Elapsed(ms(1)));
            let plan =
                Plan { connections: 20, pipeline: 8, drive, warm_up, until, ..at_rate(&server) };
            run(&Plan { threads: 2, cpus: vec![cpu], busy_poll: true, ..plan }).unwrap()
        });
        assert_eq!(open(&tally).due, 100);
    }
}

#[test]
fn a_rate_ten_times_too_high_ends_in_time() {
    let server = Server::double();
    let plan = Plan { connections: 8, timeout: ms(500), ..at_rate(&server) };
    for arrivals in Arrivals::ALL {
        let until = Until::Elapsed(ms(100));
        let tally =
            run(&Plan { drive: at(Plan::MAX_RATE, arrivals), until, ..plan.clone() }).unwrap();
        let open = open(&tally);
        assert!((990_000..1_010_000).contains(&open.due), "{}", open.due);
        assert!(open.unsent > open.due / 2 && open.late > 0, "{} unsent", open.unsent);
        assert!(open.arrivals.gaps > 900_000, "{:?}", open.arrivals);
    }
}

#[test]
fn a_rate_has_a_limit_and_needs_a_duration() {
    let server = Server::double();
    let plan = at_rate(&server);
    for (refused, expected) in [
        (Plan { until: Until::Requests(100), ..plan.clone() }, "a rate needs a load with"),
        (
            Plan { drive: at(Plan::MAX_RATE + 1, Arrivals::Poisson), ..plan.clone() },
            "the maximum is 10000000",
        ),
    ] {
        match run(&refused) {
            Err(Error::Plan(why)) => assert!(why.contains(expected), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(server.requests(), 0);
}
