//! Servers that answer before a request is complete are detected, and honest ones are not accused.

use crate::common::{Server, assert_undisturbed, at, bounded, double, plan, run, workload};
use regatta_load::{Arrivals, Drive, Moment, Plan, WarmUp};
use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A server that answers requests before their newline arrives, while `hurries` returns true: it guesses
/// that the received bytes are the complete line.
fn hasty(hurries: impl Fn() -> bool + Send + Sync + 'static) -> Server {
    Server::start(move |mut stream: TcpStream, requests: &AtomicU64| {
        let mut line = Vec::new();
        let mut answered = false;
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            for &byte in &buffer[..n] {
                if byte != b'\n' {
                    line.push(byte);
                    continue;
                }
                if !answered {
                    requests.fetch_add(1, SeqCst);
                    let text = double(str::from_utf8(&line).unwrap());
                    if stream.write_all(text.as_bytes()).is_err() {
                        return;
                    }
                }
                (answered, line) = (false, Vec::new());
            }
            if !line.is_empty() && !answered && hurries() {
                answered = true;
                requests.fetch_add(1, SeqCst);
                let text = double(str::from_utf8(&line).unwrap());
                if stream.write_all(text.as_bytes()).is_err() {
                    return;
                }
            }
        }
    })
}

fn withholding(server: &Server) -> Plan {
    let warm_up = WarmUp::Fixed(Duration::from_millis(200));
    Plan { connections: 16, warm_up, withholds: true, ..plan(server.address) }
}

#[test]
fn a_reply_before_the_last_byte_of_its_request_disqualifies() {
    for drive in [Drive::Closed, bounded(8), Drive::Churn, at(2_000, Arrivals::Poisson)] {
        let server = hasty(|| true);
        let tally = run(&Plan { drive, ..withholding(&server) }).unwrap();
        let wrong = tally.first_wrong.clone().unwrap_or_else(|| panic!("{drive:?}: not found"));
        assert!(wrong.expected.contains("last byte of the request"), "{drive:?} {wrong:?}");
        // The exchange shows the request that was answered, not the one before it.
        let number = |text: &str| text.trim_end_matches("\\n").parse::<i128>().ok();
        assert!(!wrong.sent.ends_with("\\n") && number(&wrong.sent).is_some(), "{wrong:?}");
        let (sent, received) = (number(&wrong.sent), number(&wrong.received));
        assert_eq!(sent.map(|sent| 2 * sent), received, "{drive:?} {wrong:?}");
        assert!(tally.errors.wrong_reply > 0);
    }
}

/// Over HTTP a reply may come before its request is complete, e.g. to refuse a long content, but not to
/// a GET that lacks the last byte of its head.
#[test]
fn an_answer_to_an_incomplete_head_disqualifies() {
    let server = Server::start(|mut stream: TcpStream, _: &AtomicU64| {
        let mut buffer = [0; 65_536];
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            if n == 1 {
                continue;
            }
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            let body = format!("Hello. The time is {now}");
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length:";
            let reply = format!("{head} {}\r\n\r\n{body}", body.len());
            if stream.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    });
    let plan =
        Plan { workload: workload("hello"), host: "localhost".into(), ..withholding(&server) };
    let wrong = run(&plan).unwrap().first_wrong.expect("a wrong reply");
    assert!(wrong.expected.contains("last byte of the request"), "{wrong:?}");
    assert!(
        wrong.sent.starts_with("GET") && wrong.received.starts_with("HTTP/1.1 200"),
        "{wrong:?}"
    );
}

/// The server is honest during the warm-up, and guesses later.
#[test]
fn a_server_that_guesses_only_in_the_window_is_detected_after_it() {
    let is_open = Arc::new(AtomicBool::new(false));
    let in_window = is_open.clone();
    let server = hasty(move || in_window.load(SeqCst));
    let warm_up = WarmUp::Fixed(Duration::from_millis(20));
    let plan = Plan { warm_up, ..withholding(&server) };
    let never = AtomicBool::new(false);
    let mut opens = |moment: Moment| {
        if moment == Moment::WindowOpens {
            is_open.store(true, SeqCst);
        }
    };
    let tally = regatta_load::run(&plan, &mut opens, &mut |_| {}, &never).unwrap();
    let wrong = tally.first_wrong.clone().expect("a wrong reply");
    assert!(wrong.expected.contains("last byte of the request"), "{wrong:?}");
}

#[test]
fn an_honest_server_passes_under_every_load_that_withholds() {
    for (pipeline, drive) in [
        (1, Drive::Closed),
        (16, Drive::Closed),
        (2, bounded(8)),
        (1, Drive::Churn),
        (2, at(3_000, Arrivals::Constant)),
    ] {
        for connections in [1, 16] {
            let server = Server::double();
            let plan = Plan { pipeline, connections, drive, ..withholding(&server) };
            let tally = run(&plan).unwrap();
            assert_undisturbed(&tally);
            assert_eq!(tally.timeouts_in_window, 0, "{drive:?}");
            // No request of the window waits until the timeout.
            let slowest = Duration::from_nanos(tally.histogram.max());
            assert!(tally.histogram.len() > 20 && slowest < Duration::from_secs(2), "{slowest:?}");
        }
    }
}
