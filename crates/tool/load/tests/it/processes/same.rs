//! Several processes together do the same as one.

use crate::{
    common::{
        Called, Server, assert_undisturbed, at, bounded, double, in_burst, plan,
        tls::{Authority, VERSIONS, double_server},
        workload,
    },
    processes::marked,
};
use regatta_load::{Arrivals, Drive, Error, LoadProcessConfig, Plan, Split, Until, WarmUp};
use rustix::process::{Resource, getrlimit};
use std::{
    sync::{Arc, Mutex, atomic::AtomicBool},
    time::Duration,
};

#[test]
fn three_processes_send_exactly_the_requests_that_one_sends() {
    let asked = |processes: usize| {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = lines.clone();
        let mut server = Server::lines(move |_, line| {
            seen.lock().unwrap().push(line.to_owned());
            Some(double(line))
        });
        let plan = Plan { connections: 60, pipeline: 3, ..plan(server.address) };
        let tally = marked(processes).run(&in_burst(6, 20, plan)).unwrap();
        assert_undisturbed(&tally);
        assert_eq!((tally.requests, tally.connections_opened), (1_200, 60));
        assert_eq!(tally.instances_ns.len(), 6);
        assert!(tally.instances_ns.iter().all(|ns| (1..=tally.window_ns).contains(ns)));
        server.die();
        let mut lines = std::mem::take(&mut *lines.lock().unwrap());
        lines.sort_unstable();
        lines
    };
    let one = asked(1);
    assert_eq!(one.len(), 1_200);
    assert!(asked(3) == one, "the requests differ");
}

#[test]
fn three_processes_have_as_many_requests_due_as_one() {
    let server = Server::double();
    let until = Until::Elapsed(Duration::from_millis(500));
    for arrivals in Arrivals::ALL {
        let due = [1, 3].map(|processes| {
            let drive = at(3_000, arrivals);
            let plan = Plan { connections: 30, drive, until, ..plan(server.address) };
            let tally = marked(processes).run(&plan).unwrap();
            let open = tally.open_loop.clone().unwrap();
            let answered = tally.histogram.len();
            assert_eq!(open.due, answered + open.unsent + open.timed_out + open.lost);
            assert_eq!(open.unanswered() + tally.errors.total(), 0);
            open.due
        });
        assert_eq!(due[0], due[1], "{arrivals:?}");
    }
}

#[test]
fn a_window_of_a_fixed_length_is_counted_correctly_and_the_callbacks_come_in_order() {
    let server = Server::double();
    let warm_up = WarmUp::Fixed(Duration::from_millis(100));
    let plan = Plan { connections: 9, idle: 6, pipeline: 4, warm_up, ..plan(server.address) };
    let (mut most_open, never) = (0, AtomicBool::new(false));
    let mut progress = |progress: &regatta_load::Progress| most_open = most_open.max(progress.open);
    let (tally, called) = marked(3).run_watched(&plan, &mut progress, &never);
    let tally = tally.unwrap();
    assert_undisturbed(&tally);
    assert_eq!(called, ["opens", "closes", "open"]);
    assert_eq!((tally.connections_opened, most_open), (15, 15));
    assert!(tally.warm_up_ns >= 100_000_000);
    assert!((300_000_000..2_000_000_000).contains(&tally.window_ns), "{}", tally.window_ns);
    assert_eq!((tally.slices.len(), tally.slice_ns), (10, 30_000_000));
    assert_eq!(tally.slices.iter().sum::<u64>(), tally.requests);
    assert!(server.requests() > tally.requests, "the warm-up is outside of the window");
}

#[test]
fn a_number_of_requests_is_met_exactly() {
    for (n, connections, processes) in [(1_000, 20, 3), (2, 20, 3), (7, 3, 2)] {
        let server = Server::double();
        let until = Until::Requests(n);
        let plan = Plan { connections, until, pipeline: 2, ..plan(server.address) };
        let tally = marked(processes).run(&plan).unwrap();
        assert_undisturbed(&tally);
        assert_eq!((tally.requests, server.requests()), (n, n));
    }
}

