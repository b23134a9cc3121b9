//! Stops of contenders, graceful or not.

use super::common::{LIMIT, ask, launch, start, under_each_containment, wait_for, wait_until};
use regatta_host::{Containment, Ending, Ready, Status};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

under_each_containment!(
    a_contender_that_dies_while_it_runs_is_reported,
    a_contender_that_ignores_sigterm_is_killed_after_the_grace_period,
    descendants_that_outlive_the_started_process_are_killed_and_named,
    workers_that_end_later_than_the_started_process_are_waited_for,
    children_that_the_contender_never_reaped_do_not_delay_its_stop,
    a_contender_that_moves_to_the_background_after_it_was_ready_is_reported,
    kills_all_of_fifty_children_in_different_sessions,
    dropping_a_contender_kills_it_without_a_grace_period,
    two_contenders_do_not_disturb_each_other,
);

const SHORT: Duration = Duration::from_millis(200);

fn a_contender_that_dies_while_it_runs_is_reported(containment: Containment) {
    let (mut running, traces) = start(&launch(containment, "exec $HELPER serve $PORT"));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    assert_eq!(ask(running.port(), "die 7"), None);
    wait_until("its death is seen", || !running.is_alive());
    let report = running.stop(LIMIT).unwrap();
    assert_eq!((report.ending, report.status), (Ending::EndedBefore, Some(Status::Code(7))));
    let fault = report.fault().unwrap();
    assert!(fault.starts_with("probe exited with status 7 before it was asked to stop"));
    traces.assert_gone();
}

fn a_contender_that_ignores_sigterm_is_killed_after_the_grace_period(containment: Containment) {
    let script = "trap '' TERM; exec $HELPER serve $PORT";
    let (mut running, traces) = start(&launch(containment, script));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    let pid = running.pid();
    let report = running.stop(SHORT).unwrap();
    assert_eq!(report.ending, Ending::IgnoredSigterm);
    assert_eq!(report.status, Some(Status::Signal(9)));
    assert_eq!(report.killed.first.iter().map(|process| process.pid).collect::<Vec<_>>(), [pid]);
    assert!(report.fault().unwrap().contains("ignored SIGTERM for 0.2 s"));
    traces.assert_gone();
}

fn descendants_that_outlive_the_started_process_are_killed_and_named(containment: Containment) {
    let script = "setsid sleep 1000 & exec $HELPER serve $PORT";
    let (mut running, mut traces) = start(&launch(containment, script));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    wait_for(&running, "sleep");
    traces.add(&running);
    let report = running.stop(SHORT).unwrap();
    assert_eq!(report.ending, Ending::LeftDescendants);
    assert_eq!(report.killed.len(), 1);
    assert_eq!(report.killed.first[0].name, "sleep");
    assert!(report.fault().unwrap().contains("left 1 processes"));
    traces.assert_gone();
}

fn workers_that_end_later_than_the_started_process_are_waited_for(containment: Containment) {
    let worker = "trap 'sleep 0.1; exit' TERM; while :; do sleep 0.01; done";
    let script = format!("sh -c \"{worker}\" & exec $HELPER serve $PORT");
    let (mut running, mut traces) = start(&launch(containment, &script));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    wait_until("the worker works", || running.processes().len() == 3);
    traces.add(&running);
    let report = running.stop(LIMIT).unwrap();
    assert_eq!((report.ending, report.fault()), (Ending::Obeyed, None));
    traces.assert_gone();
}

/// The supervisor inherits all of them at once, when the contender ends.
fn children_that_the_contender_never_reaped_do_not_delay_its_stop(containment: Containment) {
    let script = "for i in $(seq 50); do sleep 0.1 & done; exec $HELPER serve $PORT";
    let (mut running, traces) = start(&launch(containment, script));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    wait_until("all have ended", || running.processes().len() == 1);
    let began = Instant::now();
    let report = running.stop(LIMIT).unwrap();
    assert!(began.elapsed() < LIMIT, "the stop took the whole grace period");
    assert_eq!((report.ending, report.fault()), (Ending::Obeyed, None));
    traces.assert_gone();
}

fn a_contender_that_moves_to_the_background_after_it_was_ready_is_reported(
    containment: Containment,
) {
    let (mut running, mut traces) =
        start(&launch(containment, "setsid $HELPER serve $PORT & sleep 0.3"));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    traces.add(&running);
    wait_until("the started process ends", || !running.is_alive());
    let report = running.stop(LIMIT).unwrap();
    assert_eq!((report.ending, report.status), (Ending::Background, Some(Status::Code(0))));
    assert!(report.killed.is_empty(), "the orphan was asked to end, and did");
    traces.assert_gone();
}

fn kills_all_of_fifty_children_in_different_sessions(containment: Containment) {
    let script = "for i in $(seq 25); do sleep 1000 & setsid sh -c \"trap '' TERM; \
                  exec sleep 1000\" & done; exec $HELPER serve $PORT";
    let (mut running, mut traces) = start(&launch(containment, script));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    wait_until("all are running, and 25 ignore SIGTERM", || {
        running.processes().iter().filter(|process| process.name == "sleep").count() == 50
    });
    traces.add(&running);
    let report = running.stop(SHORT).unwrap();
    assert_eq!(report.ending, Ending::LeftDescendants);
    assert_eq!(report.killed.len(), 25);
    assert!(report.remaining.is_empty(), "{report:?}");
    traces.assert_gone();
}

/// A supervisor's message fits in its pipe, however many processes it lists: the pipe is not read while
/// a window is measured.
#[test]
fn a_supervisor_does_not_block_on_an_unread_report_of_two_thousand_survivors() {
    const SURVIVORS: usize = 2_000;
    let (running, mut traces) =
        start(&launch(Containment::Without, &format!("exec $HELPER swarm {SURVIVORS}")));
    let is_there = |pid: u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    wait_until("only the survivors are there", || {
        !is_there(running.pid()) && running.processes().len() == SURVIVORS
    });
    traces.add(&running);
    let one = running.processes()[0].pid;
    kill_process(Pid::from_raw(one as i32).unwrap(), Signal::KILL).unwrap();
    wait_until("the supervisor has reaped one", || !is_there(one));
    let report = running.stop(SHORT).unwrap();
    assert_eq!(report.ending, Ending::Background);
    assert!(report.fault().unwrap().contains("background"), "{report:?}");
    traces.assert_gone();
}

fn dropping_a_contender_kills_it_without_a_grace_period(containment: Containment) {
    let script = "trap '' TERM; setsid sleep 1000 & $HELPER serve $PORT";
    let (mut running, mut traces) = start(&launch(containment, script));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    traces.add(&running);
    drop(running);
    traces.assert_gone();
}

fn two_contenders_do_not_disturb_each_other(containment: Containment) {
    let script = "setsid sleep 1000 & exec $HELPER serve $PORT";
    let (mut first, mut first_traces) = start(&launch(containment, script));
    let (mut second, mut second_traces) = start(&launch(containment, script));
    for running in [&mut first, &mut second] {
        running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
        wait_for(running, "sleep");
    }
    first_traces.add(&first);
    second_traces.add(&second);
    let others = second.processes();
    let before = second.usage().unwrap();
    ask(first.port(), "burn 100").unwrap();
    drop(first);
    first_traces.assert_gone();
    assert!(second.is_alive());
    assert_eq!(second.processes(), others);
    assert!(second.usage().unwrap().since(&before).cpu_ns < 50_000_000);
    drop(second);
    second_traces.assert_gone();
}
