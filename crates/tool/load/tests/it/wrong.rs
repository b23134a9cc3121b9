//! Wrong servers: every wrong reply is detected, reported in full, and ends the run.

use crate::common::{Server, answer_lines, double, plan, run};
use regatta_load::{LoadObserver, Moment, Plan, Tally, Until};
use rustix::net::connect_unspec;
use std::{
    io::Write,
    net::TcpStream,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

/// Runs a plan until the wrong reply. The run must end long before its duration.
fn wrong(plan: &Plan) -> Tally {
    let plan = Plan { until: Until::Elapsed(Duration::from_secs(20)), ..plan.clone() };
    let tally = run(&plan).unwrap();
    assert!(tally.window_ns < 15_000_000_000, "the run went on after the wrong reply");
    assert!(tally.errors.wrong_reply >= 1);
    assert!(!tally.interrupted && !tally.server_died);
    tally
}

#[test]
fn a_wrong_millionth_reply_is_found_and_the_exchange_is_reported() {
    let truth = Arc::new(Mutex::new(String::new()));
    let last = truth.clone();
    let server = Server::lines(move |i, line| {
        if i == 999_999 {
            *last.lock().unwrap() = line.to_owned();
            return Some(double(line).replacen('\n', "0\n", 1));
        }
        Some(double(line))
    });
    let tally = wrong(&Plan { pipeline: 2_000, ..plan(server.address) });
    let line = truth.lock().unwrap().clone();
    let right = line.parse::<i128>().unwrap() * 2;
    let exchange = tally.first_wrong.clone().unwrap();
    assert_eq!(exchange.reply_index, 999_999);
    assert_eq!(exchange.sent, format!("{line}\\n"));
    assert_eq!(exchange.expected, format!("{right}\\n"));
    assert_eq!(exchange.received, format!("{right}0\\n"));
    assert_eq!(tally.errors.wrong_reply, 1);
    assert!(tally.requests <= 999_999);
}

#[test]
fn a_duplicated_reply_is_wrong() {
    let server = Server::lines(|i, line| {
        let reply = double(line);
        Some(if i == 50 { reply.repeat(2) } else { reply })
    });
    for pipeline in [1, 16] {
        let exchange = wrong(&Plan { pipeline, ..plan(server.address) }).first_wrong.unwrap();
        assert_eq!(exchange.reply_index, 51, "{exchange:?}");
    }
}

#[test]
fn a_missing_reply_is_wrong_when_the_next_one_comes() {
    let server = Server::lines(|i, line| Some(if i == 50 { String::new() } else { double(line) }));
    let exchange = wrong(&Plan { pipeline: 4, ..plan(server.address) }).first_wrong.unwrap();
    assert_eq!(exchange.reply_index, 50);
    assert_ne!(exchange.received, exchange.expected);
}

#[test]
fn reordered_replies_are_wrong() {
    let server = Server::start(|stream, requests| {
        let kept = Mutex::new(String::new());
        answer_lines(stream, requests, |i, line| {
            let mut kept = kept.lock().unwrap();
            Some(match i {
                50 => {
                    *kept = double(line);
                    String::new()
                }
                51 => double(line) + &kept,
                _ => double(line),
            })
        });
    });
    let exchange = wrong(&Plan { pipeline: 4, ..plan(server.address) }).first_wrong.unwrap();
    assert_eq!(exchange.reply_index, 50);
}

#[test]
fn a_float_is_not_the_exact_double() {
    let server = Server::lines(|_, line| Some(format!("{}\n", line.parse::<f64>().unwrap() * 2.0)));
    let exchange = wrong(&Plan { connections: 4, ..plan(server.address) }).first_wrong.unwrap();
    assert!(exchange.sent.len() > 15, "a double is exact up to 2^53: {exchange:?}");
}

#[test]
fn a_banner_before_any_request_is_wrong() {
    let server = Server::start(|mut stream, requests| {
        let _ = stream.write_all(b"welcome\n");
        answer_lines(stream, requests, |_, line| Some(double(line)));
    });
    let exchange = wrong(&plan(server.address)).first_wrong.unwrap();
    assert_eq!((exchange.received.as_str(), exchange.reply_index), ("welcome\\n", 0));
}

/// Sends bytes on every connection once all requests are answered.
struct Late(Arc<Mutex<Vec<TcpStream>>>);

impl LoadObserver for Late {
    fn at(&mut self, moment: Moment) {
        if moment == Moment::ConnectionsOpen {
            for stream in self.0.lock().unwrap().iter_mut() {
                stream.write_all(b"bye\n").unwrap();
            }
        }
    }
}

#[test]
fn unsolicited_bytes_on_idle_connections_are_wrong() {
    let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    let kept = streams.clone();
    let server = Server::start(move |stream, requests| {
        kept.lock().unwrap().push(stream.try_clone().unwrap());
        answer_lines(stream, requests, |_, line| Some(double(line)));
    });
    let plan = Plan { connections: 2, ..plan(server.address) };
    let mut late = Late(streams);
    let tally = regatta_load::run(&plan, &mut late, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    late.0.lock().unwrap().clear();
    let exchange = tally.first_wrong.clone().unwrap();
    assert!(exchange.expected.starts_with("nothing more"), "{exchange:?}");
    assert_eq!(exchange.received.as_str(), "bye\\n");
    assert_eq!(tally.errors.wrong_reply, 2);
    assert!(tally.requests > 0);
}

/// Sends a wrong reply and resets the connection, before the load writes its next request.
struct Resets(Arc<Mutex<Vec<TcpStream>>>);

impl LoadObserver for Resets {
    fn at(&mut self, moment: Moment) {
        if moment == Moment::Connected {
            let mut stream = &self.0.lock().unwrap()[0];
            stream.write_all(b"7\n").unwrap();
            connect_unspec(stream).unwrap();
        }
    }
}

#[test]
fn a_reset_does_not_hide_the_wrong_reply_before_it() {
    let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    let kept = streams.clone();
    let server = Server::start(move |stream, requests| {
        kept.lock().unwrap().push(stream.try_clone().unwrap());
        answer_lines(stream, requests, |_, line| Some(double(line)));
    });
    let (plan, mut resets) = (plan(server.address), Resets(streams));
    let stop = AtomicBool::new(false);
    let tally = regatta_load::run(&plan, &mut resets, &mut |_| {}, &stop).unwrap();
    resets.0.lock().unwrap().clear();
    let exchange = tally.first_wrong.clone().expect("the reset hides it");
    assert_eq!(exchange.received.as_str(), "7\\n");
    assert_eq!((tally.errors.wrong_reply, tally.errors.total()), (1, 1), "{:?}", tally.errors);
}

#[test]
fn a_wrong_reply_to_the_opening_request_ends_the_run_before_the_window() {
    let count = Arc::new(AtomicU64::new(0));
    let asked = count.clone();
    let server = Server::lines(move |_, _| {
        asked.fetch_add(1, SeqCst);
        Some("no\n".to_owned())
    });
    let tally = wrong(&Plan { connections: 3, ..plan(server.address) });
    assert_eq!((tally.requests, tally.window_ns), (0, 0));
    assert!((1..=3).contains(&count.load(SeqCst)));
}
