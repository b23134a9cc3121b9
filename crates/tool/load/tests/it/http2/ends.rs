//! Connections whose close the server announces by GOAWAY.

use super::{items, peer::Got};
use crate::common::{Server, assert_undisturbed, at, bounded, in_burst, run};
use regatta_http2::ErrorCode;
use regatta_load::{Arrivals, Drive, Plan, Until};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

/// A server that processes `most` requests of each connection, and counts those that it then ignores. With a
/// `delay`, replies come that long after the last request, and at least one request is ignored if the client
/// continues to send.
pub fn server(most: u64, delay: Duration) -> (Server, Arc<AtomicU64>) {
    let ignored = Arc::new(AtomicU64::new(0));
    let counted = ignored.clone();
    let server = super::serving(&[], move |mut peer, requests| {
        peer.wait_at_most(Duration::from_millis(1));
        let (mut pending, mut processed) = (Vec::new(), 0);
        while processed < most {
            match peer.next() {
                None => return,
                Some(Got::Asked(asked)) => {
                    requests.fetch_add(1, SeqCst);
                    processed += 1;
                    pending.push(asked);
                }
                Some(Got::Nothing) => {
                    thread::sleep(delay);
                    // The last one first.
                    pending.drain(..).rev().for_each(|asked| peer.right(&asked));
                }
                Some(Got::Other) => {}
            }
        }
        if !delay.is_zero() {
            // Another request is on its way when the close is announced.
            let last = pending.pop();
            pending.drain(..).for_each(|asked| peer.right(&asked));
            pending.extend(last);
            let deadline = Instant::now() + 100 * delay;
            while Instant::now() < deadline {
                match peer.next() {
                    None => return,
                    Some(Got::Asked(_)) => {
                        counted.fetch_add(1, SeqCst);
                        break;
                    }
                    Some(Got::Nothing | Got::Other) => {}
                }
            }
        }
        peer.go_away(2 * most as u32 - 1, ErrorCode::NO_ERROR);
        pending.drain(..).for_each(|asked| peer.right(&asked));
        while peer.ask().is_some() {
            counted.fetch_add(1, SeqCst);
        }
    });
    (server, ignored)
}

#[test]
fn requests_after_the_last_stream_are_sent_again_and_counted() {
    for pipeline in [1, 4, 16] {
        let (mut server, ignored) = server(10, Duration::ZERO);
        let until = Until::Requests(500);
        let plan = Plan { connections: 3, pipeline, until, ..items(server.address) };
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        assert_eq!((tally.requests, tally.histogram.len()), (500, 500));
        assert_eq!(server.requests(), 500, "each request was processed once");
        assert!(tally.connections_opened >= 50, "{}", tally.connections_opened);
        server.die();
        assert_eq!(tally.sent_again, ignored.load(SeqCst));
        assert_eq!(tally.sent_again > 0, pipeline > 1);
    }
}

#[test]
fn every_drive_continues_after_an_announced_close() {
    let (server, _) = server(10, Duration::ZERO);
    let plan = Plan { connections: 3, ..items(server.address) };
    let churned = Plan { pipeline: 1, drive: Drive::Churn, ..plan.clone() };
    for plan in [plan.clone(), Plan { drive: bounded(5), ..plan.clone() }, churned] {
        assert_undisturbed(&run(&plan).unwrap());
    }
    let tally = run(&in_burst(1, 40, plan)).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(tally.requests, 120);
}

/// A request that is sent again keeps its due time.
#[test]
fn in_open_loop_no_request_is_lost_and_none_is_counted_twice() {
    let (mut server, ignored) = server(10, Duration::from_millis(10));
    let plan = Plan {
        connections: 3,
        pipeline: 8,
        drive: at(300, Arrivals::Constant),
        until: Until::Elapsed(Duration::from_secs(1)),
        ..items(server.address)
    };
    let tally = run(&plan).unwrap();
    assert_eq!(tally.errors.total(), 0, "{:?} {:?}", tally.errors, tally.causes);
    let open = tally.open_loop.clone().unwrap();
    assert_eq!((open.due, open.lost, open.timed_out), (300, 0, 0));
    assert_eq!(tally.histogram.len() + open.unsent, 300);
    server.die();
    assert_eq!(tally.sent_again, ignored.load(SeqCst));
    assert!(tally.sent_again > 0);
}

#[test]
fn a_connection_that_the_server_ends_with_an_error_is_not_an_announced_close() {
    let server = super::serving(&[], |mut peer, requests| {
        while let Some(asked) = peer.ask() {
            if requests.fetch_add(1, SeqCst) == 20 {
                peer.go_away(asked.stream - 2, ErrorCode::ENHANCE_YOUR_CALM);
                return peer.finish();
            }
            peer.right(&asked);
        }
    });
    let tally = run(&Plan { until: Until::Requests(100), ..items(server.address) }).unwrap();
    assert!(tally.errors.reset > 0 && tally.errors.reset == tally.errors.total());
    let cause = "the server closed the connection with ENHANCE_YOUR_CALM (GOAWAY; RFC 9113, 6.8)";
    assert_eq!(tally.causes.get(cause), Some(&tally.errors.reset), "{:?}", tally.causes);
    assert_eq!(tally.sent_again, 0);
}

