//! Correct servers: the load counts what the server saw, in closed loops and with a connection per
//! request.

use crate::common::{
    Called, Server, answer_lines, assert_undisturbed, double, plan, run, workload,
};
use regatta_load::{Drive, Phase, Plan, Until, WarmUp};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

#[test]
fn a_correct_server_passes_and_the_callbacks_come_in_order() {
    let server = Server::double();
    let warm_up = WarmUp::Fixed(Duration::from_millis(50));
    let plan = Plan { connections: 8, pipeline: 4, warm_up, ..plan(server.address) };
    let (mut called, mut phases) = (Called::default(), Vec::new());
    let tally = regatta_load::run(
        &plan,
        &mut called,
        &mut |progress| phases.push((progress.phase, progress.open)),
        &AtomicBool::new(false),
    )
    .unwrap();
    assert_undisturbed(&tally);
    assert_eq!(tally.connections_opened, 8);
    assert!(tally.warm_up_ns >= 50_000_000);
    assert!(tally.window_ns >= 300_000_000);
    assert_eq!((tally.slices.len(), tally.slice_ns), (10, 30_000_000));
    assert_eq!(tally.slices.iter().sum::<u64>(), tally.requests);
    assert!(server.requests() > tally.requests, "the opening requests are outside of the window");
    assert_eq!(called.names(), ["opens", "closes", "open"]);
    let between = (called.0[1].1 - called.0[0].1).as_nanos() as u64;
    assert!(between.abs_diff(tally.window_ns) < 20_000_000, "{between} {}", tally.window_ns);
    assert!(phases.contains(&(Phase::Measuring, 8)), "{phases:?}");
}

#[test]
fn a_counted_run_sends_exactly_its_number_of_requests() {
    for (n, connections, pipeline, threads, drive) in [
        (1, 1, 1, 1, Drive::Closed),
        (3, 8, 5, 2, Drive::Closed),
        (1_000, 7, 3, 1, Drive::Closed),
        (1_001, 5, 300, 2, Drive::Closed),
        (501, 10, 1, 2, Drive::Churn),
    ] {
        let server = Server::double();
        let until = Until::Requests(n);
        let plan = Plan { until, connections, pipeline, threads, drive, ..plan(server.address) };
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        assert_eq!((tally.requests, server.requests()), (n, n));
        let opened = if drive.churns() { n } else { n.min(connections as u64) };
        assert_eq!(tally.connections_opened, opened);
    }
}

#[test]
fn echo_and_dialogue_pass_against_their_servers() {
    let echo = Server::lines(|_, line| Some(format!("{line}\n")));
    let last_first_name = |stream: std::net::TcpStream, requests: &std::sync::atomic::AtomicU64| {
        let first = Mutex::new(String::new());
        answer_lines(stream, requests, |i, line| {
            let mut first = first.lock().unwrap();
            if i.is_multiple_of(2) {
                *first = line.to_owned();
                return Some("last name?\n".to_owned());
            }
            Some(format!("hello {first} {line}\n"))
        });
    };
    let dialogue = Server::start(last_first_name);
    for (server, name) in [(&echo, "echo"), (&dialogue, "dialogue")] {
        for pipeline in [1, 10] {
            let workload = workload(name);
            let plan = Plan { workload, connections: 3, pipeline, ..plan(server.address) };
            assert_undisturbed(&run(&plan).unwrap());
        }
    }
}

#[test]
fn two_threads_share_the_connections() {
    let server = Server::double();
    let warm_up = WarmUp::steady(Duration::from_secs(1));
    let cpus = vec![0];
    let plan = Plan { connections: 5, threads: 2, cpus, warm_up, ..plan(server.address) };
    let tally = run(&plan).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(tally.connections_opened, 5);
    assert_eq!(tally.slices.iter().sum::<u64>(), tally.requests);
    assert!(tally.warm_up_ns >= 300_000_000, "a steady rate takes at least three slices");
}

