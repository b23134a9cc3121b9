//! The relay under a manual driver: what each side sends and receives, without sockets and clocks.
//!
//! `engine.rs` depends only on `regatta-engine`, so every driver of engines can run it.
//! `regatta-serve` runs it over real sockets (`tests/it/engines`).

mod by_hand;
#[allow(dead_code)] // some items are for tests over sockets
mod engine;
mod histories;
mod simulated;

use self::by_hand::{BOTH, ByHand};
use self::engine::{
    BACKOFF, CLIENT_FULL, CLIENT_MOST, CLIENT_WAITING, DOWN, LONG, LOST, REQUEST, Relay,
};
use regatta_engine::Conn;
use std::time::Duration;

/// One relay for each way of writing.
fn relays() -> impl Iterator<Item = ByHand<Relay>> {
    let addr = "127.0.0.1:1".parse().unwrap();
    BOTH.into_iter().map(move |writes| ByHand::new(Relay::new(addr), writes))
}

/// Relays with a client and an open upstream.
fn open() -> impl Iterator<Item = (ByHand<Relay>, Conn, Conn)> {
    relays().map(|mut hand| {
        let client = hand.client();
        let upstream = hand.dialled().expect("the first client makes it connect");
        hand.open(upstream);
        (hand, client, upstream)
    })
}

fn lines(line: &str, count: usize) -> String {
    format!("{line}\n").repeat(count)
}

#[test]
fn each_reply_goes_to_the_client_whose_request_it_answers() {
    for (mut hand, a, upstream) in open() {
        let b = hand.client();
        hand.send(a, "a1\na2\n");
        hand.send(b, "b1\n");
        hand.send(a, "a3\n");
        assert_eq!(hand.got(upstream), "a1\na2\nb1\na3\n");
        hand.send(upstream, "A1\nA2\nB1\nA3\n");
        assert_eq!(hand.got(a), "A1\nA2\nA3\n");
        assert_eq!(hand.got(b), "B1\n");
        assert_eq!(hand.dialled(), None, "one connection for all");
    }
}

#[test]
fn lines_may_be_cut_anywhere() {
    for (mut hand, a, upstream) in open() {
        let b = hand.client();
        for (i, (from_a, from_b)) in "one\ntwo\n".chars().zip("six\nten\n".chars()).enumerate() {
            hand.send(a, &from_a.to_string());
            hand.send(b, &from_b.to_string());
            let whole = ["", "", "", "one\nsix\n", "", "", "", "two\nten\n"][i];
            assert_eq!(hand.got(upstream), whole);
        }
        for byte in "1\n6\n2\n10\n".chars() {
            hand.send(upstream, &byte.to_string());
        }
        assert_eq!((hand.got(a), hand.got(b)), ("1\n2\n".into(), "6\n10\n".into()));
    }
}

#[test]
fn the_reply_to_a_disconnected_client_is_discarded_in_order() {
    for (mut hand, a, upstream) in open() {
        let b = hand.client();
        hand.send(a, "a1\na2\n");
        hand.send(b, "b1\n");
        hand.fail(a);
        assert!(hand.closed(a));
        let c = hand.client(); // it reuses the index of the first
        hand.send(c, "c1\n");
        hand.send(upstream, "A1\nA2\nB1\nC1\n");
        assert_eq!((hand.got(b), hand.got(c)), ("B1\n".into(), "C1\n".into()));
    }
}

#[test]
fn requests_wait_while_the_upstream_is_connecting() {
    for mut hand in relays() {
        let client = hand.client_with("early\n");
        hand.send(client, "also\n");
        let upstream = hand.dialled().unwrap();
        assert_eq!(hand.got(client), "");
        hand.open(upstream);
        assert_eq!(hand.got(upstream), "early\nalso\n");
        hand.send(upstream, "1\n2\n");
        assert_eq!(hand.got(client), "1\n2\n");
    }
}

#[test]
fn requests_get_an_error_if_the_upstream_cannot_be_reached() {
    for mut hand in relays() {
        let client = hand.client_with("early\n");
        let upstream = hand.dialled().unwrap();
        hand.fail(upstream);
        assert_eq!(hand.got(client), lines(DOWN, 1));
        hand.send(client, "late\nlater\n");
        assert_eq!(hand.got(client), lines(DOWN, 2));
    }
}

#[test]
fn attempts_to_connect_are_spaced_out_until_a_reply_comes() {
    for mut hand in relays() {
        let client = hand.client();
        let mut pause = BACKOFF;
        for _ in 0..5 {
            let upstream = hand.dialled().expect("an attempt");
            hand.fail(upstream);
            hand.pass(pause - Duration::from_millis(1));
            assert_eq!(hand.dialled(), None, "not before {pause:?}");
            hand.pass(Duration::from_millis(1));
            pause *= 2;
        }
        // A connection that is accepted and closed does not count as success.
        let upstream = hand.dialled().unwrap();
        hand.open(upstream);
        hand.end(upstream);
        hand.pass(pause - Duration::from_millis(1));
        assert_eq!(hand.dialled(), None);
        hand.pass(Duration::from_millis(1));
        let upstream = hand.dialled().unwrap();
        hand.open(upstream);
        hand.send(client, "x\n");
        hand.send(upstream, "X\n");
        hand.end(upstream);
        hand.pass(BACKOFF);
        assert!(hand.dialled().is_some(), "after a reply the first pause is short again");
    }
}