#[test]
fn a_connection_that_closes_without_announcement_loses_its_requests() {
    let server = super::serving(&[], |mut peer, requests| {
        while let Some(asked) = peer.ask() {
            if requests.fetch_add(1, SeqCst) == 20 {
                return peer.finish();
            }
            peer.right(&asked);
        }
    });
    let tally = run(&Plan { until: Until::Requests(100), ..items(server.address) }).unwrap();
    assert!(tally.errors.closed_early > 0, "{:?}", tally.errors);
    assert_eq!(tally.errors.closed_early, tally.errors.total());
    assert_eq!(tally.requests + tally.errors.closed_early, 100);
}

#[test]
fn in_open_loop_requests_that_no_connection_processes_are_errors() {
    let server = super::serving(&[], |mut peer, _| {
        if peer.ask().is_some() {
            std::thread::sleep(Duration::from_millis(20));
            peer.go_away(0, ErrorCode::NO_ERROR);
            peer.finish();
        }
    });
    let plan = Plan {
        connections: 3,
        drive: at(50, Arrivals::Constant),
        until: Until::Elapsed(Duration::from_secs(1)),
        timeout: Duration::from_millis(200),
        ..items(server.address)
    };
    let tally = run(&plan).unwrap();
    let open = tally.open_loop.clone().unwrap();
    assert_eq!((tally.requests, open.due), (0, 50), "{open:?}");
    assert_eq!(open.timed_out + open.unsent + open.lost, 50, "{open:?}");
    // On a busy machine most of those that are due in the window wait for a connection for too long.
    assert!(tally.errors.closed_early >= open.lost.max(3), "{:?}", tally.errors);
    let cause = "the server announced the close of a connection before any reply";
    assert_eq!(tally.causes.get(cause), Some(&tally.errors.closed_early), "{:?}", tally.causes);
    assert!(tally.connections_opened < 200, "{}", tally.connections_opened);
}

/// A server that refuses expensive requests by announcing closes.
#[test]
fn requests_that_a_server_refuses_are_asked_again_and_not_replaced_by_others() {
    let is_dear = |number: u64| number.is_multiple_of(10);
    let answered = Arc::new(AtomicU64::new(0));
    let (dear, pipelines) = (Arc::clone(&answered), [1, 8]);
    let server = super::serving(&[], move |mut peer, requests| {
        for i in 0.. {
            let Some(asked) = peer.ask() else { return };
            // It answers every second one in the end.
            if is_dear(asked.number()) && (i > 0 || requests.fetch_add(1, SeqCst).is_multiple_of(2))
            {
                peer.go_away(asked.stream.saturating_sub(2), ErrorCode::NO_ERROR);
                return peer.finish();
            }
            dear.fetch_add(u64::from(is_dear(asked.number())), SeqCst);
            peer.right(&asked);
        }
    });
    for pipeline in pipelines {
        answered.store(0, SeqCst);
        let until = Until::Requests(500);
        let tally = run(&Plan { until, pipeline, ..items(server.address) }).unwrap();
        assert!(tally.sent_again > 10, "{}", tally.sent_again);
        // Each is refused once behind others, and then alone: every second time it counts as an error.
        let (refused, answered) = (tally.errors.closed_early, answered.load(SeqCst));
        assert!(refused > 5 && answered > 5, "{refused} {answered}");
        assert!(
            (25..=75).contains(&(refused + answered)),
            "{refused} {answered}: one in ten is dear"
        );
        assert_eq!(tally.requests + refused, 500);
    }
}

#[test]
fn in_open_loop_what_a_server_refuses_late_is_not_the_lag_of_the_load() {
    let server = super::serving(&[], |mut peer, requests| {
        while let Some(asked) = peer.ask() {
            if requests.fetch_add(1, SeqCst).is_multiple_of(3) {
                std::thread::sleep(Duration::from_millis(200));
                peer.go_away(0, ErrorCode::NO_ERROR);
                return peer.finish();
            }
            peer.right(&asked);
        }
    });
    let plan = Plan {
        connections: 40,
        pipeline: 1,
        drive: at(50, Arrivals::Constant),
        until: Until::Elapsed(Duration::from_secs(1)),
        ..items(server.address)
    };
    let tally = run(&plan).unwrap();
    let open = tally.open_loop.clone().unwrap();
    assert!(tally.sent_again > 5, "{}", tally.sent_again);
    assert!(tally.histogram.max() >= 200_000_000, "it is in the latency");
    let lag = Duration::from_nanos(open.lag.value_at_quantile(0.9));
    assert!(lag < Duration::from_millis(100), "{lag:?}");
}
