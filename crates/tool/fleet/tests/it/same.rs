//! Several agents together do the same as one process.

use crate::common::{Recorder, behind, connect, machine, mark, marked, plan, run, with_cores};
use regatta_load::{
    Arrivals, Burst, Drive, LoadProcessConfig, Moment, Plan, Tally, Until, WarmUp, run_in_processes,
};
use regatta_script::Workload;
use regatta_testkit::{child::example, deadline::until};
use std::{num::NonZeroU32, sync::atomic::AtomicBool, time::Duration};

/// A load of 6 threads, by agents with these numbers of cores.
fn by_agents(kind: &str, cores: &[u32], plan: &Plan) -> Tally {
    let mark = mark();
    let agent = |(number, cores): (usize, &u32)| {
        with_cores(*cores, machine(&format!("gen{number}"), kind, &mark))
    };
    let machines: Vec<_> = cores.iter().enumerate().map(agent).collect();
    let mut fleet = connect(&machines).unwrap();
    let done = run(&mut fleet, plan);
    let threads: Vec<u32> = done.agents.iter().map(|agent| agent.tally.threads as u32).collect();
    assert_eq!(threads, cores);
    let sum: u64 = done.agents.iter().map(|agent| agent.tally.requests).sum();
    assert_eq!(sum, done.whole.requests);
    drop(fleet);
    until("no process remains", || marked(&mark).is_empty());
    done.whole
}

/// A load of 6 threads, by processes of this machine.
pub fn by_processes(least: usize, plan: &Plan) -> Tally {
    let arguments = vec!["load-process".into(), mark()];
    let how = LoadProcessConfig { program: example("fleet_test_helper"), arguments, least };
    let (plan, never) = (Plan { threads: 6, ..plan.clone() }, AtomicBool::new(false));
    run_in_processes(&plan, &how, &mut |_: Moment| {}, &mut |_| {}, &never).unwrap()
}

#[test]
fn agents_of_different_sizes_send_exactly_the_requests_of_one_process() {
    let server = Recorder::start();
    let drive = Drive::Burst(Burst { instances: 6, requests: 20 });
    let plan =
        Plan { connections: 60, pipeline: 3, drive, until: Until::Done, ..plan(server.address) };
    by_processes(1, &plan);
    let expected = server.take();
    assert_eq!(expected.len(), 1_200);
    by_processes(3, &plan);
    assert!(server.take() == expected, "three processes with two threads each");
    for cores in [&[2, 2, 2][..], &[3, 2, 1]] {
        let tally = by_agents("load-process", cores, &plan);
        assert_eq!((tally.requests, tally.connections_opened), (1_200, 60));
        assert!(server.take() == expected, "agents with {cores:?} cores");
    }
}

#[test]
fn agents_have_as_many_requests_due_as_one_process() {
    let server = Recorder::start();
    for arrivals in Arrivals::ALL {
        let drive = Drive::Open { rate: NonZeroU32::new(2_000).unwrap(), arrivals };
        let plan = Plan { connections: 12, drive, ..plan(server.address) };
        let due = |tally: &Tally| tally.open_loop.as_ref().unwrap().due;
        let expected = due(&by_processes(1, &plan));
        assert_eq!(due(&by_agents("load-process", &[3, 2, 1], &plan)), expected, "{arrivals:?}");
    }
}

#[test]
fn the_squares_of_many_arrivals_are_no_impossible_numbers() {
    let server = Recorder::start();
    let rate = NonZeroU32::new(20_000).unwrap();
    let drive = Drive::Open { rate, arrivals: Arrivals::Poisson };
    let until = Until::Elapsed(Duration::from_secs(1));
    let plan = Plan { connections: 12, drive, until, ..plan(server.address) };
    let due = by_agents("load-process", &[3, 2, 1], &plan).open_loop.unwrap().due;
    assert!((19_000..21_000).contains(&due), "{due}");
}

