//! Lanes over HTTP/2: what the slices count is what the server counts, with many streams, with connections that the
//! server closes, and with limits that it sets.

use super::{ends, items, peer::Got, server};
use crate::common::bounded;
use regatta_http2::frame::write;
use regatta_load::{Compiled, Drive, Lane, Over, Plan, SliceKind};
use std::{sync::atomic::AtomicBool, time::Duration};

static NEVER: AtomicBool = AtomicBool::new(false);
const SHORT: Duration = Duration::from_millis(5);
/// SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113, 6.5.2).
const STREAMS: u16 = 3;

fn open(plan: &Plan) -> Lane<'static> {
    Lane::open(plan, &Compiled::of(plan).unwrap(), &NEVER).unwrap()
}

#[test]
fn the_requests_of_all_slices_are_those_that_the_server_counts() {
    for (connections, pipeline, threads, drive) in
        [(1, 1, 1, Drive::Closed), (3, 8, 2, Drive::Closed), (4, 4, 2, bounded(5))]
    {
        let server = server(&[], |_, peer, asked| peer.right(&asked));
        let plan = Plan { connections, pipeline, threads, drive, ..items(server.address) };
        let mut lane = open(&plan);
        assert_eq!(server.requests(), connections as u64, "one exchange on each connection");
        let mut counted = 0;
        for i in 0..6 {
            let before = server.requests();
            let slice = lane.slice(SHORT, SliceKind::Counted, i);
            assert_eq!((slice.is_over, slice.errors.total()), (None, 0));
            assert_eq!(server.requests() - before, slice.requests);
            // A reply has two frame headers, and at least `item 0`.
            assert!(slice.reply_bytes >= slice.requests * 24, "{} bytes", slice.reply_bytes);
            counted += slice.requests;
        }
        let tally = lane.end().unwrap();
        assert_eq!((tally.requests, tally.histogram.len()), (counted, counted));
        assert_eq!(tally.replies, counted + connections as u64);
        assert_eq!((tally.errors.total(), tally.in_flight_limit), (0, None));
    }
}

#[test]
fn connections_that_the_server_closes_lose_nothing_and_every_request_counts_once() {
    for (most, pipeline) in [(100, 1), (100, 8), (1, 1)] {
        let (server, _) = ends::server(most, Duration::ZERO);
        let mut lane = open(&Plan { connections: 2, pipeline, ..items(server.address) });
        let mut counted = 0;
        for i in 0..10 {
            let slice = lane.slice(4 * SHORT, SliceKind::Counted, i);
            assert_eq!((slice.is_over, slice.errors.total()), (None, 0), "{most} {pipeline}");
            counted += slice.requests;
        }
        let tally = lane.end().unwrap();
        assert_eq!((tally.requests, tally.errors.total()), (counted, 0));
        assert_eq!(tally.replies, server.requests(), "{most} {pipeline}");
        assert!(tally.connections_opened >= server.requests() / most, "{most} {pipeline}");
    }
}

#[test]
fn a_limit_of_streams_is_known_when_the_lane_is_open() {
    let server = server(&[(STREAMS, 3)], |_, peer, asked| peer.right(&asked));
    let mut lane = open(&Plan { connections: 2, pipeline: 4, ..items(server.address) });
    assert_eq!(lane.in_flight_limit(), Some(3));
    let mut lane = open(&Plan { connections: 2, pipeline: 3, ..items(server.address) });
    assert_eq!(lane.in_flight_limit(), None, "it permits as many as are asked for");
}

#[test]
fn a_limit_that_the_server_lowers_later_is_in_the_result() {
    let server = server(&[], |i, peer, asked| {
        if i == 20 {
            write::settings(&mut peer.out, &[(STREAMS, 2)]);
        }
        peer.right(&asked);
    });
    let mut lane = open(&Plan { pipeline: 4, ..items(server.address) });
    assert_eq!(lane.in_flight_limit(), None);
    for i in 0..4 {
        lane.slice(SHORT, SliceKind::Counted, i);
    }
    assert_eq!(lane.in_flight_limit(), Some(2));
    assert_eq!(lane.end().unwrap().in_flight_limit, Some(2));
}

/// A server that swaps the contents of two pending requests.
#[test]
fn swapped_contents_end_the_lane() {
    let server = super::serving(&[], |mut peer, _| {
        let (mut pending, mut count) = (Vec::new(), 0);
        while let Some(got) = peer.next() {
            let Got::Asked(asked) = got else { continue };
            count += 1;
            match (count < 20, pending.pop()) {
                (true, _) => peer.right(&asked),
                (false, None) => pending.push(asked),
                (false, Some(other)) => {
                    peer.answer(asked.stream, &format!("item {}", other.number()));
                    peer.answer(other.stream, &format!("item {}", asked.number()));
                }
            }
        }
    });
    let mut lane = open(&Plan { pipeline: 4, ..items(server.address) });
    let over = (0..20).find_map(|i| lane.slice(SHORT, SliceKind::Counted, i).is_over);
    let Some(Over::WrongReply(exchange)) = over else { panic!("{over:?}") };
    assert!(exchange.received.contains("the content item "), "{exchange:?}");
}
