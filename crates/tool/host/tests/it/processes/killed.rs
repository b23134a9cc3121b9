//! `race` or the supervisor is killed with SIGKILL: nothing may be left.

use super::common::{
    LIMIT, Traces, helper, launch, start, under_each_containment, wait_for, wait_until,
};
use regatta_host::{Containment, Launch, NotReady, Ready, is_taken};
use rustix::process::{Pid, Signal, getpgid, kill_process};
use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

under_each_containment!(
    nothing_is_left_after_race_was_killed,
    a_stop_does_not_use_its_grace_period_after_race_was_killed,
    nothing_is_left_after_a_signal_asked_supervisor_and_race_to_end,
    nothing_is_left_after_the_supervisor_was_killed,
    nothing_is_left_after_the_supervisor_was_killed_before_the_contender_was_ready,
    nothing_is_left_after_the_supervisor_was_killed_unnoticed,
    nothing_is_left_of_a_contender_that_runs_one_program_after_the_other,
    terminal_signals_reach_neither_supervisor_nor_contender,
);

/// Ignores SIGTERM, in two sessions.
const STUBBORN: &str = "trap '' TERM; setsid sleep 1000 & exec $HELPER serve $PORT";

fn nothing_is_left_after_race_was_killed(containment: Containment) {
    let launch = launch(containment, STUBBORN);
    let (race, traces) = start_race("race", &launch);
    wait_until("it listens", || is_taken(launch.port).unwrap());
    kill(race);
    traces.assert_gone_soon();
}

fn a_stop_does_not_use_its_grace_period_after_race_was_killed(containment: Containment) {
    let dir = tempfile::tempdir().unwrap();
    // It listens when the trap is set.
    let script = "trap ': >asked' TERM; $HELPER serve $PORT & while :; do sleep 0.01; done";
    let launch = Launch { dir: dir.path().to_owned(), ..launch(containment, script) };
    let (race, traces) = start_race("race-that-stops", &launch);
    wait_until("it is asked to end", || dir.path().join("asked").exists());
    kill(race);
    traces.assert_gone_soon();
}

/// Starts a race to be killed, as the helper does with this argument.
fn start_race(how: &str, launch: &Launch) -> (Child, Traces) {
    let mut race = Command::new(helper())
        .args([how, &serde_json::to_string(launch).unwrap()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(race.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (pids, cgroup): (Vec<u32>, Option<PathBuf>) = serde_json::from_str(&line).unwrap();
    assert!(pids.len() >= 2, "{line}");
    (race, Traces::new(pids, launch.port, cgroup))
}

fn kill(mut race: Child) {
    race.kill().unwrap();
    race.wait().unwrap();
}

/// As after `pkill regatta`: the supervisor is asked first, and `race` does not live long enough to see it.
fn nothing_is_left_after_a_signal_asked_supervisor_and_race_to_end(containment: Containment) {
    let launch = launch(containment, STUBBORN);
    let (mut race, traces) = start_race("race", &launch);
    wait_until("it listens", || is_taken(launch.port).unwrap());
    for pid in [traces.supervisor(), race.id()] {
        kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::TERM).unwrap();
    }
    race.wait().unwrap();
    traces.assert_gone_soon();
}

fn nothing_is_left_after_the_supervisor_was_killed(containment: Containment) {
    let (mut running, mut traces) = start(&launch(containment, STUBBORN));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    wait_for(&running, "sleep");
    traces.add(&running);
    let supervisor = Pid::from_raw(running.supervisor_pid() as i32).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    wait_until("its death is seen", || !running.is_alive());
    traces.assert_gone();
    let error = running.stop(LIMIT).unwrap_err().to_string();
    assert!(error.starts_with("the supervisor of probe"), "{error}");
}

fn nothing_is_left_after_the_supervisor_was_killed_before_the_contender_was_ready(
    containment: Containment,
) {
    let (mut running, traces) = start(&launch(containment, "exec sleep 1000"));
    let supervisor = Pid::from_raw(running.supervisor_pid() as i32).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    let error = running.wait_ready(&Ready::Tcp, LIMIT).unwrap_err();
    assert!(matches!(error, NotReady::Supervisor(_)), "{error:?}");
    traces.assert_gone();
}

fn nothing_is_left_after_the_supervisor_was_killed_unnoticed(containment: Containment) {
    let (running, traces) = start(&launch(containment, STUBBORN));
    let supervisor = Pid::from_raw(running.supervisor_pid() as i32).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    drop(running);
    traces.assert_gone();
}

fn nothing_is_left_of_a_contender_that_runs_one_program_after_the_other(containment: Containment) {
    let script = r#"export NEXT='exec sh -c "$NEXT"'; exec sh -c "$NEXT""#;
    for _ in 0..100 {
        let (running, traces) = start(&launch(containment, script));
        let supervisor = Pid::from_raw(running.supervisor_pid() as i32).unwrap();
        kill_process(supervisor, Signal::KILL).unwrap();
        drop(running);
        traces.assert_gone();
    }
}

fn terminal_signals_reach_neither_supervisor_nor_contender(containment: Containment) {
    let (running, traces) = start(&launch(containment, "exec sleep 1000"));
    let group = |pid: u32| getpgid(Pid::from_raw(pid as i32)).unwrap();
    let groups = [std::process::id(), running.supervisor_pid(), running.pid()].map(group);
    assert_eq!(groups[1].as_raw_nonzero().get() as u32, running.supervisor_pid());
    assert_eq!(groups[2].as_raw_nonzero().get() as u32, running.pid());
    assert!(groups[0] != groups[1] && groups[0] != groups[2]);
    drop(running);
    traces.assert_gone();
}
