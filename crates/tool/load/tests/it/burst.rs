//! A burst: every connection sends exactly its number of requests and closes; every instance is timed.

use crate::common::{
    Called, Server, answer_lines, assert_undisturbed, double, in_burst, plan, run,
};
use regatta_load::{Drive, Error, Plan, Until};
use regatta_testkit::client::refusing;
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

/// A burst with at most three requests outstanding on each connection.
fn burst(target: SocketAddr, connections: usize, instances: u32, requests: u32) -> Plan {
    in_burst(instances, requests, Plan { connections, pipeline: 3, ..plan(target) })
}

#[test]
fn every_connection_sends_its_requests_and_closes_and_every_instance_is_timed() {
    for (connections, instances, requests, threads) in
        [(1, 1, 1, 1), (60, 10, 10, 1), (60, 5, 10, 2), (150, 3, 2, 8), (300, 2, 7, 2)]
    {
        let per_connection = Arc::new(Mutex::new(Vec::new()));
        let seen = per_connection.clone();
        let mut server = Server::start(move |stream, requests| {
            let asked = AtomicU64::new(0);
            answer_lines(stream, requests, |_, line| {
                asked.fetch_add(1, SeqCst);
                Some(double(line))
            });
            seen.lock().unwrap().push(asked.into_inner());
        });
        let plan = Plan { threads, ..burst(server.address, connections, instances, requests) };
        let mut called = Called::default();
        let stop = AtomicBool::new(false);
        let tally = regatta_load::run(&plan, &mut called, &mut |_| {}, &stop).unwrap();
        server.die();
        assert_undisturbed(&tally);
        assert_eq!(tally.requests, connections as u64 * u64::from(requests));
        assert_eq!(tally.connections_opened, connections as u64);
        assert_eq!(*per_connection.lock().unwrap(), vec![u64::from(requests); connections]);
        assert_eq!(called.names(), ["opens", "closes"]);
        assert_eq!(tally.instances_ns.len(), instances as usize);
        assert!(tally.instances_ns.iter().all(|&ns| ns > 0), "{:?}", tally.instances_ns);
        assert_eq!(
            tally.instances_ns.iter().max(),
            Some(&tally.window_ns),
            "the window ends with the last reply"
        );
    }
}

#[test]
fn a_burst_respects_the_pipeline_and_the_limit_of_opening_connections() {
    let (opening, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let highest = most.clone();
    let server = Server::start(move |stream, requests| {
        most.fetch_max(opening.fetch_add(1, SeqCst) + 1, SeqCst);
        answer_lines(stream.try_clone().unwrap(), requests, |i, line| {
            if i == 0 {
                opening.fetch_sub(1, SeqCst);
            }
            // Received bytes that are still unread, not counting this line and those read with it.
            let ahead = rustix::io::ioctl_fionread(&stream).unwrap();
            assert!(ahead <= 3 * 21, "{ahead} bytes ahead");
            Some(double(line))
        });
    });
    assert_undisturbed(&run(&burst(server.address, 200, 4, 10)).unwrap());
    assert!((1..=64).contains(&highest.load(SeqCst)), "{}", highest.load(SeqCst));
}

#[test]
fn unsent_requests_of_a_lost_connection_are_lost_too() {
    for (connections, threads) in [(8, 1), (40, 2)] {
        let server = Server::lines(|i, line| (i < 4).then(|| double(line)));
        let plan = Plan { threads, ..burst(server.address, connections as usize, 4, 10) };
        let tally = run(&plan).unwrap();
        let lost = tally.errors.closed_early + tally.errors.read + tally.errors.write;
        assert_eq!((tally.requests, lost), (4 * connections, 6 * connections));
        assert_eq!(tally.errors.total(), lost, "{:?}", tally.errors);
        assert_eq!(tally.connections_opened, connections, "no connection is reopened");
        assert!(!tally.server_died && tally.first_wrong.is_none());
    }
}

#[test]
fn an_instance_without_a_reply_has_no_time_and_all_its_requests_are_timeouts() {
    let server = Server::lines(|_, _| Some(String::new()));
    let timeout = Duration::from_millis(50);
    let tally = run(&Plan { timeout, ..burst(server.address, 4, 2, 10) }).unwrap();
    assert_eq!((tally.requests, tally.errors.timeout, tally.errors.total()), (0, 40, 40));
    assert_eq!(tally.instances_ns, [0, 0]);
}

#[test]
fn a_port_without_a_server_ends_the_burst_within_seconds() {
    let nobody = refusing();
    match run(&burst(nobody.addr, 4, 2, 10)) {
        Err(Error::NotOpened { opened: 0, wanted: 4, last }) => {
            assert!(last.starts_with("Connection refused"), "{last}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wrong_reply_ends_the_burst() {
    let server =
        Server::lines(|i, line| Some(if i == 5 { "no\n".to_owned() } else { double(line) }));
    let tally = run(&burst(server.address, 100, 10, 1_000)).unwrap();
    let exchange = tally.first_wrong.clone().unwrap();
    assert_eq!((exchange.received.as_str(), exchange.reply_index), ("no\\n", 5));
    assert!(tally.errors.wrong_reply >= 1);
    assert!(tally.requests <= 5 * 100);
}

#[test]
fn contradictory_bursts_are_refused() {
    let server = Server::double();
    let plan = burst(server.address, 12, 4, 10);
    let second = Duration::from_secs(1);
    for (refused, expected) in [
        (burst(server.address, 12, 5, 10), "12 connections cannot be divided equally among 5"),
        (burst(server.address, 12, 0, 10), "0 instances"),
        (burst(server.address, 12, 4, 0), "1 request"),
        (Plan { until: Until::Elapsed(second), ..plan.clone() }, "neither a duration"),
        (Plan { until: Until::Requests(9), ..plan.clone() }, "nor a number of requests"),
        (Plan { drive: Drive::Closed, ..plan.clone() }, "every other load needs"),
        (Plan { idle: 1, ..plan.clone() }, "idle connections need a load with a duration"),
    ] {
        match run(&refused) {
            Err(Error::Plan(why)) => assert!(why.contains(expected), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(server.requests(), 0);
}