#[test]
fn every_closed_loop_works_in_several_processes() {
    let server = Server::double();
    let plain = plan(server.address);
    for plan in [
        Plan { connections: 6, drive: bounded(4), ..plain.clone() },
        Plan { connections: 6, drive: Drive::Churn, ..plain.clone() },
        Plan { connections: 6, workload: workload("double"), threads: 6, ..plain.clone() },
    ] {
        let tally = marked(3).run(&plan).unwrap();
        assert_undisturbed(&tally);
        assert_eq!(tally.slices.iter().sum::<u64>(), tally.requests);
    }
}

#[test]
fn tls_with_a_file_of_ca_certificates_works_in_several_processes() {
    let (tls, server) = {
        let authority = Authority::new();
        let config = authority.certifies(&["localhost"], 2_999).config(VERSIONS);
        // The file of CA certificates is already removed when the processes start.
        (authority.trusted("localhost"), double_server(config))
    };
    let until = Until::Requests(300);
    let plan = Plan { tls: Some(tls), connections: 6, until, ..plan(server.address) };
    let tally = marked(2).run(&plan).unwrap();
    assert_undisturbed(&tally);
    assert_eq!((tally.requests, server.requests()), (300, 300));
    assert!(tally.tls.as_ref().is_some_and(|spoken| spoken.checked));
    let stranger = Plan { tls: Some(Authority::new().trusted("localhost")), ..plan };
    match marked(2).run(&stranger) {
        Err(Error::Tls(text)) => assert!(text.contains("certificate is not accepted"), "{text}"),
        other => panic!("expected a TLS error, got {other:?}"),
    }
}

#[test]
fn a_load_runs_in_this_process_if_its_descriptor_limit_suffices() {
    let server = Server::double();
    let nobody = LoadProcessConfig { program: "/nonexistent".into(), arguments: vec![], least: 1 };
    let never = AtomicBool::new(false);
    let (plan, mut called) = (plan(server.address), Called::default());
    let tally =
        regatta_load::run_in_processes(&plan, &nobody, &mut called, &mut |_| {}, &never).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(called.names(), ["opens", "closes", "open"]);
}

#[test]
fn there_are_as_many_processes_as_the_descriptor_limit_requires() {
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 20).min(1 << 20) as usize;
    let split = |plan: &Plan, least: usize| {
        let processes = LoadProcessConfig { program: "x".into(), arguments: vec![], least };
        let Split { processes, threads } = processes.split(plan).unwrap();
        (processes, threads)
    };
    let plain = plan("127.0.0.1:1".parse().unwrap());
    let with = |connections: usize, threads: usize| Plan { connections, threads, ..plain.clone() };
    assert_eq!(split(&with(10, 1), 1), (1, 1));
    assert_eq!(split(&with(10, 1), 3), (3, 3));
    assert_eq!(split(&with(10, 4), 2), (2, 4));
    assert_eq!(split(&with(10, 4), 3), (3, 6), "each process has equally many");
    assert_eq!(split(&with(2, 4), 3), (2, 2), "no thread without a connection");
    assert_eq!(split(&Plan { drive: bounded(4), ..with(10, 9) }, 3), (3, 3));
    assert_eq!(split(&in_burst(5, 1, with(10, 9)), 2), (2, 4), "an instance is not divided");
    if limit < 1 << 20 {
        let (processes, threads) = split(&with(9 * limit / 4, 1), 1);
        assert_eq!((processes, threads), (3, 3), "{limit} descriptors");
        assert_eq!(split(&with(9 * limit / 4, 4), 1), (4, 4), "the requested number of threads");
        assert_eq!(split(&Plan { idle: limit, ..with(limit / 2, 1) }, 1), (2, 2));
    }
    let most = LoadProcessConfig { program: "x".into(), arguments: vec![], least: 1 };
    match most.split(&with(60_000_000, 1)) {
        Err(Error::Descriptors { wanted, possible }) => {
            assert_eq!(wanted, 60_000_000);
            assert!(possible > limit && possible < wanted, "{possible}");
        }
        Ok(split) => assert!(limit > 900_000, "{split:?}"),
        Err(error) => panic!("{error}"),
    }
}
