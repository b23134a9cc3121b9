//! Servers that close, reset, refuse, die or stop answering. Errors are counted by kind and never in the
//! histogram, and the load neither spins nor hangs.

use crate::common::{
    Called, Server, answer_lines, assert_stops_within, double, in_burst, plan, run,
};
use regatta_load::{Drive, Error, Plan, Until};
use regatta_testkit::client::refusing;
use regatta_testkit::deadline::until;
use rustix::net::{connect_unspec, listen};
use std::{
    net::{Shutdown, TcpListener},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

#[test]
fn an_early_close_is_counted_and_the_connection_reopened() {
    let server = Server::lines(|i, line| (i < 20).then(|| double(line)));
    let until = Until::Requests(400);
    let tally = run(&Plan { connections: 4, until, ..plan(server.address) }).unwrap();
    assert_eq!(tally.errors.total(), tally.errors.closed_early, "{:?}", tally.errors);
    assert_eq!(tally.requests + tally.errors.closed_early, 400);
    // Each connection closes after twenty answers; the last four may have fewer.
    assert!(tally.errors.closed_early >= (400 - 4 * 20) / 21);
    assert_eq!(tally.histogram.len(), tally.requests);
    assert_eq!(server.requests(), 400);
    assert!(!tally.server_died);
}

/// The pause is 10 ms, and grows up to a second while no connection gets a reply.
#[test]
fn a_reply_ends_the_growth_of_the_pause_before_a_connection_is_reopened() {
    let accepted: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let times = accepted.clone();
    let server = Server::start(move |stream, requests| {
        times.lock().unwrap().push(Instant::now());
        answer_lines(stream, requests, |i, line| (i == 0).then(|| double(line)));
    });
    // Each connection gets one reply, and loses the next request.
    let tally = run(&Plan { until: Until::Requests(24), ..plan(server.address) }).unwrap();
    assert_eq!((tally.requests, tally.errors.closed_early), (12, 12), "{:?}", tally.errors);
    let accepted = accepted.lock().unwrap();
    let gaps = accepted.windows(2).map(|two| two[1] - two[0]);
    // The machine may be busy for half a second, but not each time.
    let least = gaps.rev().take(4).min().unwrap();
    assert!(least < Duration::from_millis(500), "{least:?}");
}

#[test]
fn every_pending_reply_of_a_closed_connection_is_counted() {
    let server = Server::lines(|i, line| (i < 20).then(|| double(line)));
    let until = Until::Requests(100);
    let tally = run(&Plan { pipeline: 100, until, ..plan(server.address) }).unwrap();
    let lost = tally.errors.closed_early + tally.errors.read + tally.errors.write;
    assert_eq!((tally.requests, lost, tally.errors.total()), (20, 80, 80), "{:?}", tally.errors);
}

#[test]
fn a_reset_is_a_read_error() {
    let server = Server::start(|stream, requests| {
        answer_lines(stream.try_clone().unwrap(), requests, |i, line| {
            if i == 20 {
                // connect(2) with AF_UNSPEC resets the connection, even if there are several handles.
                connect_unspec(&stream).unwrap();
            }
            (i < 20).then(|| double(line))
        });
    });
    let until = Until::Requests(100);
    let tally = run(&Plan { until, ..plan(server.address) }).unwrap();
    assert_eq!((tally.requests, tally.errors.read, tally.errors.total()), (96, 4, 4));
}

#[test]
fn a_port_without_a_server_is_refused_within_seconds() {
    let nobody = refusing();
    let began = Instant::now();
    let error = run(&Plan { connections: 3, ..plan(nobody.addr) }).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(15));
    let message = error.to_string();
    assert!(
        message.starts_with(
            "0 of 3 connections got a correct first reply; last error: Connection refused"
        ),
        "{message}"
    );
}

#[test]
fn a_server_that_accepts_too_few_connections_is_reported() {
    let accepted = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move |stream, requests| {
        if accepted.fetch_add(1, SeqCst) < 3 {
            answer_lines(stream, requests, |_, line| Some(double(line)));
        } else {
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
    let patience = Duration::from_millis(300);
    let error = run(&Plan { connections: 5, patience, ..plan(server.address) }).unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with("3 of 5 connections got a correct first reply; last error: the server"),
        "{message}"
    );
}

/// The accept queue has room for two. The kernel drops the other attempts and retries them later, so
/// those connections are not established when `connect` returns.
#[test]
fn a_full_accept_queue_delays_connections_and_loses_none() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listen(&listener, 1).unwrap();
    let plan = Plan { connections: 6, ..plan(listener.local_addr().unwrap()) };
    let tally = thread::scope(|scope| {
        let load = scope.spawn(|| run(&plan));
        // The server starts to accept only when the queue is full.
        until("the accept queue is full", || queue_is_full(&listener));
        let server = Server::on(listener, |stream, requests| {
            answer_lines(stream, requests, |_, line| Some(double(line)));
        });
        let tally = load.join().unwrap().unwrap();
        drop(server);
        tally
    });
    crate::common::assert_undisturbed(&tally);
    assert_eq!(tally.connections_opened, 6);
}

