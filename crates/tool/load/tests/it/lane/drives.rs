//! What differs between drives, dialects and transports.

use super::{NEVER, SHORT, drive, end, open};
use crate::{
    common::{
        Server, asks, at, bounded, double, plan,
        tls::{Authority, VERSIONS, double_server},
        workload,
    },
    hub::server::{Fault, Heard, Protocol, serve},
};
use regatta_load::{Arrivals, Compiled, Drive, Lane, Over, Plan, SliceKind};
use regatta_script::dialects::http::HttpRequest;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::Shutdown,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

#[test]
fn an_open_loop_settles_every_request_that_is_due_in_a_slice() {
    for (arrivals, threads) in
        [(Arrivals::Constant, 1), (Arrivals::Poisson, 1), (Arrivals::Poisson, 2)]
    {
        let server = Server::double();
        let drive = at(4_000, arrivals);
        let plan = Plan { connections: 4, pipeline: 2, threads, drive, ..plan(server.address) };
        let mut lane = open(&plan).unwrap();
        let mut of_slices = Vec::new();
        for seed in [1, 2, 3, 1] {
            let before = server.requests();
            let slice = lane.slice(Duration::from_millis(50), SliceKind::Counted, seed);
            assert_eq!(server.requests() - before, slice.requests);
            of_slices.push(slice.requests);
        }
        assert_eq!(of_slices[0], of_slices[3], "a seed determines the arrivals");
        if arrivals == Arrivals::Constant {
            assert_eq!(of_slices, [200; 4]);
        }
        // A warm-up is driven in the same way, and does not count.
        assert!(lane.slice(SHORT, SliceKind::WarmUp, 5).requests > 0);
        let tally = lane.end().unwrap();
        let total = tally.open_loop.clone().unwrap();
        let requests: u64 = of_slices.iter().sum();
        assert_eq!((total.due, tally.requests), (requests, requests));
        assert_eq!(tally.histogram.len(), requests);
        for part in [&total.wait, &total.lag, &total.service] {
            assert_eq!(part.len(), requests);
        }
        assert!(total.arrivals.rate_per_s > 0.0 && total.arrivals.gaps > 0);
    }
}

#[test]
fn churn_opens_a_connection_for_every_request_of_a_slice() {
    for threads in [1, 2] {
        let server = Server::double();
        let drive_ = Drive::Churn;
        let plan = Plan { connections: 4, threads, drive: drive_, ..plan(server.address) };
        let mut lane = open(&plan).unwrap();
        assert_eq!(server.accepted.load(SeqCst), 0);
        let mut sum = 0;
        for _ in 0..5 {
            let slice = drive(&mut lane);
            sum += slice.requests;
            assert_eq!(slice.requests, slice.connections_opened);
            assert_eq!(server.requests(), sum);
        }
        assert_eq!(end(lane).requests, sum);
        assert_eq!(server.accepted.load(SeqCst) as u64, sum);
    }
}

/// The project's own messages.
struct Own;

impl Protocol for Own {
    fn read(&self, message: &[u8], _: &mut Vec<u8>) -> Vec<Heard> {
        let message: Value = serde_json::from_slice(message).unwrap();
        let payload = &message["payload"];
        vec![match message["type"].as_str().unwrap() {
            "echo" => Heard::Joins(json!({"payload": payload, "type": "echo"}).to_string()),
            _ => {
                Heard::Broadcast { digits: payload.as_str().unwrap().into(), number: String::new() }
            }
        }]
    }

    fn copy(&self, digits: &str) -> String {
        json!({"type": "broadcast", "payload": digits}).to_string()
    }

    fn result(&self, digits: &str, _: &str, members: usize, _: bool) -> Option<String> {
        let result =
            json!({"type": "broadcastResult", "payload": digits, "listenerCount": members});
        Some(result.to_string())
    }
}

#[test]
fn a_slice_of_broadcasts_lasts_until_the_last_delivery() {
    for threads in [1, 3] {
        let servers = [(); 2].map(|()| serve(Own, Fault::None, 8));
        let plans = servers.each_ref().map(|server| Plan {
            connections: 8,
            threads,
            workload: workload("hub"),
            ..plan(server.address)
        });
        let compiled = Compiled::of(&plans[0]).unwrap();
        let mut lanes = plans.each_ref().map(|plan| Lane::open(plan, &compiled, &NEVER).unwrap());
        let mut sum = 0;
        for _ in 0..6 {
            for lane in &mut lanes {
                let slice = drive(lane);
                let counts: Vec<u64> = slice.operations.iter().map(|one| one.count).collect();
                assert_eq!(counts, [8 * slice.requests, slice.requests]);
                assert!(slice.operations[1].latency.max_ns <= slice.operations[0].latency.max_ns);
                assert!(slice.connections_opened == 0 && slice.reply_bytes > 0);
                sum += slice.requests;
            }
        }
        let tallies = lanes.map(end);
        assert_eq!(tallies.iter().map(|tally| tally.requests).sum::<u64>(), sum);
        for tally in &tallies {
            assert_eq!(tally.operations[0].count, 8 * tally.requests);
            assert_eq!(tally.operations[0].histogram.len(), 8 * tally.requests);
            assert_eq!(tally.connections_opened, 8);
        }
    }
}

