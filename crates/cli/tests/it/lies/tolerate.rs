//! Replies counted by status, and a tolerated share of errors.

use crate::lies::{
    load,
    server::{Server, double, reply},
};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Makes a wrong reply.
type Odd = fn() -> String;

/// Starts a server that sends `odd()` as every 100th reply.
fn one_in_a_hundred(odd: impl Fn() -> String + Send + Sync + 'static) -> Server {
    let asked = AtomicU64::new(0);
    Server::http(move |_, _| {
        let is_odd = asked.fetch_add(1, SeqCst) % 100 == 50;
        (if is_odd { odd() } else { reply(200, "ok") }, true)
    })
}

#[test]
fn statuses_are_counted() {
    let asked = AtomicU64::new(0);
    let server = Server::http(move |_, _| {
        let status = [200, 201, 200, 404][asked.fetch_add(1, SeqCst) as usize % 4];
        (reply(status, "ok"), true)
    });
    let more = ["-n", "400", "-c", "1", "--expect-status", "any"];
    let ended = load(&server.http_url(), &more).with_status(0);
    assert_eq!(ended.line("statuses"), "200: 200 (50.0%), 201: 100 (25.0%), 404: 100 (25.0%)");
    let ended = load(&server.http_url(), &[&more[..], &["--json", "-"]].concat()).with_status(0);
    let statuses = serde_json::json!({"200": 200, "201": 100, "404": 100});
    assert_eq!(ended.json()["statuses"], statuses);
}

#[test]
fn a_load_continues_after_a_tolerated_share_of_unexpected_statuses() {
    let server = one_in_a_hundred(|| reply(503, "busy"));
    for shape in [&["-c", "4"][..], &["-c", "2", "-p", "8"], &["-c", "4", "--churn"]] {
        let more = [&["-n", "1000", "--tolerate", "2%"], shape].concat();
        let churns = shape.contains(&"--churn");
        let server = if churns { closing() } else { one_in_a_hundred(|| reply(503, "busy")) };
        let ended = load(&server.http_url(), &more).with_status(0);
        assert_eq!(ended.line("statuses"), "200: 990 (99.0%), 503: 10 (1.0%)", "{shape:?}");
        assert_eq!(ended.line("errors"), "10 wrong replies (1.0%, 2% tolerated)");
        assert!(ended.line("requests").starts_with("990 in "), "{}", ended.stdout);
        // One of them is shown.
        assert!(ended.line("received").contains("503"), "{}", ended.stdout);
    }
    let json = ["-n", "1000", "-c", "4", "--tolerate", "2%", "--json", "-"];
    let json = load(&server.http_url(), &json).with_status(0).json();
    assert_eq!(json["statuses"], serde_json::json!({"200": 990, "503": 10}));
    assert_eq!((&json["errors"]["wrong_reply"], &json["tolerated"]), (&10.into(), &0.02.into()));
}

#[test]
fn a_burst_continues_after_tolerated_errors() {
    let server = one_in_a_hundred(|| reply(503, "busy"));
    let ended = load(&server.http_url(), &["--burst", "2x5x100", "--tolerate", "2%"]);
    let ended = ended.with_status(0);
    assert_eq!(ended.line("statuses"), "200: 990 (99.0%), 503: 10 (1.0%)");
    assert_eq!(ended.line("errors"), "10 wrong replies (1.0%, 2% tolerated)");
}

/// Like [`one_in_a_hundred`], but closes after each reply.
fn closing() -> Server {
    let asked = AtomicU64::new(0);
    Server::http(move |_, _| {
        let is_odd = asked.fetch_add(1, SeqCst) % 100 == 50;
        (reply(if is_odd { 503 } else { 200 }, "ok"), false)
    })
}

#[test]
fn more_errors_than_tolerated_fail_the_load_at_its_end() {
    let server = one_in_a_hundred(|| reply(503, "busy"));
    let more = ["-n", "1000", "-c", "4", "--tolerate", "0.5%"];
    let ended = load(&server.http_url(), &more).with_status(1);
    assert_eq!(ended.line("statuses"), "200: 990 (99.0%), 503: 10 (1.0%)");
    assert!(ended.line("verdict").contains("0.5%"), "{}", ended.stdout);
}

#[test]
fn without_tolerate_the_first_unexpected_reply_ends_the_run() {
    let server = one_in_a_hundred(|| reply(503, "busy"));
    let ended = load(&server.http_url(), &["-n", "1000", "-c", "1"]).with_status(1);
    assert!(ended.line("received").starts_with("HTTP/1.1 503"), "{}", ended.stdout);
    assert!(ended.line("requests").starts_with("50 in "), "{}", ended.stdout);
}

/// Including those after which the connection cannot be used again.
#[test]
fn wrong_and_missing_replies_are_tolerated() {
    let long = || "HTTP/1.1 200 -\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n".into();
    let kinds: [(Odd, &str); 3] = [
        (long, "wrong replies"),
        (|| "what?\r\n\r\n".into(), "wrong replies"),
        (String::new, "timeouts"),
    ];
    for (odd, kind) in kinds {
        let server = one_in_a_hundred(odd);
        let more = ["-n", "1000", "-c", "4", "--expect-body", "ok", "--timeout", "300ms"];
        let ended = load(&server.http_url(), &[&more[..], &["--tolerate", "2%"]].concat());
        let ended = ended.with_status(0);
        assert_eq!(ended.line("errors"), format!("10 {kind} (1.0%, 2% tolerated)"));
        assert!(ended.line("requests").starts_with("990 in "), "{}", ended.stdout);
    }
    let asked = AtomicU64::new(0);
    let server = Server::lines(move |_, _, line| {
        let is_odd = asked.fetch_add(1, SeqCst) % 100 == 50;
        Some(if is_odd { "no\n".into() } else { double(line) })
    });
    let more = ["-n", "1000", "-c", "4", "--tolerate", "2%"];
    let ended = load(&server.line_url(), &more).with_status(0);
    assert_eq!(ended.line("errors"), "10 wrong replies (1.0%, 2% tolerated)");
}

#[test]
fn at_a_rate_an_unexpected_reply_counts_as_lost() {
    let server = one_in_a_hundred(|| reply(503, "busy"));
    let more = ["-c", "8", "-r", "500/s", "--arrivals", "constant", "-d", "1s", "--warm-up", "0s"];
    let json = [&more[..], &["--tolerate", "2%", "--json", "-"]].concat();
    let json = load(&server.http_url(), &json).with_status(0).json();
    let open = &json["open_loop"];
    assert_eq!((&open["due"], &open["lost"]), (&500.into(), &json["statuses"]["503"]));
    assert_eq!(json["requests"], 495, "{json}");
}

#[test]
fn an_invalid_share_is_refused() {
    let server = one_in_a_hundred(String::new);
    for share in ["1", "0%", "101%", "x%"] {
        let ended = load(&server.http_url(), &["--tolerate", share]).with_status(2);
        assert!(ended.stderr.contains("percentage"), "{}", ended.stderr);
    }
}
