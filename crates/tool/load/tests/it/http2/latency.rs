//! The latency of a request is that of its own stream, in whatever order responses arrive.

use super::{
    items,
    peer::{Asked, Got},
};
use crate::common::{Server, assert_undisturbed, at, bounded, run};
use regatta_load::{Arrivals, Moment, Plan, Tally, Until, WarmUp};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Arc, Mutex, atomic::AtomicBool},
    thread,
    time::{Duration, Instant},
};

/// The delays of requests, by their number, in milliseconds.
const DELAYS: [u64; 4] = [640, 40, 440, 240];

/// The times from the arrival of each request to its response, in milliseconds, as the server saw them.
type Times = Arc<Mutex<Vec<u64>>>;

/// A server that answers each request after its delay.
fn server() -> (Server, Times) {
    let times = Times::default();
    let noted = times.clone();
    let server = super::serving(&[], move |mut peer, _| {
        peer.wait_at_most(Duration::from_millis(1));
        let mut due: BinaryHeap<Reverse<(Instant, u32)>> = BinaryHeap::new();
        let mut pending: Vec<(Instant, Asked)> = Vec::new();
        while let Some(got) = peer.next() {
            let now = Instant::now();
            if let Got::Asked(asked) = got {
                let delay = DELAYS[(asked.number() % 4) as usize];
                due.push(Reverse((now + Duration::from_millis(delay), asked.stream)));
                pending.push((now, asked));
            }
            while let Some(&Reverse((at, stream))) = due.peek()
                && at <= now
            {
                due.pop();
                let nth = pending.iter().position(|(_, asked)| asked.stream == stream).unwrap();
                let (since, asked) = pending.swap_remove(nth);
                noted.lock().unwrap().push((now - since).as_millis() as u64);
                peer.right(&asked);
            }
        }
    });
    (server, times)
}

/// Checks that the latencies have the quantiles that the server saw, to within 100 ms, which a busy machine
/// may add. Few requests do not count, e.g. those that opened the connections, so some quantiles may
/// be off. If latencies belonged to other requests, they would lie near their mean.
fn assert_matches(tally: &Tally, times: &Times) {
    assert_undisturbed(tally);
    let mut times = times.lock().unwrap().clone();
    times.sort_unstable();
    assert!(tally.histogram.len() >= 80 && times.len() as u64 <= tally.histogram.len() + 12);
    let both = (1..20).map(|i| {
        let seen = tally.histogram.value_at_quantile(f64::from(i) / 20.0) / 1_000_000;
        (seen, times[times.len() * i as usize / 20])
    });
    let both: Vec<(u64, u64)> = both.collect();
    let near = both.iter().filter(|(seen, planted)| seen.abs_diff(*planted) <= 100).count();
    assert!(near >= 15, "{both:?}");
}

#[test]
fn in_closed_loop() {
    let (server, times) = server();
    let plan = Plan { pipeline: 8, until: Until::Requests(120), ..items(server.address) };
    let tally = run(&plan).unwrap();
    assert_eq!(tally.histogram.len(), 120);
    assert_matches(&tally, &times);
}

#[test]
fn with_a_bound_over_all_connections() {
    let (server, times) = server();
    let until = Until::Elapsed(Duration::from_secs(4));
    let plan =
        Plan { connections: 2, pipeline: 8, drive: bounded(9), until, ..items(server.address) };
    assert_matches(&run(&plan).unwrap(), &times);
}

#[test]
fn in_open_loop() {
    let (server, times) = server();
    let plan = Plan {
        pipeline: 128,
        drive: at(100, Arrivals::Constant),
        until: Until::Elapsed(Duration::from_secs(1)),
        ..items(server.address)
    };
    let tally = run(&plan).unwrap();
    assert_eq!(tally.histogram.len(), 100);
    assert_matches(&tally, &times);
}

/// The second response of each connection comes a little later than the timeout, each at another moment
/// between two checks of the load.
#[test]
fn a_response_that_is_a_little_late_is_a_timeout() {
    const CONNECTIONS: u64 = 8;
    let timeout = Duration::from_secs(1);
    let begun = Arc::new(Mutex::new(0));
    let server = super::server(&[], move |i, peer, asked| {
        if i == 1 {
            let nth = {
                let mut begun = begun.lock().unwrap();
                *begun += 1;
                *begun
            };
            thread::sleep(timeout + Duration::from_millis(20 + 10 * nth));
        }
        peer.right(&asked);
    });
    let plan = Plan {
        connections: CONNECTIONS as usize,
        pipeline: 1,
        timeout,
        until: Until::Requests(2 * CONNECTIONS),
        ..items(server.address)
    };
    let tally = run(&plan).unwrap();
    assert_eq!((tally.replies, tally.errors.timeout), (CONNECTIONS, CONNECTIONS));
    assert_eq!((tally.histogram.len(), tally.errors.total()), (CONNECTIONS, CONNECTIONS));
}

/// The load pauses for longer than the timeout, while replies wait to be read.
#[test]
fn a_reply_that_waited_for_the_load_is_not_late() {
    let timeout = Duration::from_secs(1);
    let (lines, streams) =
        (Server::double(), super::server(&[], |_, peer, asked| peer.right(&asked)));
    for plan in [crate::common::plan(lines.address), items(streams.address)] {
        let plan = Plan {
            connections: 4,
            timeout,
            warm_up: WarmUp::Fixed(Duration::from_millis(100)),
            ..plan
        };
        let mut pauses = |moment: Moment| {
            if moment == Moment::BeforeWindow {
                thread::sleep(2 * timeout);
            }
        };
        let never = AtomicBool::new(false);
        let tally = regatta_load::run(&plan, &mut pauses, &mut |_| {}, &never).unwrap();
        assert_undisturbed(&tally);
    }
}