#[test]
fn only_unanswered_requests_get_an_error_and_a_partial_reply_is_dropped() {
    for (mut hand, a, upstream) in open() {
        let b = hand.client();
        hand.send(a, "a1\na2\n");
        hand.send(b, "b1\nb2\n");
        hand.send(a, "a3\n");
        hand.send(upstream, "A1\nA2\nB1\nB2 is not who");
        hand.end(upstream);
        assert_eq!(hand.got(a), format!("A1\nA2\n{LOST}\n"));
        assert_eq!(hand.got(b), format!("B1\n{LOST}\n"));
        assert!(hand.closed(upstream));
        hand.pass(BACKOFF);
        let upstream = hand.dialled().expect("it connects again");
        hand.send(a, "a4\n");
        hand.open(upstream);
        assert_eq!(hand.got(upstream), "a4\n", "nothing is sent twice");
        hand.send(upstream, "A4\n");
        assert_eq!(hand.got(a), "A4\n");
    }
}

#[test]
fn errors_keep_their_order_while_a_broken_upstream_is_not_closed_yet() {
    for (mut hand, client, upstream) in open() {
        hand.send(client, "sent\n");
        hand.breaks(upstream);
        hand.receives(client, "not sent\n");
        hand.turn_ends();
        assert_eq!(hand.got(client), format!("{LOST}\n{DOWN}\n"));
    }
}

#[test]
fn an_unsolicited_reply_closes_the_upstream() {
    for (mut hand, client, upstream) in open() {
        hand.send(client, "x\n");
        hand.send(upstream, "X\nY\n");
        assert_eq!(hand.got(client), "X\n");
        assert!(hand.closed(upstream));
    }
}

#[test]
fn clients_are_not_read_while_the_upstream_is_slow() {
    for (mut hand, a, upstream) in open() {
        let b = hand.client();
        hand.room(upstream, Some(0));
        let kilobyte = lines(&"x".repeat(1023), 1);
        let sent = (0..).find(|_| {
            hand.send(a, &kilobyte);
            hand.unread(a) > 0
        });
        assert_eq!(sent, Some(257), "up to the limit, and one more");
        hand.send(b, "b\n");
        assert_eq!(hand.unread(b), 2, "it waits as well");
        hand.room(upstream, None);
        assert_eq!((hand.unread(a), hand.unread(b)), (0, 0));
        assert_eq!(hand.got(upstream).len(), 258 * 1024 + 2);
    }
}

#[test]
fn a_client_that_does_not_read_is_not_read_and_then_aborted() {
    for (mut hand, slow, upstream) in open() {
        let other = hand.client();
        hand.room(slow, Some(0));
        hand.send(slow, &lines("x", CLIENT_WAITING));
        let reply = lines(&"y".repeat(4095), 1);
        let most = CLIENT_MOST / reply.len();
        hand.send(upstream, &reply.repeat(CLIENT_FULL / reply.len() + 1));
        hand.send(slow, "more\n");
        assert!(hand.unread(slow) > 0, "it is not read");
        hand.send(upstream, &reply.repeat(most - CLIENT_FULL / reply.len() - 1));
        assert!(!hand.closed(slow), "its pending replies are within the limit");
        hand.send(upstream, &reply);
        assert!(hand.closed(slow));
        hand.send(other, "z\n");
        hand.send(upstream, &reply.repeat(CLIENT_WAITING - most - 1));
        assert_eq!(hand.got(other), "", "its replies keep their places");
        hand.send(upstream, "Z\n");
        assert_eq!(hand.got(other), "Z\n");
    }
}

#[test]
fn a_client_with_too_many_pending_requests_is_not_read_until_it_has_replies() {
    for (mut hand, client, upstream) in open() {
        hand.send(client, &lines("x", CLIENT_WAITING));
        hand.send(client, "x\n");
        assert_eq!(hand.unread(client), 2);
        hand.send(upstream, "X\n");
        assert_eq!(hand.unread(client), 0);
    }
}

#[test]
fn an_overlong_request_closes_only_its_client() {
    for (mut hand, client, upstream) in open() {
        let other = hand.client();
        hand.send(client, &format!("1\n{}", "y".repeat(REQUEST)));
        hand.send(other, "x\n");
        hand.send(client, "y");
        assert_eq!(hand.got(client), "", "the reply to its first request comes before the error");
        hand.send(upstream, "one\nX\n");
        assert_eq!(hand.got(client), format!("one\n{LONG}\n"));
        assert!(hand.finished(client));
        assert_eq!(hand.got(other), "X\n");
    }
}

#[test]
fn a_half_closed_client_gets_its_pending_replies() {
    for (mut hand, client, upstream) in open() {
        hand.send(client, "1\n2\nhalf a line");
        hand.end(client);
        hand.send(upstream, "one\n");
        assert_eq!(hand.got(client), "one\n");
        assert!(!hand.finished(client));
        hand.send(upstream, "two\n");
        assert_eq!(hand.got(client), "two\n");
        assert!(hand.closed(client));
        assert_eq!(hand.core.clients(), 0);
    }
}

#[test]
fn a_stop_waits_for_the_replies_to_forwarded_requests() {
    for (mut hand, client, upstream) in open() {
        let idle = hand.client();
        hand.send(client, "1\n2\n");
        hand.stop(Duration::from_secs(5));
        assert!(hand.closed(idle));
        assert_eq!(hand.core.clients(), 1);
        hand.send(upstream, "one\ntwo\n");
        assert_eq!(hand.got(client), "one\ntwo\n");
        assert_eq!(hand.core.clients(), 0, "the upstream does not count");
    }
}

#[test]
fn a_stop_cuts_clients_whose_requests_stay_unanswered() {
    for (mut hand, client, _) in open() {
        hand.send(client, "1\n");
        hand.stop(Duration::from_secs(5));
        hand.pass(Duration::from_secs(5));
        assert_eq!(hand.core.clients(), 0);
    }
}
