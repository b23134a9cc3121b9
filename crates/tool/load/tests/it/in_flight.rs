//! How many requests are in flight: a bound over all connections is never exceeded, and connections take turns; a load
//! that is timed from the first connect opens all connections at once.

use crate::common::{Server, assert_undisturbed, bounded, double, in_burst, plan, run};
use regatta_load::{Error, Plan, Until};
use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

#[test]
fn the_bound_on_requests_in_flight_is_never_exceeded() {
    for (threads, pipeline) in [(1, 1), (2, 1), (1, 4)] {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let server = Server::lines({
            let (now, most) = (now.clone(), most.clone());
            move |i, line| {
                // The first request of each connection does not count towards the bound.
                if i > 0 {
                    most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    thread::sleep(Duration::from_micros(500));
                    now.fetch_sub(1, SeqCst);
                }
                Some(double(line))
            }
        });
        let drive = bounded(5);
        let plan = Plan { drive, connections: 20, threads, pipeline, ..plan(server.address) };
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        let most = most.load(SeqCst);
        assert!((2..=5).contains(&most), "{most} were in flight");
    }
}

/// A server that answers nothing before each of 200 clients has sent a request.
#[test]
fn a_load_that_is_timed_from_the_first_connect_opens_all_connections_at_once() {
    const CLIENTS: usize = 200;
    let server = || {
        let (here, all_here) = (Mutex::new(0), Condvar::new());
        Server::lines(move |i, line| {
            let mut count = here.lock().unwrap();
            *count += usize::from(i == 0);
            all_here.notify_all();
            let limit = Duration::from_secs(10);
            let (count, _) =
                all_here.wait_timeout_while(count, limit, |count| *count < CLIENTS).unwrap();
            (*count == CLIENTS).then(|| double(line))
        })
    };
    for counted in [CLIENTS as u64, 1_000] {
        let (server, until) = (server(), Until::Requests(counted));
        let plan = Plan { connections: CLIENTS, threads: 2, until, ..plan(server.address) };
        assert_undisturbed(&run(&plan).unwrap());
    }
    let server = server();
    let plan = Plan { connections: CLIENTS, threads: 2, ..plan(server.address) };
    assert_undisturbed(&run(&in_burst(2, 3, plan)).unwrap());
}

#[test]
fn connections_take_turns() {
    let served: Arc<Mutex<Vec<u64>>> = Arc::default();
    let server = Server::start({
        let served = served.clone();
        move |stream, requests| {
            let mine = Mutex::new(0);
            crate::common::answer_lines(stream, requests, |i, line| {
                *mine.lock().unwrap() = i;
                Some(double(line))
            });
            served.lock().unwrap().push(mine.into_inner().unwrap());
        }
    });
    let tally = run(&Plan { drive: bounded(4), connections: 40, ..plan(server.address) }).unwrap();
    assert_undisturbed(&tally);
    drop(server);
    let served = served.lock().unwrap();
    let (least, most) = (served.iter().min().unwrap(), served.iter().max().unwrap());
    assert_eq!(served.len(), 40);
    // A reply overtakes at most as many others as are in flight, at most once per turn.
    assert!(*most > 0 && least * 2 + 8 >= *most, "from {least} to {most} requests each");
}

#[test]
fn requests_lost_with_a_connection_are_no_longer_in_flight() {
    // Every connection is closed after 3 answers and that to its first request; two requests at a time
    // keep being sent.
    let server = Server::lines(|i, line| (i < 4).then(|| double(line)));
    let drive = bounded(2);
    let until = Until::Elapsed(Duration::from_secs(1));
    let tally = run(&Plan { drive, connections: 40, until, ..plan(server.address) }).unwrap();
    assert_eq!(tally.first_wrong, None);
    assert!(tally.requests > 3 * 10, "{}", tally.requests);
    assert!(tally.errors.total() > 10, "{:?}", tally.errors);
    assert!(tally.histogram.len().abs_diff(tally.requests) <= 2, "those in flight at an edge");
}

#[test]
fn a_bound_needs_a_duration() {
    let server = Server::double();
    let plan = Plan { drive: bounded(1), ..plan(server.address) };
    match run(&Plan { until: Until::Requests(100), ..plan }) {
        Err(Error::Plan(why)) => assert!(why.contains("in flight"), "{why}"),
        other => panic!("{other:?}"),
    }

    assert_eq!(server.requests(), 0);
}
