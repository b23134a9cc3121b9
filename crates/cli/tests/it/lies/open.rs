//! The figures that an open loop reports.

use crate::lies::{
    load,
    server::{Server, double},
};
use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
    time::Duration,
};

/// The replies to the warm-up's requests arrive inside the window.
#[test]
fn at_a_rate_no_reply_of_the_warm_up_is_counted_as_a_request() {
    const CONNECTIONS: u64 = 100;
    let asked = AtomicU64::new(0);
    let server = Server::lines(move |_, _, line| {
        let nth = asked.fetch_add(1, SeqCst);
        // Each connection opens with a request; the next 40 are of the warm-up.
        if (CONNECTIONS..CONNECTIONS + 40).contains(&nth) {
            thread::sleep(Duration::from_millis(500));
        }
        Some(double(line))
    });
    let connections = CONNECTIONS.to_string();
    let more = ["-c", &connections, "-r", "200/s", "--arrivals", "constant", "-d", "1s"];
    let more = [&more[..], &["--warm-up", "300ms", "--json", "/dev/stderr"]].concat();
    let ended = load(&server.line_url(), &more).with_status(0);
    let result: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(result["open_loop"]["due"], 200);
    assert_eq!(result["requests"], 200, "{result}");
    assert!(ended.line("requests").starts_with("200 of 200 "), "{}", ended.stdout);
}

#[test]
fn no_wait_is_reported_as_zero() {
    let server = Server::lines(|_, _, line| Some(double(line)));
    let more = ["-c", "32", "-r", "50/s", "-d", "1s", "--warm-up", "0s"];
    let ended = load(&server.line_url(), &more).with_status(0);
    // In parentheses if the machine was so busy that latencies are void.
    let wait = ended.line("wait");
    assert!(wait.trim_start_matches('(').starts_with("p50 0 "), "{}", ended.stdout);
    let ended = load(&server.line_url(), &[&more[..], &["--json", "-"]].concat()).with_status(0);
    assert_eq!(ended.json()["wait_ns"]["p50"], 0);
}
