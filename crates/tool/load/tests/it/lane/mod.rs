//! Lanes: loads that stay alive and drive their servers in slices. What they count is what the servers
//! count, and nothing is sent while they rest. Nothing here depends on speed.

mod drives;
mod ends;

use crate::common::{Server, bounded, plan};
use regatta_load::{
    Compiled, Drive, Error, Lane, Over, Plan, SliceCounts, SliceKind, Tally, Until,
};
use regatta_testkit::deadline::until;
use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::Duration,
};

static NEVER: AtomicBool = AtomicBool::new(false);
const SHORT: Duration = Duration::from_millis(5);

fn open(plan: &Plan) -> Result<Lane<'static>, Error> {
    Lane::open(plan, &Compiled::of(plan).unwrap(), &NEVER)
}

#[test]
fn the_requests_of_all_slices_are_those_that_the_server_counts() {
    for (connections, pipeline, threads, drive) in [
        (1, 1, 1, Drive::Closed),
        (7, 3, 1, Drive::Closed),
        (9, 16, 3, Drive::Closed),
        (6, 2, 2, bounded(5)),
    ] {
        let server = Server::double();
        let plan = Plan { connections, pipeline, threads, drive, ..plan(server.address) };
        let mut lane = open(&plan).unwrap();
        assert_eq!(server.requests(), connections as u64, "one exchange on each connection");
        let kinds = [SliceKind::WarmUp, SliceKind::Counted, SliceKind::Uncounted];
        let (mut all, mut counted, mut ns) = (0, 0, 0);
        for (i, kind) in kinds.into_iter().cycle().take(9).enumerate() {
            let before = server.requests();
            let slice = lane.slice(SHORT, kind, i as u64);
            assert_eq!(slice.is_over, None);
            assert_eq!(slice.errors.total(), 0, "{slice:?}");
            assert_eq!(server.requests() - before, slice.requests, "{kind:?}");
            if drive == Drive::Closed {
                assert!(slice.requests >= (connections * pipeline) as u64);
            }
            assert!(slice.ns > 0 && slice.load_cpu_ns > 0 && slice.reply_bytes > 0);
            assert!(slice.latency.p50_ns <= slice.latency.p99_ns);
            assert!(slice.latency.p99_ns <= slice.latency.max_ns);
            all += slice.requests;
            if kind == SliceKind::Counted {
                counted += slice.requests;
                ns += slice.ns;
            }
        }
        let tally = lane.end().unwrap();
        assert_eq!(tally.requests, counted);
        assert_eq!(tally.histogram.len(), counted);
        assert_eq!(tally.replies, all + connections as u64);
        assert_eq!((tally.window_ns, tally.slices.iter().sum()), (ns, counted));
        assert_eq!((tally.slices.len(), tally.threads), (3, threads));
        assert_eq!(tally.connections_opened, connections as u64);
        assert_eq!(tally.errors.total(), 0);
        assert_eq!(server.requests(), all + connections as u64);
    }
}

#[test]
fn three_lanes_take_turns() {
    let servers = [(); 3].map(|()| Server::double());
    for threads in [1, 2] {
        let plans = servers.each_ref().map(|server| Plan {
            connections: 6,
            threads,
            pipeline: 2,
            ..plan(server.address)
        });
        let compiled = Compiled::of(&plans[0]).unwrap();
        let mut lanes = plans.each_ref().map(|plan| Lane::open(plan, &compiled, &NEVER).unwrap());
        for block in 0..12 {
            for turn in 0..3 {
                let driven = (turn + block) % 3;
                let before = servers.each_ref().map(Server::requests);
                let slice = lanes[driven].slice(SHORT, SliceKind::Counted, 1);
                for (i, server) in servers.iter().enumerate() {
                    let requests = if i == driven { slice.requests } else { 0 };
                    assert_eq!(server.requests() - before[i], requests);
                }
            }
        }
        for lane in lanes {
            let tally = lane.end().unwrap();
            assert_eq!((tally.errors.total(), tally.slices.len()), (0, 12));
        }
    }
}