/// Reads the queue length, which is the second number in the listener's row of the kernel's table.
fn queue_is_full(listener: &TcpListener) -> bool {
    let row = format!(":{:04X} 00000000:0000 0A ", listener.local_addr().unwrap().port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table
        .lines()
        .any(|line| line.split_once(&row).is_some_and(|(_, rest)| &rest[9..17] == "00000002"))
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let server = Server::lines(|_, _| Some(String::new()));
    let (timeout, patience) = (Duration::from_millis(50), Duration::from_millis(400));
    let error = run(&Plan { timeout, patience, ..plan(server.address) }).unwrap_err();
    match error {
        Error::NotOpened { opened: 0, wanted: 1, last } => assert_eq!(last, "no reply within 50ms"),
        error => panic!("{error}"),
    }
}

#[test]
fn a_missing_reply_is_a_timeout_and_in_no_histogram() {
    let server = Server::lines(|i, line| Some(if i < 5 { double(line) } else { String::new() }));
    let (timeout, until) = (Duration::from_millis(50), Until::Elapsed(Duration::from_secs(1)));
    let tally = run(&Plan { timeout, connections: 2, until, ..plan(server.address) }).unwrap();
    assert!(tally.errors.timeout >= 2, "{:?}", tally.errors);
    assert_eq!(tally.errors.total(), tally.errors.timeout);
    assert!((1..=tally.errors.timeout).contains(&tally.timeouts_in_window));
    let opened = tally.connections_opened;
    assert!(tally.histogram.len() <= tally.replies && tally.replies <= 5 * opened, "{tally:?}");
    assert!(opened > 2, "connections are reopened");
    assert!(opened < 100, "connections are reopened after a pause");
}

#[test]
fn a_server_that_dies_under_load_ends_the_run() {
    for drive in [Drive::Closed, Drive::Churn] {
        let mut server = Server::double();
        let until = Until::Elapsed(Duration::from_secs(20));
        let plan = Plan { connections: 4, until, drive, ..plan(server.address) };
        let mut called = Called::default();
        let seen = server.requests.clone();
        let began = Instant::now();
        let tally = thread::scope(|scope| {
            scope.spawn(|| {
                let deadline = Instant::now() + Duration::from_secs(5);
                while seen.load(SeqCst) < 100 && Instant::now() < deadline {
                    thread::yield_now();
                }
                server.die();
            });
            regatta_load::run(&plan, &mut called, &mut |_| {}, &AtomicBool::new(false)).unwrap()
        });
        assert!(tally.server_died, "{:?}", tally.errors);
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        assert!(tally.errors.connect > 0 && tally.errors.connect < 1_000, "{:?}", tally.errors);
        assert!(tally.requests > 0);
        assert_eq!(called.names(), ["opens", "closes"]);
        let cpu = Duration::from_nanos(tally.load_cpu_ns);
        assert!(cpu < began.elapsed() / 2, "it spun for {cpu:?}");
    }
}

#[test]
fn stop_ends_the_load_at_once_up_to_the_end_of_the_window() {
    assert_stops_within(Duration::from_secs(5));
}

#[test]
fn impossible_plans_are_refused_with_the_possible_number_of_connections() {
    let server = Server::double();
    let plan = plan(server.address);
    let error = run(&Plan { connections: 50_000_000, ..plan.clone() }).unwrap_err();
    match error {
        Error::Descriptors { wanted: 50_000_000, possible } => {
            assert!(possible > 0 && possible < 50_000_000);
        }
        error => panic!("{error}"),
    }
    for refused in [
        Plan { connections: 0, ..plan.clone() },
        Plan { threads: 0, ..plan.clone() },
        Plan { pipeline: 0, ..plan.clone() },
        Plan { pipeline: Plan::MAX_PIPELINE + 1, ..plan.clone() },
        Plan { pipeline: 65_536, connections: 2_000, ..plan.clone() },
        Plan { pipeline: 2, drive: Drive::Churn, ..plan.clone() },
        Plan { timeout: Duration::ZERO, ..plan.clone() },
        Plan { timeout: Plan::MAX_TIMEOUT * 2, ..plan.clone() },
        Plan { until: Until::Requests(0), ..plan.clone() },
        Plan { until: Until::Elapsed(Duration::ZERO), ..plan.clone() },
    ] {
        assert!(matches!(run(&refused), Err(Error::Plan(_))), "{refused:?}");
    }
    let nowhere = Plan { cpus: vec![1_000_000], ..plan.clone() };
    assert!(matches!(run(&nowhere), Err(Error::Machine { .. })));
    assert_eq!(server.requests(), 0, "a refused plan sends nothing");
}

/// The accept queue stays full, so connections are neither refused nor answered.
#[test]
fn a_counted_run_ends_if_the_server_accepts_no_connection() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&silent, 1).unwrap();
    let target = silent.local_addr().unwrap();
    let (timeout, patience) = (Duration::from_millis(200), Duration::from_millis(400));
    let until = Until::Requests(40);
    let counted = Plan { connections: 20, until, timeout, patience, ..plan(target) };
    for plan in [counted.clone(), in_burst(2, 3, counted)] {
        let began = Instant::now();
        let stop = AtomicBool::new(false);
        match regatta_load::run(&plan, &mut Called::default(), &mut |_| {}, &stop) {
            Err(Error::NotOpened { opened: 0, wanted: 20, .. }) => {}
            Ok(tally) => assert!(tally.server_died && tally.requests == 0, "{tally:?}"),
            Err(error) => panic!("{error}"),
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}