#[test]
fn histograms_merge_without_loss() {
    let plan = Plan { connections: 6, ..plan("127.0.0.1:1".parse().unwrap()) };
    let one = by_agents("scripted", &[6], &plan);
    // Each of a thousand lengths for each thread.
    assert_eq!(one.requests, 1_000 * (1 + 2 + 3 + 4 + 5 + 6));
    let counts = one.operations.iter().map(|kind| (kind.count, kind.histogram.len()));
    let expected = [(one.requests, 0), (one.requests, one.requests), (one.requests, one.requests)];
    assert_eq!(counts.collect::<Vec<_>>(), expected);
    for cores in [&[2, 2, 2][..], &[3, 2, 1]] {
        let several = by_agents("scripted", cores, &plan);
        assert!(several.histogram == one.histogram, "{cores:?}: buckets differ");
        assert!(several.operations == one.operations, "{cores:?}: messages of streams differ");
        assert_eq!(several.load_cpu_ns, one.load_cpu_ns);
        assert_eq!(several.slices, one.slices);
    }
}

#[test]
fn windows_open_together_and_clocks_are_bounded() {
    let (server, mark) = (Recorder::start(), mark());
    let machines = ["a", "b"].map(|name| machine(name, "load-process", &mark));
    let mut fleet = connect(&machines).unwrap();
    let warm_up = WarmUp::Fixed(Duration::from_millis(50));
    let done = run(&mut fleet, &Plan { connections: 8, warm_up, ..plan(server.address) });
    assert_eq!(done.whole.errors.total(), 0);
    assert!(done.whole.requests > 0 && done.whole.window_ns >= 300_000_000);
    for agent in &done.agents {
        assert_eq!((agent.connections, agent.share(100)), (4, 50));
        assert!(agent.rtt_ns > 0 && agent.clock_bound_ns > 0);
        assert!(agent.tally.window_ns >= 300_000_000 && agent.tally.requests > 0);
    }
    // Both have the clock of this machine. Other tests may take its CPUs meanwhile.
    let within = done.edges_within_ns.unwrap();
    assert!((1..200_000_000).contains(&within), "{within} ns");
}

#[test]
fn a_second_load_on_the_same_agents_works() {
    let (server, mark) = (Recorder::start(), mark());
    let mut fleet = connect(&[machine("a", "load-process", &mark)]).unwrap();
    for _ in 0..2 {
        let done = run(&mut fleet, &plan(server.address));
        assert!(done.whole.requests > 0 && done.whole.errors.total() == 0);
    }
}

#[test]
fn a_late_order_is_repeated_once_with_a_longer_lead() {
    let (server, mark) = (Recorder::start(), mark());
    let folder = tempfile::tempdir().unwrap();
    let was = folder.path().join("was").display().to_string();
    // Holds back the first order to open the window.
    let relay = format!(
        "while IFS= read -r line; do case $line in *open-window*) [ -e {was} ] || {{ : > {was}; sleep 0.5; }};; \
         esac; printf '%s\\n' \"$line\"; done | $agent"
    );
    let late = behind(&relay, machine("slow", "load-process", &mark));
    let mut fleet = connect(&[late, machine("b", "load-process", &mark)]).unwrap();
    let warm_up = WarmUp::Fixed(Duration::from_millis(20));
    let done = run(&mut fleet, &Plan { connections: 4, warm_up, ..plan(server.address) });
    assert!(folder.path().join("was").exists(), "no order was held back");
    assert!(done.whole.requests > 0 && done.whole.errors.total() == 0);
    assert_eq!(done.agents.len(), 2);
}

#[test]
fn each_step_of_a_conversation_is_a_request_of_the_rate() {
    let (server, mark) = (Recorder::start(), mark());
    let mut fleet = connect(&[with_cores(1, machine("a", "load-process", &mark))]).unwrap();
    let text = "protocol = \"line\"\n[[request]]\nsteps = [
        { send = \"{a=int:1..9}\", exact = \"{a*2}\" }, { send = \"{b=int:1..9}\", exact = \"{b*2}\" },
        { send = \"{c=int:1..9}\", exact = \"{c*2}\" }, { send = \"{d=int:1..9}\", exact = \"{d*2}\" }]\n";
    let workload = Workload::from_text(text, "mine").unwrap();
    let drive = Drive::Open { rate: NonZeroU32::new(100).unwrap(), arrivals: Arrivals::Constant };
    let until = Until::Elapsed(Duration::from_millis(500));
    let done = run(&mut fleet, &Plan { workload, drive, until, ..plan(server.address) });
    assert_eq!(done.whole.errors.total(), 0);
    // 50 in the window, one that opens the connection, and a few before the window opens.
    let sent = server.take().len();
    assert!((40..100).contains(&sent), "it sent {sent} requests");
}