#[test]
fn two_hundred_slices_of_two_milliseconds() {
    let server = Server::double();
    let plan = Plan { connections: 4, threads: 2, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    let length = Duration::from_millis(2);
    let slices = (0..200).map(|i| lane.slice(length, SliceKind::Counted, i).requests);
    let sum: u64 = slices.sum();
    assert_eq!(lane.end().unwrap().requests, sum);
    assert_eq!(server.requests(), sum + 4);
}

#[test]
fn what_cannot_be_divided_is_refused_by_name() {
    let server = Server::double();
    let counted = Plan { until: Until::Requests(9), ..plan(server.address) };
    let burst = crate::common::in_burst(1, 2, plan(server.address));
    for (plan, name) in [(counted, "a number of requests"), (burst, "a burst")] {
        match open(&plan) {
            Err(Error::Plan(why)) => assert!(why.starts_with(name), "{why}"),
            _ => panic!("it was not refused"),
        }
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_lane_that_is_dropped_closes_its_connections() {
    let server = Server::double();
    let plan = Plan { connections: 2, threads: 2, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    lane.slice(SHORT, SliceKind::Counted, 0);
    drop(lane);
    // The server's threads end when their connections do.
    drop(server);
}

/// A slice that must be without errors.
fn drive(lane: &mut Lane<'_>) -> SliceCounts {
    let slice = lane.slice(SHORT, SliceKind::Counted, 1);
    assert_eq!((slice.errors.total(), &slice.is_over), (0, &None), "{slice:?}");
    slice
}

fn end(lane: Lane<'_>) -> Tally {
    let tally = lane.end().unwrap();
    assert_eq!(tally.errors.total(), 0, "{:?} {:?}", tally.errors, tally.first_wrong);
    tally
}

/// How often each thread of this process with this name got a CPU or lost it.
fn switches(name: &str) -> Vec<String> {
    let of = |task: std::fs::DirEntry| {
        let status = std::fs::read_to_string(task.path().join("status")).ok()?;
        let has_name = status.starts_with(&format!("Name:\t{name}\n"));
        let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
        has_name.then(|| lines.collect())
    };
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.filter_map(|task| of(task.unwrap())).collect()
}

#[test]
fn the_threads_of_a_resting_lane_do_not_run() {
    for busy_poll in [false, true] {
        let server = Server::double();
        // No other test has that many threads.
        let plan = Plan { connections: 9, threads: 8, busy_poll, ..plan(server.address) };
        let mut lane = open(&plan).unwrap();
        for _ in 0..2 {
            let before = server.requests();
            let slice = drive(&mut lane);
            let now = || ["load-5", "load-6", "load-7"].map(switches);
            until("no thread wakes up", || {
                let before = now();
                thread::sleep(Duration::from_millis(100));
                assert!(before.iter().all(|of_one| of_one.len() == 1));
                before == now()
            });
            assert_eq!(server.requests(), before + slice.requests);
        }
        end(lane);
    }
}

#[test]
fn a_stop_ends_a_slice() {
    let server = Server::double();
    let stop = AtomicBool::new(false);
    let plan = Plan { connections: 3, threads: 2, ..plan(server.address) };
    let mut lane = Lane::open(&plan, &Compiled::of(&plan).unwrap(), &stop).unwrap();
    let before = server.requests();
    let slice = thread::scope(|scope| {
        scope.spawn(|| {
            until("the slice runs", || server.requests() > before + 100);
            stop.store(true, SeqCst);
        });
        lane.slice(Duration::from_secs(3_600), SliceKind::Counted, 1)
    });
    assert_eq!(slice.is_over, Some(Over::Stopped));
    assert!(slice.requests > 0);
    assert_eq!(lane.slice(SHORT, SliceKind::Counted, 1).is_over, Some(Over::Stopped));
    let tally = lane.end().unwrap();
    assert!(tally.interrupted && tally.requests == slice.requests);
}
