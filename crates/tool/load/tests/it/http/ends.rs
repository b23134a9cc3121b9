//! How connections close: announced by the server, which is not an error, or unannounced. Also long
//! bodies.

use crate::{
    common::{Called, Server, asks, assert_undisturbed, at, bounded, in_burst, run},
    http::{LAST, OK, get, server},
};
use regatta_load::{Arrivals, Drive, Plan, Until};
use regatta_script::dialects::http::{HttpRequest, Method};
use rustix::net::connect_unspec;
use std::{
    io::{Read, Write},
    net::Shutdown,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

/// Replies that each announce, or imply, the close of the connection.
const LAST_REPLIES: [&str; 3] =
    [LAST, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\n\r\nok"];

#[test]
fn an_announced_close_is_not_an_error() {
    let server = server(|i, _| if i == 9 { (LAST.into(), true) } else { (OK.into(), false) });
    for pipeline in [1, 4, 16] {
        let until = Until::Requests(500);
        let plan = Plan { connections: 3, pipeline, until, ..get(server.address) };
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        assert_eq!((tally.requests, tally.histogram.len()), (500, 500));
        assert!(tally.connections_opened >= 50, "{}", tally.connections_opened);
    }
    let timed = run(&Plan { connections: 3, pipeline: 4, ..get(server.address) }).unwrap();
    assert_undisturbed(&timed);
    let in_flight = Plan { connections: 6, drive: bounded(3), ..get(server.address) };
    assert_undisturbed(&run(&in_flight).unwrap());
}

#[test]
fn a_burst_continues_after_an_announced_close() {
    let server = server(|i, _| if i == 6 { (LAST.into(), true) } else { (OK.into(), false) });
    let plan = Plan { connections: 4, pipeline: 3, ..get(server.address) };
    let tally = run(&in_burst(2, 20, plan)).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(tally.requests, 80);
    assert!(tally.instances_ns.iter().all(|&ns| ns > 0));
}

#[test]
fn one_reply_per_connection_is_served_with_churn_and_without() {
    for last in LAST_REPLIES {
        let server = server(move |_, _| (last.into(), true));
        for plan in [
            Plan { connections: 4, ..get(server.address) },
            Plan { connections: 4, until: Until::Requests(100), ..get(server.address) },
            Plan { connections: 4, drive: Drive::Churn, ..get(server.address) },
            Plan { drive: Drive::Churn, until: Until::Requests(100), ..get(server.address) },
        ] {
            let tally = run(&plan).unwrap();
            assert_undisturbed(&tally);
            assert!(tally.connections_opened >= tally.requests, "{last:?}");
            if let Until::Requests(n) = plan.until {
                assert_eq!(tally.requests, n);
            }
        }
    }
}

#[test]
fn requests_with_churn_send_connection_close() {
    static ANNOUNCED: AtomicBool = AtomicBool::new(true);
    let server = server(|_, head| {
        ANNOUNCED.fetch_and(head.contains("\r\nConnection: close\r\n"), SeqCst);
        (LAST.into(), true)
    });
    let plan = Plan { drive: Drive::Churn, until: Until::Requests(20), ..get(server.address) };
    assert_undisturbed(&run(&plan).unwrap());
    assert!(ANNOUNCED.load(SeqCst));
}

#[test]
fn an_unannounced_close_and_an_incomplete_reply_are_errors() {
    for half in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"] {
        let server = server(move |i, _| match i {
            9 => (half.into(), true),
            _ => (OK.into(), false),
        });
        let until = Until::Requests(100);
        let tally = run(&Plan { until, ..get(server.address) }).unwrap();
        assert_eq!(tally.first_wrong, None);
        assert_eq!((tally.requests, tally.errors.closed_early), (90, 10), "{half:?}");
        assert_eq!(tally.errors.total(), 10);
    }
}

/// The server replies after a part of the request, announces the close, and does not read the rest.
#[test]
fn a_reset_after_a_reply_with_connection_close_is_not_an_error() {
    let server = Server::start(|mut stream, requests| {
        if let Ok(1..) = stream.read(&mut [0; 1_000]) {
            requests.fetch_add(1, SeqCst);
            let _ = stream.write_all(LAST.as_bytes());
        }
        // connect(2) with AF_UNSPEC resets the connection, even if there are several handles.
        connect_unspec(&stream).unwrap();
    });
    let mut request = HttpRequest::get("/");
    request.expected.method = Method::Post;
    // More than the socket buffers hold.
    request.content = Some(vec![b'x'; 8 << 20]);
    let workload = asks(request);
    let until = Until::Requests(50);
    let tally = run(&Plan { workload, until, connections: 2, ..get(server.address) }).unwrap();
    assert_undisturbed(&tally);
    assert_eq!((tally.requests, server.requests()), (50, 50));
}

/// Servers send 408 to connections that are silent for too long, and close them.
#[test]
fn an_idle_connection_that_times_out_on_the_server_is_reopened_without_an_error() {
    let server = Server::numbered(|number, mut stream, requests| {
        let mut request = [0; 1_000];
        if !matches!(stream.read(&mut request), Ok(n) if n > 0) {
            return;
        }
        requests.fetch_add(1, SeqCst);
        let gives_up = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(OK.as_bytes());
        // The first connection is the active one, which sends further requests; the others do not.
        if number > 0 {
            stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        }
        while let Ok(1..) = stream.read(&mut request) {
            let _ = stream.write_all(OK.as_bytes());
        }
        let _ = stream.write_all(gives_up.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
    });
    let until = Until::Elapsed(Duration::from_millis(800));
    let tally = run(&Plan { idle: 3, until, ..get(server.address) }).unwrap();
    assert_undisturbed(&tally);
    assert!(tally.connections_opened > 4, "{}", tally.connections_opened);
}

#[test]
fn a_long_body_is_skipped() {
    const LENGTH: usize = 3_000_000;
    let reply =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n{}", "x".repeat(LENGTH));
    let server = server(move |_, _| (reply.clone(), false));
    let until = Until::Requests(40);
    let tally = run(&Plan { connections: 4, until, ..get(server.address) }).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(tally.requests, 40);
}

/// In an open loop, requests sent after the last served one are lost.
#[test]
fn in_open_loop_requests_after_an_announced_close_are_lost_and_counted() {
    let server = server(|i, _| if i == 9 { (LAST.into(), true) } else { (OK.into(), false) });
    let drive = at(2_000, Arrivals::Poisson);
    let plan = Plan { connections: 3, pipeline: 4, drive, ..get(server.address) };
    let tally = run(&plan).unwrap();
    let open = tally.open_loop.clone().unwrap();
    assert!(tally.requests > 0 && tally.first_wrong.is_none());
    assert_eq!(tally.errors.total(), tally.errors.closed_early);
    assert!(open.lost <= tally.errors.closed_early, "{open:?} {:?}", tally.errors);
}

/// Sixty requests are due, and each opens a connection. Nothing else is sent, except the requests that
/// open the initial connections, and possibly one per thread in the warm-up.
#[test]
fn in_open_loop_the_next_request_reopens_a_closed_connection() {
    for last in LAST_REPLIES {
        let server = server(move |_, _| (last.into(), true));
        for (threads, pipeline) in [(1, 1), (2, 4)] {
            let before = server.requests();
            let drive = at(200, Arrivals::Constant);
            let plan = Plan { connections: 3, drive, ..get(server.address) };
            let tally = run(&Plan { threads, pipeline, ..plan }).unwrap();
            assert_undisturbed(&tally);
            let open = tally.open_loop.clone().unwrap();
            let answered = tally.histogram.len();
            assert_eq!((open.due, open.lost), (60, 0), "{last:?}");
            assert!(answered > 0 && answered == open.due - open.unsent, "{open:?}");
            // A thread may send one in a warm-up of length zero.
            let more = 0..=threads as u64;
            assert!(more.contains(&(server.requests() - before - 3 - answered)), "{last:?}");
            assert_eq!(tally.connections_opened, server.requests() - before);
            assert!(tally.requests <= answered + threads as u64, "{}", tally.requests);
        }
    }
}

/// An idle connection sends no requests: it is reopened after 10 ms, then after 20 ms, and so on.
#[test]
fn idle_connections_are_reopened_after_growing_pauses() {
    let server = server(|_, _| (LAST.into(), true));
    let drive = at(100, Arrivals::Constant);
    let plan = Plan { connections: 2, idle: 3, drive, ..get(server.address) };
    let began = Instant::now();
    let tally = run(&plan).unwrap();
    assert_undisturbed(&tally);
    // Seven pauses make more than a second, and further ones last a second each.
    let most = 3 * (8 + began.elapsed().as_secs());
    let open = tally.open_loop.clone().unwrap();
    let again = tally.connections_opened - 5 - (open.due - open.unsent);
    assert!((3..=most).contains(&again), "{again} times, at most {most}");
}

#[test]
fn a_bound_holds_if_every_request_opens_a_connection() {
    for threads in [1, 2] {
        let (seen, now) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let most = Arc::new(AtomicU64::new(0));
        let highest = most.clone();
        let server = server(move |_, _| {
            // The first request of each of the six connections does not count towards the bound.
            if seen.fetch_add(1, SeqCst) >= 6 {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                thread::sleep(Duration::from_micros(500));
                now.fetch_sub(1, SeqCst);
            }
            (LAST.into(), true)
        });
        let drive = bounded(3);
        let tally = run(&Plan { drive, connections: 6, threads, ..get(server.address) }).unwrap();
        assert_undisturbed(&tally);
        assert!(tally.requests > 6, "{}", tally.requests);
        let highest = highest.load(SeqCst);
        assert!((1..=3).contains(&highest), "{highest} were in flight");
    }
}

#[test]
fn a_burst_is_timed_if_every_request_opens_a_connection() {
    for last in LAST_REPLIES {
        let server = server(move |_, _| (last.into(), true));
        let plan = Plan { connections: 4, pipeline: 3, ..get(server.address) };
        let tally = run(&in_burst(2, 5, plan)).unwrap();
        assert_undisturbed(&tally);
        assert_eq!((tally.requests, tally.connections_opened), (20, 20));
        assert!(tally.instances_ns.iter().all(|&ns| ns > 0), "{:?}", tally.instances_ns);
        assert_eq!(tally.instances_ns.iter().max(), Some(&tally.window_ns), "{last:?}");
    }
}

#[test]
fn a_load_on_a_server_that_closes_every_connection_stops_at_once() {
    let server = server(|_, _| (LAST.into(), true));
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    let mut on_progress = |progress: &regatta_load::Progress| {
        stop.store(progress.replies > 10, SeqCst);
    };
    let until = Until::Elapsed(Duration::from_secs(20));
    let plan = Plan { connections: 3, until, ..get(server.address) };
    let tally = regatta_load::run(&plan, &mut Called::default(), &mut on_progress, &stop).unwrap();
    assert!(tally.interrupted && began.elapsed() < Duration::from_secs(15));
}
