//! A race in a session of its own, as a release build runs it if it may have the highest priority: it leads the
//! session, and is killed with the process that started it.

use crate::support::{
    race::course::{Course, until},
    regatta, run,
};
use rustix::process::{Pid, getsid};
use std::{fs, process::Command};

/// Starts the race as a background process of a shell, which stands for the process that waits.
#[test]
fn a_race_in_its_own_session_is_killed_with_the_process_that_waits_for_it() {
    let course = Course::in_rounds();
    course.write_quiet_race("'epoll', 'null'", "300ms", "connections = 8");
    let race = course.command(&["race.toml", "--rounds", "100", "--out", "out"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" own-session $$ \"$@\" & wait"]);
    shell.arg(race.get_program()).args(race.get_args());
    shell.envs(race.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(race.get_current_dir().unwrap());
    let mut shell = course.started(shell);
    until("a round is stored", || !course.rounds().is_empty());
    let is_race = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"race")
    };
    let races: Vec<u32> = course.processes().into_iter().filter(is_race).collect();
    let pids: Vec<_> = races.iter().map(|pid| Pid::from_raw(*pid as i32)).collect();
    assert_eq!(pids.len(), 1);
    assert_eq!(getsid(pids[0]).ok(), pids[0], "it leads its session");
    shell.child.kill().unwrap();
    shell.child.wait().unwrap();
    course.assert_nothing_left_soon();
}

#[test]
fn a_command_whose_parent_is_gone_is_not_run() {
    // The test is its parent, not process 1.
    let ended = run(regatta!("own-session 1 models"));
    assert_eq!((ended.code(), &*ended.stdout), (130, ""));
    let ended = run(regatta!("own-session {} models", std::process::id()));
    assert!(ended.status.success() && !ended.stdout.is_empty(), "{ended:?}");
}
