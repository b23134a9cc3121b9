//! Measured usage, compared with the contender's own reading by getrusage(2).

use super::common::{
    LIMIT, ask, helper, in_each_control_group, launch, start, under_each_containment, wait_until,
};
use regatta_host::{
    CgroupVersion, Containment, ObservedProcesses, Ready, Running, Spent, Usage, UsageWindow,
};
use regatta_record::{Unseen, UsageSource};
use regatta_testkit::port;
use std::{
    process::{Command, Stdio},
    time::Instant,
};

under_each_containment!(
    cpu_of_a_process_is_read_by_its_clock,
    finds_the_busiest_of_many_threads,
    cpu_of_ended_threads_stays_with_their_process,
    cpu_of_children_that_came_and_went_is_counted,
    cpu_of_orphans_is_counted_too,
    children_that_end_in_a_window_without_being_waited_for_are_counted_or_reported_as_unseen,
    clocks_are_accurate_in_a_window_in_which_no_process_ends,
);
in_each_control_group!(a_control_group_counts_even_children_that_are_not_waited_for);

const MS: u64 = 1_000_000;

/// Runs `command` in a fresh contender. Returns the measured usage, and the usage it reports itself.
fn measure(containment: Containment, script: &str, command: &str) -> (Spent, u64) {
    let (mut running, traces) = start(&launch(containment, script));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    let before = running.usage().unwrap();
    let reported = ask(running.port(), command).unwrap();
    let spent = running.usage().unwrap().since(&before);
    running.stop(LIMIT).unwrap();
    traces.assert_gone();
    (spent, reported)
}

fn assert_near(spent: &Spent, reported: u64, tolerance_ms: u64) {
    let near = spent.cpu_ns.abs_diff(reported) <= tolerance_ms * MS;
    assert!(near, "measured {spent:?}, the contender reports {reported} ns");
}

fn source(containment: Containment) -> UsageSource {
    match containment {
        Containment::Only(CgroupVersion::V2) => UsageSource::CgroupV2,
        Containment::Only(CgroupVersion::V1) => UsageSource::CgroupV1,
        _ => UsageSource::ProcessTree,
    }
}

fn cpu_of_a_process_is_read_by_its_clock(containment: Containment) {
    let (spent, reported) = measure(containment, "exec $HELPER serve $PORT", "burn 200");
    assert!(reported >= 200 * MS);
    assert_near(&spent, reported, 5);
    assert_eq!(spent.source, UsageSource::ProcessClocks);
    assert_eq!((spent.processes, spent.threads), (1, 1));
    assert!(spent.user_ns + spent.system_ns >= 150 * MS, "{spent:?}");
}

fn finds_the_busiest_of_many_threads(containment: Containment) {
    let (mut running, traces) = start(&launch(containment, "exec $HELPER serve $PORT"));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    ask(running.port(), "idle 6").unwrap();
    let before = running.usage().unwrap();
    let reported = ask(running.port(), "burn 200").unwrap();
    let spent = running.usage().unwrap().since(&before);
    assert_eq!(spent.threads, 7, "{spent:?}");
    let busiest = spent.busiest_thread_ns.expect("this kernel reports it");
    assert!(busiest.abs_diff(reported) <= 5 * MS, "{busiest} of {reported} ns");
    running.stop(LIMIT).unwrap();
    traces.assert_gone();
}

#[test]
fn waiting_costs_switches_and_next_to_no_cpu() {
    let (spent, _) = measure(Containment::Best, "exec $HELPER serve $PORT", "nap 100");
    assert!(spent.voluntary_switches >= 1, "{spent:?}");
    assert!(spent.cpu_ns < 20 * MS, "{spent:?}");
}

fn cpu_of_ended_threads_stays_with_their_process(containment: Containment) {
    let (spent, reported) = measure(containment, "exec $HELPER serve $PORT", "threads 4 50");
    assert!(reported >= 200 * MS);
    assert_near(&spent, reported, 5);
    // Only the group counts the CPU that a thread uses while it exits, so the source is the
    // group or the clocks.
    assert_ne!(spent.source, UsageSource::ProcessTree);
}

fn cpu_of_children_that_came_and_went_is_counted(containment: Containment) {
    let (spent, reported) = measure(containment, "exec $HELPER serve $PORT", "children 20 10");
    assert!(reported >= 200 * MS);
    assert_near(&spent, reported, 40);
    assert_eq!(spent.source, source(containment));
    assert_eq!(spent.processes, 1);
}

