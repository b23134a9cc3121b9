//! Surplus bytes after the last reply of a connection.

use crate::lies::{
    load,
    server::{Server, double, reply},
};
use std::{
    io::Write,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
    time::Duration,
};

/// Answers the lines of each connection, and the one with number `last` twice, 3 ms apart.
fn twice(last: u64) -> Server {
    Server::lines(move |mut stream, i, line| {
        let reply = double(line);
        if i + 1 == last {
            stream.write_all(reply.as_bytes()).ok()?;
            thread::sleep(Duration::from_millis(3));
        }
        Some(reply)
    })
}

#[test]
fn a_counted_churn_finds_replies_that_are_sent_twice() {
    let server = twice(1);
    for processes in ["1", "2"] {
        let more = ["-n", "200", "-c", "8", "--churn", "--processes", processes];
        let ended = load(&server.line_url(), &more).with_status(1);
        assert!(ended.line("errors").contains("wrong repl"), "{}", ended.stdout);
    }
}

#[test]
fn a_timed_churn_finds_replies_that_are_sent_twice() {
    let server = twice(1);
    let more = ["-d", "300ms", "--warm-up", "0s", "-c", "8", "--churn"];
    load(&server.line_url(), &more).with_status(1);
}

#[test]
fn a_burst_finds_a_last_reply_that_is_sent_twice() {
    let server = twice(5);
    load(&server.line_url(), &["--burst", "1x8x5"]).with_status(1);
    load(&server.line_url(), &["--burst", "2x4x5", "--processes", "2"]).with_status(1);
}

#[test]
fn junk_after_the_last_reply_of_a_counted_run_is_found() {
    let asked = AtomicU64::new(0);
    let server = Server::lines(move |mut stream, _, line| {
        if asked.fetch_add(1, SeqCst) < 99 {
            return Some(double(line));
        }
        stream.write_all(double(line).as_bytes()).ok()?;
        thread::sleep(Duration::from_millis(10));
        Some("junk\n".into())
    });
    let ended = load(&server.line_url(), &["-n", "100", "-c", "4"]).with_status(1);
    assert_eq!(ended.line("received"), "junk\\n");
}

#[test]
fn a_server_that_ignores_connection_close_is_found() {
    let server = Server::http(|_, _| (reply(200, "ok"), true));
    for processes in ["1", "2"] {
        let more = ["-n", "40", "-c", "4", "--churn", "--processes", processes];
        let ended = load(&server.http_url(), &more).with_status(1);
        assert!(ended.line("sent").contains("Connection: close"), "{}", ended.stdout);
        assert!(ended.line("expected").contains("close the connection"), "{}", ended.stdout);
    }
}

#[test]
fn a_server_that_closes_after_connection_close_passes() {
    let server = Server::http(|_, head| {
        let reply = reply(200, "ok").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        (reply, !head.contains("Connection: close"))
    });
    load(&server.http_url(), &["-n", "40", "-c", "4", "--churn"]).with_status(0);
    // The server need not announce the close.
    let server = Server::http(|_, head| (reply(200, "ok"), !head.contains("Connection: close")));
    load(&server.http_url(), &["-n", "40", "-c", "4", "--churn"]).with_status(0);
}
