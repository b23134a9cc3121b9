//! How connections close: after a closing reply, after a half-close, and after an error.

use crate::styles::{
    client::{Client, Taking},
    play::{LIMITS, STYLES, Style, play, play_double, secs},
    played::{Action, Played},
};
use regatta_service::{Limits, Program, ServiceProgram, by_hand, double, hello::Hello, http::Site};
use std::{io::ErrorKind, time::Duration};

/// The callback style reports no errors, because its driver does not need them.
fn fails_with(played: &Played, error: ErrorKind, style: Style) {
    let expected = (style != Style::Callback).then_some(error);
    assert_eq!(played.error, expected, "{style:?}");
}

#[test]
fn input_after_a_close_is_not_answered() {
    for pieces in [&["1\nend\n2\n"][..], &["1\nend\n", "2\n"], &["1\nen", "d\n2\n", "3\n"]] {
        let pieces: Vec<_> = pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
        play_double(&Client::of(&pieces), |played, how| {
            assert_eq!(played.output(), b"2\n", "{how}");
        });
    }
}

#[test]
fn a_half_closed_connection_gets_all_its_replies() {
    // 40 KB of requests. The client acknowledges the replies slowly, through a small buffer.
    let requests = b"x\n".repeat(20_000);
    let client = Client::new().send_buffer(1000).take(Taking::Steadily(400, secs(1)));
    let client = client.send(&requests).half_close();
    let reply = "error: not an integer: x\n".repeat(20_000);
    play_double(&client, |played, how| {
        assert!(played.output() == reply.as_bytes(), "{how}: {} bytes", played.output().len());
        assert_eq!((played.error, played.finished()), (None, None), "{how}: it closes at once");
    });
}

#[test]
fn lingering_stops_when_the_client_closes() {
    let client = Client::new().send("1\nend\n").pause(Duration::from_millis(700)).half_close();
    play_double(&client, |played, how| {
        assert_eq!(played.finished(), Some(Duration::ZERO), "{how}");
        assert_eq!(played.closed, Duration::from_millis(700), "{how}");
        assert_eq!(played.error, None, "{how}");
    });
}

#[test]
fn lingering_stops_after_two_seconds_even_if_the_client_keeps_sending() {
    let mut client = Client::new().send("1\nend\n");
    for _ in 0..100 {
        client = client.pause(Duration::from_millis(300)).send("more");
    }
    for client in [client, Client::new().send("1\nend\n")] {
        play_double(&client, |played, how| {
            assert_eq!((played.output(), played.closed), (b"2\n".to_vec(), secs(2)), "{how}");
            assert_eq!(played.error, None, "{how}");
        });
    }
}

#[test]
fn lingering_stops_after_a_mebibyte() {
    let mut client = Client::new().pause(secs(1)).send("end\n");
    for _ in 0..100 {
        client = client.send([0; 100_000]);
    }
    play_double(&client, |played, how| {
        assert_eq!(played.closed, secs(1), "{how}");
        let discarded = played.read - 4;
        // One read of a reactor takes 64 KiB.
        assert!((1 << 20..(1 << 20) + 65_536).contains(&discarded), "{how}: {discarded}");
    });
    // With one byte less, it continues.
    let client = Client::new().send("end\n").send(vec![0; (1 << 20) - 1]).pause(secs(1)).send("1");
    play_double(&client, |played, how| assert_eq!(played.closed, secs(1), "{how}"));
}

#[test]
fn lingering_starts_when_the_reply_is_written() {
    let client = Client::new().send_buffer(1).take(Taking::Steadily(1, secs(3))).send("11\nend\n");
    play_double(&client, |played, how| {
        // Each of the remaining two bytes waits for the previous one.
        assert_eq!(played.output(), b"22\n", "{how}");
        assert_eq!((played.finished(), played.closed), (Some(secs(6)), secs(8)), "{how}");
    });
}