#[test]
fn a_lost_delivery_ends_the_slice_and_the_lane() {
    let server = serve(Own, Fault::Lost(20), 4);
    let timeout = Duration::from_millis(500);
    let workload = workload("hub");
    let plan = Plan { connections: 4, threads: 2, timeout, workload, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    let over = (0..1_000).find_map(|i| lane.slice(SHORT, SliceKind::Counted, i).is_over);
    let Some(Over::WrongReply(wrong)) = over else { panic!("{over:?}") };
    assert!(wrong.received.contains("no copy for 1 of them"), "{wrong:?}");
    assert!(lane.end().unwrap().first_wrong.is_some());
}

/// A server that answers the head of each request with `reply`, and then closes if it says so.
fn http(reply: &'static str) -> Server {
    Server::start(move |mut stream, requests| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if !matches!(reader.read_line(&mut head), Ok(1..)) {
                    return;
                }
            }
            requests.fetch_add(1, SeqCst);
            if stream.write_all(reply.as_bytes()).is_err() {
                return;
            }
            if reply.contains("close") || head.contains("close") {
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read(&mut [0]);
                return;
            }
        }
    })
}

#[test]
fn http_servers_keep_their_connections_or_close_them() {
    for reply in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    ] {
        for drive_ in [Drive::Closed, bounded(3), at(2_000, Arrivals::Poisson), Drive::Churn] {
            let server = http(reply);
            let workload = asks(HttpRequest::get("/"));
            let host = "host".to_owned();
            let plan = Plan {
                connections: 3,
                threads: 2,
                drive: drive_,
                workload,
                host,
                ..plan(server.address)
            };
            let mut lane = open(&plan).unwrap();
            let opening = server.requests();
            let mut sum = 0;
            for _ in 0..4 {
                let slice = drive(&mut lane);
                sum += slice.requests;
                assert_eq!(server.requests() - opening, sum, "{drive_:?} {reply}");
                assert_eq!(slice.reply_bytes, slice.requests * reply.len() as u64);
            }
            let tally = end(lane);
            assert_eq!((tally.requests, tally.reply_bytes), (sum, sum * reply.len() as u64));
            let each = drive_ == Drive::Churn || reply.contains("close");
            let opened = if each { server.requests() } else { 3 };
            assert_eq!(tally.connections_opened, opened, "{drive_:?} {reply}");
        }
    }
}

#[test]
fn connections_stay_open_over_tls() {
    let authority = Authority::new();
    let server = double_server(authority.certifies(&["localhost"], 2_999).config(VERSIONS));
    let tls = Some(authority.trusted("localhost"));
    let plan = Plan { connections: 4, pipeline: 4, threads: 2, tls, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    let sum: u64 = (0..5).map(|_| drive(&mut lane).requests).sum();
    let tally = end(lane);
    assert_eq!((tally.requests, server.requests()), (sum, sum + 4));
    assert_eq!((tally.connections_opened, tally.tls.is_some()), (4, true));
}

#[test]
fn idle_connections_stay_open_and_silent() {
    let server = Server::double();
    let plan = Plan { connections: 2, idle: 20, threads: 2, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    let sum: u64 = (0..3).map(|_| drive(&mut lane).requests).sum();
    assert_eq!((end(lane).requests, server.requests()), (sum, sum + 22));
    assert_eq!(server.accepted.load(SeqCst), 22);
}

#[test]
fn bytes_are_held_back_in_the_warm_up_and_at_the_end() {
    // A server that answers before the end of the line.
    let hasty = Arc::new(AtomicBool::new(false));
    let server = || {
        let hasty = hasty.clone();
        Server::start(move |mut stream, requests| {
            let (mut line, mut buffer, mut answered) = (Vec::new(), [0; 4096], false);
            while let Ok(n @ 1..) = stream.read(&mut buffer) {
                line.extend_from_slice(&buffer[..n]);
                let is_whole = line.ends_with(b"\n");
                if !answered && (is_whole || hasty.load(SeqCst)) {
                    requests.fetch_add(1, SeqCst);
                    answered = true;
                    let text = double(std::str::from_utf8(&line).unwrap().trim_end());
                    if stream.write_all(text.as_bytes()).is_err() {
                        return;
                    }
                }
                if is_whole {
                    (answered, line) = (false, Vec::new());
                }
            }
        })
    };
    for (is_hasty_in, found_in) in [("never", "never"), ("warm-up", "warm-up"), ("end", "end")] {
        hasty.store(false, SeqCst);
        let server = server();
        let plan = Plan { connections: 8, withholds: true, ..plan(server.address) };
        let mut lane = open(&plan).unwrap();
        hasty.store(is_hasty_in == "warm-up", SeqCst);
        let over = lane.slice(Duration::from_millis(200), SliceKind::WarmUp, 1).is_over;
        assert_eq!(over.is_some(), found_in == "warm-up");
        // Nothing is held back in other slices.
        hasty.store(true, SeqCst);
        let over = lane.slice(SHORT, SliceKind::Counted, 1).is_over;
        assert_eq!(over.is_some(), found_in == "warm-up");
        hasty.store(is_hasty_in == "end", SeqCst);
        let tally = lane.end().unwrap();
        assert_eq!(tally.first_wrong.is_some(), found_in != "never", "{is_hasty_in}");
        assert!(tally.requests > 0 || found_in == "warm-up");
    }
}
