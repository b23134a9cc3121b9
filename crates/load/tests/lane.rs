//! Lanes: loads that stay alive and drive their servers in slices. What they count is what the servers
//! count, and nothing is sent while they rest. Nothing here depends on speed.

mod common;
#[allow(dead_code, reason = "the tests of the hub use the rest")]
#[path = "hub/server.rs"]
mod server;

use common::{
    Server, asks, at, bounded, double, plan,
    tls::{Authority, VERSIONS, double_server},
    workload,
};
use regatta_load::{
    Arrivals, Compiled, Drive, Error, Lane, Over, Plan, SliceCounts, SliceKind, Tally, Until,
};
use regatta_script::dialects::http::HttpRequest;
use serde_json::{Value, json};
use server::{Fault, Heard, Protocol, serve};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

static NEVER: AtomicBool = AtomicBool::new(false);
const SHORT: Duration = Duration::from_millis(5);

fn open(plan: &Plan) -> Result<Lane<'static>, Error> {
    Lane::open(plan, &Compiled::of(plan).unwrap(), &NEVER)
}

#[test]
fn the_requests_of_all_slices_are_those_that_the_server_counts() {
    for (connections, pipeline, threads, drive) in
        [(1, 1, 1, Drive::Closed), (7, 3, 1, Drive::Closed), (9, 16, 3, Drive::Closed)]
    {
        let server = Server::double();
        let plan = Plan { connections, pipeline, threads, drive, ..plan(server.address) };
        let mut lane = open(&plan).unwrap();
        assert_eq!(server.requests(), connections as u64, "one exchange on each connection");
        let kinds = [SliceKind::WarmUp, SliceKind::Counted, SliceKind::Uncounted];
        let (mut all, mut counted, mut ns) = (0, 0, 0);
        for (i, kind) in kinds.into_iter().cycle().take(9).enumerate() {
            let before = server.requests();
            let slice = lane.slice(SHORT, kind, i as u64);
            assert_eq!(slice.is_over, None);
            assert_eq!(slice.errors.total(), 0, "{slice:?}");
            assert_eq!(server.requests() - before, slice.requests, "{kind:?}");
            if drive == Drive::Closed {
                assert!(slice.requests >= (connections * pipeline) as u64);
            }
            assert!(slice.ns > 0 && slice.load_cpu_ns > 0 && slice.reply_bytes > 0);
            assert!(slice.latency.p50_ns <= slice.latency.p99_ns);
            assert!(slice.latency.p99_ns <= slice.latency.max_ns);
            all += slice.requests;
            if kind == SliceKind::Counted {
                counted += slice.requests;
                ns += slice.ns;
            }
        }
        let tally = lane.end().unwrap();
        assert_eq!(tally.requests, counted);
        assert_eq!(tally.histogram.len(), counted);
        assert_eq!(tally.replies, all + connections as u64);
        assert_eq!((tally.window_ns, tally.slices.iter().sum()), (ns, counted));
        assert_eq!((tally.slices.len(), tally.threads), (3, threads));
        assert_eq!(tally.connections_opened, connections as u64);
        assert_eq!(tally.errors.total(), 0);
        assert_eq!(server.requests(), all + connections as u64);
    }
}

#[test]
fn three_lanes_take_turns() {
    let servers = [(); 3].map(|()| Server::double());
    for threads in [1, 2] {
        let plans = servers.each_ref().map(|server| Plan {
            connections: 6,
            threads,
            pipeline: 2,
            ..plan(server.address)
        });
        let compiled = Compiled::of(&plans[0]).unwrap();
        let mut lanes = plans.each_ref().map(|plan| Lane::open(plan, &compiled, &NEVER).unwrap());
        for block in 0..12 {
            for turn in 0..3 {
                let driven = (turn + block) % 3;
                let before = servers.each_ref().map(Server::requests);
                let slice = lanes[driven].slice(SHORT, SliceKind::Counted, 1);
                for (i, server) in servers.iter().enumerate() {
                    let requests = if i == driven { slice.requests } else { 0 };
                    assert_eq!(server.requests() - before[i], requests);
                }
            }
        }
        for lane in lanes {
            let tally = lane.end().unwrap();
            assert_eq!((tally.errors.total(), tally.slices.len()), (0, 12));
        }
    }
}