fn cpu_of_orphans_is_counted_too(containment: Containment) {
    let (mut running, traces) = start(&launch(containment, "exec $HELPER serve $PORT"));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    let before = running.usage().unwrap();
    ask(running.port(), "orphan 200").unwrap();
    wait_until("the orphan ended", || running.processes().len() == 1);
    let spent = running.usage().unwrap().since(&before);
    assert!(spent.cpu_ns >= 180 * MS && spent.cpu_ns < 400 * MS, "{spent:?}");
    assert_eq!(spent.source, source(containment));
    drop(running);
    traces.assert_gone();
}

fn a_control_group_counts_even_children_that_are_not_waited_for(containment: Containment) {
    let (mut running, traces) = start(&launch(containment, "exec $HELPER serve $PORT"));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    ask(running.port(), "forget").unwrap();
    let before = running.usage().unwrap();
    let own = ask(running.port(), "children 20 10").unwrap();
    let spent = running.usage().unwrap().since(&before);
    assert!(own < 100 * MS, "{own} ns: its children are waited for");
    assert!(spent.cpu_ns >= 180 * MS && spent.cpu_ns < 400 * MS, "{spent:?}");
    assert_eq!(spent.source, source(containment));
    running.stop(LIMIT).unwrap();
    traces.assert_gone();
}

fn children_that_end_in_a_window_without_being_waited_for_are_counted_or_reported_as_unseen(
    containment: Containment,
) {
    let (mut running, traces) = start(&launch(containment, "exec $HELPER serve $PORT"));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    ask(running.port(), "forget").unwrap();
    let mut window = UsageWindow::of(running.observed());
    window.before();
    window.opens();
    // Two children of 5 ms beside 300 ms: less than the ticks that a control group may lag by.
    let own = ask(running.port(), "burn 300").unwrap();
    let own = own + ask(running.port(), "children 2 5").unwrap();
    window.closes();
    window.after();
    let spent = window.spent().unwrap();
    if containment == Containment::Without {
        assert_eq!(spent.unseen, Unseen::Unbounded, "{spent:?}");
    } else {
        assert!(spent.cpu_ns >= own + 9 * MS, "{spent:?}, and it used {own} ns itself");
        assert!(spent.cpu_ns < own + 60 * MS, "{spent:?}, and it used {own} ns itself");
        assert_eq!(spent.unseen, Unseen::AtMostNs(0), "{spent:?}");
    }
    running.stop(LIMIT).unwrap();
    traces.assert_gone();
}

fn clocks_are_accurate_in_a_window_in_which_no_process_ends(containment: Containment) {
    let (mut running, traces) = start(&launch(containment, "exec $HELPER serve $PORT"));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    let mut window = UsageWindow::of(running.observed());
    window.before();
    window.opens();
    let reported = ask(running.port(), "burn 200").unwrap();
    window.closes();
    window.after();
    let spent = window.spent().unwrap();
    assert_near(spent, reported, 5);
    assert_eq!(spent.source, UsageSource::ProcessClocks);
    if containment != Containment::Without {
        let Unseen::AtMostNs(unseen) = spent.unseen else { panic!("{spent:?}") };
        assert!(unseen < MS, "{spent:?}");
    }
    running.stop(LIMIT).unwrap();
    traces.assert_gone();
}

#[test]
fn a_tree_with_its_root_is_read_for_any_process() {
    let port = port::free();
    let mut server = Command::new(helper())
        .args(["serve", &port.to_string()])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("it listens", || regatta_host::is_taken(port).unwrap());
    let observed = ObservedProcesses::tree(server.id());
    let before = observed.usage().unwrap();
    let reported = ask(port, "burn 50").unwrap();
    let spent = observed.usage().unwrap().since(&before);
    assert_near(&spent, reported, 5);
    let before = observed.memory();
    assert!(before.proportional > 100_000);
    const HELD: i64 = 32 << 20;
    ask(port, &format!("hold {HELD}")).unwrap();
    let grown = observed.memory().user_growth(&before).unwrap();
    assert!((HELD..HELD + (1 << 20)).contains(&grown), "{grown}");
    server.kill().unwrap();
    server.wait().unwrap();
    let error = observed.usage().unwrap_err().to_string();
    assert!(error.contains(&format!("process {} cannot be read", server.id())), "{error}");
}

#[test]
fn reading_is_cheap() {
    let script = "for i in 1 2 3; do sleep 1000 & done; exec $HELPER serve $PORT";
    let (mut running, traces) = start(&launch(Containment::Best, script));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    let timed = |running: &Running| -> (Usage, u128) {
        let start = Instant::now();
        let usage = running.usage().unwrap();
        (usage, start.elapsed().as_micros())
    };
    // The quickest of many readings: the others are disturbed by other work on the machine.
    let quickest_us = (0..50).map(|_| timed(&running).1).min().unwrap();
    assert!(quickest_us < 1000, "reading five processes took {quickest_us} µs");
    drop(running);
    traces.assert_gone();
}
