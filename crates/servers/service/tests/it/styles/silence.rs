//! Timeouts of clients that are silent, slow, or acknowledge nothing.

use crate::styles::{
    client::{Client, Taking},
    play::{LIMITS, STYLES, play, play_double, secs},
    played::Played,
};
use regatta_service::{Program, ServiceProgram, by_hand, double};
use std::time::Duration;

const IDLE: Duration = LIMITS.idle;

/// Asserts that it was closed after the idle timeout, and late by at most half of it.
fn closes_in_time(played: &Played, active: Duration, how: &str) {
    let silence = played.closed.checked_sub(active);
    let in_time = silence.is_some_and(|silence| (IDLE..=IDLE * 3 / 2).contains(&silence));
    assert!(in_time, "{how}: last active at {active:?}, closed at {:?}", played.closed);
}

#[test]
fn a_client_that_sends_nothing_is_closed_after_the_idle_timeout() {
    play_double(&Client::new(), |played, how| {
        closes_in_time(played, Duration::ZERO, how);
        assert_eq!(played.output(), b"", "{how}");
    });
    let client = Client::new().pause(secs(50)).send("1\n").pause(secs(60)).send("2\n3\n");
    play_double(&client, |played, how| {
        closes_in_time(played, secs(110), how);
        assert_eq!(played.output(), b"2\n4\n6\n", "{how}");
    });
}

#[test]
fn a_client_inside_a_request_is_closed_after_the_request_timeout() {
    let request = LIMITS.request;
    let drips = |client: Client| (0..100).fold(client, |client, _| client.pause(secs(1)).send("1"));
    for (client, since) in [
        (Client::new().send("1"), secs(0)),
        (Client::new().pause(secs(40)).send("1\n2\n3"), secs(40)),
        (drips(Client::new()), secs(1)),
        // It completes a request and starts another one at once.
        (Client::new().send("1").pause(secs(7)).send("2\n3"), secs(7)),
        // After a slow request, the next one has its full time.
        (Client::new().send("1").pause(secs(7)).send("\n").pause(secs(40)).send("3"), secs(47)),
        (drips(Client::new().send("1\n").pause(secs(4))), secs(5)),
    ] {
        play_double(&client, |played, how| {
            let late = played.closed.checked_sub(since + request);
            let in_time = late.is_some_and(|late| late <= Duration::from_millis(1));
            assert!(in_time, "{how}: since {since:?}, closed at {:?}", played.closed);
        });
    }
}

#[test]
fn after_a_slow_request_the_idle_timeout_applies_again() {
    let client = Client::new().send("1").pause(secs(7)).send("\n").pause(secs(60)).send("2\n");
    play_double(&client, |played, how| {
        assert_eq!(played.output(), b"2\n4\n", "{how}");
        closes_in_time(played, secs(67), how);
    });
}

/// 20 000 bytes of replies.
fn requests() -> Vec<u8> {
    b"x\n".repeat(800)
}

#[test]
fn a_client_that_acknowledges_nothing_is_closed_after_the_idle_timeout() {
    // There is room for all replies, for some, or for one byte.
    for buffer in [1 << 20, 7000, 1] {
        let client = Client::new().send_buffer(buffer).take(Taking::Nothing).send(requests());
        play_double(&client, |played, how| closes_in_time(played, Duration::ZERO, how));
    }
    // After a half-close, the kernel delivers what it has room for.
    for buffer in [7000, 1] {
        let client = Client::new().send_buffer(buffer).take(Taking::Nothing).send(requests());
        let client = client.half_close();
        play_double(&client, |played, how| closes_in_time(played, Duration::ZERO, how));
    }
}

#[test]
fn a_client_that_reads_slowly_but_steadily_is_not_closed_while_output_is_pending() {
    for (bytes, every) in [(100, secs(1)), (700, IDLE / 4), (2000, IDLE * 7 / 8)] {
        let client = Client::new().send_buffer(4000).take(Taking::Steadily(bytes, every));
        play_double(&client.send(requests()).half_close(), |played, how| {
            assert_eq!(played.output().len(), 20_000, "{how}, {bytes} bytes each {every:?}");
            assert_eq!(played.error, None, "{how}");
        });
    }
}

#[test]
fn a_client_that_stops_reading_is_closed_after_the_idle_timeout() {
    let client = Client::new().send_buffer(4000).take(Taking::Steadily(100, secs(1)));
    let client = client.send(requests()).pause(secs(100)).take(Taking::Nothing);
    play_double(&client, |played, how| {
        closes_in_time(played, secs(100), how);
        assert_eq!(played.output().len(), 4000 + 100 * 100, "{how}");
    });
}

/// All replies fit into the kernel's buffer, so no output is pending.
#[test]
fn a_silent_client_that_still_acknowledges_replies_is_not_closed() {
    for (bytes, every) in [(50, secs(1)), (1000, IDLE / 5), (4000, IDLE / 2), (4000, IDLE * 7 / 8)]
    {
        let client = Client::new().take(Taking::Steadily(bytes, every)).send(requests());
        let takes_all = every * (20_000 / bytes as u32);
        // It sends another request just before its timeout.
        let active = takes_all + IDLE - secs(1);
        play_double(&client.pause(active).send("1\n"), |played, how| {
            assert_eq!(played.output().len(), 20_002, "{how}, {bytes} bytes each {every:?}");
            assert!(played.closed >= active + IDLE, "{how}: closed at {:?}", played.closed);
        });
    }
}

#[test]
fn a_silent_client_that_has_acknowledged_everything_is_closed_after_the_idle_timeout() {
    for (bytes, every) in [(50, secs(1)), (1000, IDLE / 5), (4000, IDLE / 2), (4000, IDLE * 7 / 8)]
    {
        let client = Client::new().take(Taking::Steadily(bytes, every)).send(requests());
        let takes_all = every * (20_000 / bytes as u32);
        play_double(&client, |played, how| closes_in_time(played, takes_all, how));
    }
}

#[test]
fn the_request_timeout_follows_the_limits() {
    fn closed(program: impl Program, client: &Client) {
        let limits = regatta_service::Limits { idle: secs(16), request: secs(3) };
        for style in STYLES {
            let closed = play(style, &program, client, limits).closed;
            assert_eq!(closed, secs(3), "{style:?}");
        }
    }
    closed(ServiceProgram(double::Double), &Client::new().send("1"));
    closed(by_hand::Dialogue, &Client::new().send("1"));
}