#[test]
fn two_hundred_slices_of_two_milliseconds() {
    let server = Server::double();
    let plan = Plan { connections: 4, threads: 2, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    let length = Duration::from_millis(2);
    let slices = (0..200).map(|i| lane.slice(length, SliceKind::Counted, i).requests);
    let sum: u64 = slices.sum();
    assert_eq!(lane.end().unwrap().requests, sum);
    assert_eq!(server.requests(), sum + 4);
}

#[test]
fn a_wrong_reply_ends_the_lane_and_later_calls_say_so() {
    let wrong = std::sync::Arc::new(AtomicBool::new(false));
    let server = Server::lines({
        let wrong = wrong.clone();
        move |_, line| match wrong.load(SeqCst) {
            true => Some("5\n".into()),
            false => Some(double(line)),
        }
    });
    let plan = Plan { connections: 3, threads: 2, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    for i in 0..2 {
        assert_eq!(lane.slice(SHORT, SliceKind::Counted, i).is_over, None);
    }
    wrong.store(true, SeqCst);
    for i in 2..4 {
        let over = lane.slice(SHORT, SliceKind::Counted, i).is_over;
        assert!(matches!(over, Some(Over::WrongReply(ref one)) if one.received.contains('5')));
    }
    let tally = lane.end().unwrap();
    assert!(tally.errors.wrong_reply >= 1);
    assert!(tally.first_wrong.is_some() && tally.slices.len() == 3);
}

#[test]
fn what_cannot_be_divided_is_refused_by_name() {
    let server = Server::double();
    let counted = Plan { until: Until::Requests(9), ..plan(server.address) };
    let burst = common::in_burst(1, 2, plan(server.address));
    for (plan, name) in [(counted, "a number of requests"), (burst, "a burst")] {
        match open(&plan) {
            Err(Error::Plan(why)) => assert!(why.starts_with(name), "{why}"),
            _ => panic!("it was not refused"),
        }
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_lane_that_is_dropped_closes_its_connections() {
    let server = Server::double();
    let plan = Plan { connections: 2, threads: 2, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    lane.slice(SHORT, SliceKind::Counted, 0);
    drop(lane);
    // The server's threads end when their connections do.
    drop(server);
}

#[test]
fn a_server_that_dies_is_noticed() {
    for while_driven in [false, true] {
        let mut server = Server::double();
        let plan = Plan { connections: 3, threads: 2, ..plan(server.address) };
        let mut lane = open(&plan).unwrap();
        lane.slice(SHORT, SliceKind::Counted, 0);
        let mut slices = Vec::new();
        if while_driven {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    slices.push(lane.slice(Duration::from_secs(1), SliceKind::Counted, 1))
                });
                server.die();
            });
        } else {
            server.die();
        }
        while slices.last().is_none_or(|last: &regatta_load::SliceCounts| last.is_over.is_none()) {
            assert!(slices.len() < 100);
            slices.push(lane.slice(SHORT, SliceKind::Counted, 2));
        }
        assert_eq!(slices.last().unwrap().is_over, Some(Over::ServerDied));
        let tally = lane.end().unwrap();
        assert!(tally.server_died && tally.errors.connect > 0, "{:?}", tally.errors);
    }
}

/// A slice that must be without errors.
fn drive(lane: &mut Lane<'_>) -> SliceCounts {
    let slice = lane.slice(SHORT, SliceKind::Counted, 1);
    assert_eq!((slice.errors.total(), &slice.is_over), (0, &None), "{slice:?}");
    slice
}

fn end(lane: Lane<'_>) -> Tally {
    let tally = lane.end().unwrap();
    assert_eq!(tally.errors.total(), 0, "{:?} {:?}", tally.errors, tally.first_wrong);
    tally
}

/// Waits until `condition` holds.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_open_loop_settles_every_request_that_is_due_in_a_slice() {
    for (arrivals, threads) in
        [(Arrivals::Constant, 1), (Arrivals::Poisson, 1), (Arrivals::Poisson, 2)]
    {
        let server = Server::double();
        let drive = at(4_000, arrivals);
        let plan = Plan { connections: 4, pipeline: 2, threads, drive, ..plan(server.address) };
        let mut lane = open(&plan).unwrap();
        let (mut due, mut requests) = (Vec::new(), 0);
        for seed in [1, 2, 3, 1] {
            let before = server.requests();
            let slice = lane.slice(Duration::from_millis(50), SliceKind::Counted, seed);
            let counts = slice.due.unwrap();
            assert_eq!(counts.due, slice.requests + counts.unsent + counts.timed_out + counts.lost);
            assert_eq!(server.requests() - before, counts.due - counts.unsent);
            due.push(counts.due);
            requests += slice.requests;
        }
        assert_eq!(due[0], due[3], "a seed determines the arrivals");
        if arrivals == Arrivals::Constant {
            assert_eq!(due, [200; 4]);
        }
        // A warm-up is driven in the same way, and does not count.
        assert!(lane.slice(SHORT, SliceKind::WarmUp, 5).due.unwrap().due > 0);
        let tally = lane.end().unwrap();
        let total = tally.open_loop.unwrap();
        assert_eq!((total.due, tally.requests), (due.iter().sum(), requests));
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

/// How often each thread of this process with this name got a CPU or lost it.
fn switches(name: &str) -> Vec<String> {
    let of = |task: std::fs::DirEntry| {
        let status = std::fs::read_to_string(task.path().join("status")).ok()?;
        let has_name = status.starts_with(&format!("Name:\t{name}\n"));
        let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
        has_name.then(|| lines.collect())
    };
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.filter_map(|task| of(task.unwrap())).collect()
}

#[test]
fn the_threads_of_a_resting_lane_do_not_run() {
    for busy_poll in [false, true] {
        let server = Server::double();
        // No other test has that many threads.
        let plan = Plan { connections: 9, threads: 8, busy_poll, ..plan(server.address) };
        let mut lane = open(&plan).unwrap();
        for _ in 0..2 {
            let before = server.requests();
            let slice = drive(&mut lane);
            let now = || ["load-5", "load-6", "load-7"].map(switches);
            eventually("no thread wakes up", || {
                let before = now();
                thread::sleep(Duration::from_millis(100));
                assert!(before.iter().all(|of_one| of_one.len() == 1));
                before == now()
            });
            assert_eq!(server.requests(), before + slice.requests);
        }
        end(lane);
    }
}

/// A server of `double` whose streams the test keeps.
fn kept() -> (Server, Arc<Mutex<Vec<TcpStream>>>) {
    let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    let kept = streams.clone();
    let server = Server::start(move |stream, requests| {
        kept.lock().unwrap().push(stream.try_clone().unwrap());
        common::answer_lines(stream, requests, |_, line| Some(double(line)));
    });
    (server, streams)
}

#[test]
fn connections_that_the_server_closes_at_rest_are_reopened_and_no_error() {
    for (drive_, threads) in
        [(Drive::Closed, 1), (Drive::Closed, 2), (bounded(3), 1), (at(3_000, Arrivals::Poisson), 2)]
    {
        let (server, streams) = kept();
        let plan = Plan { connections: 4, idle: 1, threads, drive: drive_, ..plan(server.address) };
        let mut lane = open(&plan).unwrap();
        let opening = server.requests();
        let mut sum = drive(&mut lane).requests;
        for stream in streams.lock().unwrap().drain(..) {
            stream.shutdown(Shutdown::Both).unwrap();
        }
        let slice = drive(&mut lane);
        assert!(slice.requests > 0);
        sum += slice.requests + drive(&mut lane).requests;
        let tally = end(lane);
        assert_eq!(tally.requests, sum);
        assert!(tally.connections_opened > 5, "{drive_:?}");
        // The idle connection sends its first request again.
        assert_eq!(server.requests(), opening + sum + 1, "{drive_:?}");
    }
}

#[test]
fn surplus_bytes_are_wrong_whenever_they_come() {
    for next in ["slice", "end"] {
        let (server, streams) = kept();
        let mut lane = open(&Plan { connections: 2, ..plan(server.address) }).unwrap();
        drive(&mut lane);
        streams.lock().unwrap()[1].write_all(b"8\n").unwrap();
        if next == "slice" {
            let slice = lane.slice(SHORT, SliceKind::Counted, 1);
            assert!(matches!(slice.is_over, Some(Over::WrongReply(_))), "{slice:?}");
        }
        let wrong = lane.end().unwrap().first_wrong.expect("the bytes are found");
        assert!(wrong.received.contains('8'), "{wrong:?}");
    }
}

#[test]
fn a_stop_ends_a_slice() {
    let server = Server::double();
    let stop = AtomicBool::new(false);
    let plan = Plan { connections: 3, threads: 2, ..plan(server.address) };
    let mut lane = Lane::open(&plan, &Compiled::of(&plan).unwrap(), &stop).unwrap();
    let before = server.requests();
    let slice = thread::scope(|scope| {
        scope.spawn(|| {
            eventually("the slice runs", || server.requests() > before + 100);
            stop.store(true, SeqCst);
        });
        lane.slice(Duration::from_secs(3_600), SliceKind::Counted, 1)
    });
    assert_eq!(slice.is_over, Some(Over::Stopped));
    assert!(slice.requests > 0);
    assert_eq!(lane.slice(SHORT, SliceKind::Counted, 1).is_over, Some(Over::Stopped));
    let tally = lane.end().unwrap();
    assert!(tally.interrupted && tally.requests == slice.requests);
}

/// A server may close a connection that was idle for a second, although a request is on its way.
#[test]
fn a_request_that_meets_the_close_of_an_idle_connection_is_sent_again() {
    // The numbers of the connections that are closed, and how many more requests each answers.
    let closes = Arc::new(Mutex::new((0..0, 0)));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::numbered(listener, {
        let closes = closes.clone();
        move |number, stream, requests| {
            let answered = AtomicU64::new(0);
            common::answer_lines(stream, requests, |_, line| {
                let (numbers, after) = closes.lock().unwrap().clone();
                let is_open = !numbers.contains(&number) || answered.fetch_add(1, SeqCst) < after;
                is_open.then(|| double(line))
            });
        }
    });
    let plan = Plan { connections: 3, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    drive(&mut lane);
    thread::sleep(Duration::from_millis(1_100));
    *closes.lock().unwrap() = (0..3, 0);
    let slice = drive(&mut lane);
    assert!(slice.requests >= 3 && slice.connections_opened == 3, "{slice:?}");
    // After a reply it is an error.
    *closes.lock().unwrap() = (3..6, 1);
    let slices = (0..100).map(|i| lane.slice(SHORT, SliceKind::Counted, i));
    let mut errors = slices.scan(0, |sum, slice| {
        *sum += slice.errors.closed_early;
        Some(*sum)
    });
    assert!(errors.any(|sum| sum == 3));
    lane.end().unwrap();
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

#[test]
fn a_server_that_answers_nothing_counts_as_dead() {
    let silent = Arc::new(AtomicBool::new(false));
    let server = Server::start({
        let silent = silent.clone();
        move |stream, requests: &AtomicU64| {
            common::answer_lines(stream, requests, |_, line| {
                while silent.load(SeqCst) {
                    thread::sleep(Duration::from_millis(5));
                }
                Some(double(line))
            });
        }
    });
    let (timeout, patience) = (Duration::from_millis(200), Duration::from_millis(500));
    let plan = Plan { connections: 2, threads: 2, timeout, patience, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    drive(&mut lane);
    silent.store(true, SeqCst);
    let over = (0..100).find_map(|i| lane.slice(SHORT, SliceKind::Counted, i).is_over);
    silent.store(false, SeqCst);
    assert_eq!(over, Some(Over::ServerDied));
    let tally = lane.end().unwrap();
    assert!(tally.server_died && tally.errors.timeout > 0, "{:?}", tally.errors);
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let server = Server::double();
    let plan = Plan { patience: Duration::from_millis(300), ..plan(server.address) };
    drop(server);
    assert!(matches!(open(&plan), Err(Error::NotOpened { opened: 0, wanted: 1, .. })));
    let mut churn = open(&Plan { drive: Drive::Churn, ..plan.clone() }).unwrap();
    assert_eq!(churn.slice(SHORT, SliceKind::Counted, 1).is_over, Some(Over::ServerDied));
    assert!(matches!(churn.end(), Err(Error::NotOpened { .. })));
    let compiled = Compiled::of(&Plan { seed: 7, ..plan.clone() }).unwrap();
    assert!(matches!(Lane::open(&plan, &compiled, &NEVER), Err(Error::Plan(_))));
}