/// After `Connection: close`, the client sends nothing more, so the server does not linger, unless
/// the reply had to wait for room.
#[test]
fn a_connection_closed_by_the_client_finishes_writing_first() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let slow = Client::new().send_buffer(50).take(Taking::Steadily(20, secs(1)));
    for (client, takes_long) in [(Client::new(), false), (slow, true)] {
        for style in STYLES {
            let played =
                play(style, &ServiceProgram(Site(Hello)), &client.clone().send(request), LIMITS);
            assert!(played.output().ends_with(b"784111777"), "{style:?}: the whole reply");
            let Some(((at, Action::Finished), writes)) = played.actions.split_last() else {
                panic!("{style:?}: the last action must be closing its side: {:?}", played.actions);
            };
            let last = |action: &Action| matches!(action, Action::Wrote(_, true));
            // A sequential or asynchronous loop waits for room, and later writes are not marked as
            // last.
            let lasts = if style == Style::Callback { writes.len() } else { 1 };
            assert!(writes[..lasts].iter().all(|(_, action)| last(action)), "{style:?}: the last");
            assert!(
                !writes[lasts..].iter().any(|(_, action)| last(action)),
                "{style:?}: after a wait"
            );
            assert_eq!(writes.len() > 1, takes_long, "{style:?}");
            let lingers = if takes_long { secs(2) } else { Duration::ZERO };
            assert_eq!((played.closed, played.error), (*at + lingers, None), "{style:?}");
            assert_eq!(*at > Duration::ZERO, takes_long, "{style:?}");
        }
    }
}

#[test]
fn only_the_last_write_is_marked_as_last() {
    let client = Client::new().send("1\n").pause(secs(1)).send("2\nx").pause(secs(1));
    let client = client.send("\nend\n").half_close();
    for style in STYLES {
        let played = play(style, &ServiceProgram(double::Double), &client, LIMITS);
        let lasts = played.actions.iter().filter_map(|(_, action)| match action {
            Action::Wrote(_, last) => Some(*last),
            _ => None,
        });
        assert_eq!(lasts.collect::<Vec<_>>(), [false, false, true], "{style:?}");
    }
}

#[test]
fn a_reset_closes_the_connection() {
    fn ends(program: impl Program, client: &Client, at: Duration, output: &[u8]) {
        for style in STYLES {
            let played = play(style, &program, client, LIMITS);
            assert_eq!((played.output(), played.closed), (output.to_vec(), at), "{style:?}");
            fails_with(&played, ErrorKind::ConnectionReset, style);
        }
    }
    // It waits for a request, for the rest of one, or for room.
    let waits = Client::new().send("1\n").pause(secs(3)).reset();
    let inside = Client::new().send("1\n2").pause(secs(3)).reset();
    let full =
        Client::new().send_buffer(1).take(Taking::Nothing).send("1\n").pause(secs(3)).reset();
    for (client, output) in [(waits, &b"2\n"[..]), (inside, b"2\n"), (full, b"2")] {
        ends(ServiceProgram(double::Double), &client, secs(3), output);
        ends(by_hand::Double, &client, secs(3), output);
    }
}

#[test]
fn a_reset_stops_the_lingering() {
    let client = Client::new().send("end\n").pause(secs(1)).reset();
    play_double(&client, |played, how| assert_eq!(played.closed, secs(1), "{how}"));
}

#[test]
fn signals_do_not_disturb_a_connection() {
    let client = Client::new().interrupted().send("1\n2").pause(secs(1)).send("\n3\nend\n");
    play_double(&client.pause(secs(1)).send("x").half_close(), |played, how| {
        assert_eq!((played.output(), played.error), (b"2\n4\n6\n".to_vec(), None), "{how}");
        assert_eq!(played.closed, secs(2), "{how}");
    });
    let short = Limits { idle: secs(8), request: secs(2) };
    for style in STYLES {
        let client = Client::new().interrupted().send("1");
        assert_eq!(play(style, &by_hand::Double, &client, short).closed, secs(2), "{style:?}");
    }
}