/// The server reads until nothing more comes: it must get exactly the pipeline.
#[test]
fn the_pipeline_is_kept_full_and_never_exceeded() {
    const PIPELINE: usize = 7;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sizes = seen.clone();
    let server = Server::start(move |mut stream, requests| {
        stream.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut batch, mut line) = (Vec::new(), String::new());
        loop {
            match reader.read_line(&mut line) {
                Ok(0) => return,
                Ok(_) => batch.push(double(std::mem::take(&mut line).trim_end())),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    sizes.lock().unwrap().push(batch.len());
                    // Answer only some, so that the rest stays outstanding.
                    let answered = batch.drain(..batch.len().min(3)).collect::<String>();
                    if stream.write_all(answered.as_bytes()).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
            requests.store(batch.len() as u64, SeqCst);
        }
    });
    let plan = Plan { pipeline: PIPELINE, ..plan(server.address) };
    assert_undisturbed(&run(&plan).unwrap());
    let seen = seen.lock().unwrap();
    assert_eq!(seen[..3], [1, PIPELINE, PIPELINE], "one request opens, then the pipeline fills");
    assert!(seen.iter().all(|&n| n <= PIPELINE), "{seen:?}");
}

/// More requests are outstanding than the socket buffers hold, so writes are partial.
#[test]
fn a_slow_reader_with_a_deep_pipeline_loses_nothing() {
    const PIPELINE: usize = 60_000;
    const REQUESTS: u64 = 200_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    set_socket_recv_buffer_size(&listener, 4_096).unwrap();
    let server = Server::on(listener, |stream, requests| {
        let slow = |i: u64, line: &str| {
            if i.is_multiple_of(20_000) {
                std::thread::sleep(Duration::from_millis(20));
            }
            Some(double(line))
        };
        answer_lines(stream, requests, slow);
    });
    let until = Until::Requests(REQUESTS);
    let tally = run(&Plan { pipeline: PIPELINE, until, ..plan(server.address) }).unwrap();
    assert_undisturbed(&tally);
    assert_eq!((tally.requests, server.requests()), (REQUESTS, REQUESTS));
}

#[test]
fn churn_opens_a_connection_per_request_from_many_source_addresses() {
    let sources = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = sources.clone();
    let server = Server::start(move |mut stream, requests| {
        seen.lock().unwrap().insert(stream.peer_addr().unwrap().ip());
        answer_lines(stream.try_clone().unwrap(), requests, |_, line| Some(double(line)));
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "the load closes first");
    });
    let until = Until::Requests(600);
    let tally =
        run(&Plan { drive: Drive::Churn, connections: 4, until, ..plan(server.address) }).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(tally.connections_opened, 600);
    assert_eq!(server.accepted.load(SeqCst), 600);
    assert_eq!(sources.lock().unwrap().len(), 126);
}

#[test]
fn churn_passes_with_a_duration() {
    let server = Server::double();
    let warm_up = WarmUp::Fixed(Duration::from_millis(100));
    let plan =
        Plan { drive: Drive::Churn, connections: 4, threads: 2, warm_up, ..plan(server.address) };
    let tally = run(&plan).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(server.requests(), tally.connections_opened);
}

#[test]
fn at_most_64_connections_wait_for_their_first_reply() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let highest = most.clone();
    let server = Server::start(move |stream, requests| {
        most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
        answer_lines(stream, requests, |i, line| {
            if i == 0 {
                std::thread::sleep(Duration::from_millis(5));
                now.fetch_sub(1, SeqCst);
            }
            Some(double(line))
        });
    });
    let plan = Plan { connections: 200, threads: 2, ..plan(server.address) };
    assert_undisturbed(&run(&plan).unwrap());
    let highest = highest.load(SeqCst);
    assert!((2..=64).contains(&highest), "{highest} at a time");
}

#[test]
fn below_25_000_connections_there_is_one_source_address() {
    let server = Server::start(|stream, requests| {
        assert!(stream.peer_addr().unwrap().ip().to_string() == "127.0.0.1");
        answer_lines(stream, requests, |_, line| Some(double(line)));
    });
    assert_undisturbed(&run(&Plan { connections: 20, ..plan(server.address) }).unwrap());
}

#[test]
fn a_busy_polling_load_passes_and_measures_its_polling() {
    let server = Server::lines(|_, line| {
        std::thread::sleep(Duration::from_millis(1));
        Some(double(line))
    });
    for threads in [1, 2] {
        let plan = Plan { busy_poll: true, connections: 2, threads, ..plan(server.address) };
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        let (spun, cpu) = (tally.spun_ns, tally.load_cpu_ns);
        assert!(spun > 0 && spun <= cpu, "{spun} ns of {cpu}");
    }
}
