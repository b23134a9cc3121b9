//! Kills the processes that a killed supervisor left behind. Its orphans become children of `race`,
//! which is their reaper. They are identified by a mark in their environment and by the control group.

use crate::{
    cgroup::Cgroup,
    process::{all_children, children, descendants},
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::{
    collections::BTreeSet,
    fs, thread,
    time::{Duration, Instant},
};

/// The environment variable that every process of a contender inherits.
const VARIABLE: &str = "REGATTA_CONTENDER";

/// Name and value of the mark.
pub(crate) fn mark(value: &str) -> (String, String) {
    (VARIABLE.to_string(), value.to_string())
}

/// Sends SIGKILL to all orphans with `mark` and all of their descendants, and to all processes in
/// `cgroup`, until none remains or `limit` is over. Reaps them.
///
/// Without a control group, a process that both lost its ancestors and cleared its environment cannot
/// be distinguished from unrelated processes, and is spared.
pub(crate) fn end(mark: &str, cgroup: Option<&Cgroup>, limit: Duration) {
    let deadline = Instant::now() + limit;
    let mut to_reap = BTreeSet::new();
    loop {
        let mut found = find(mark, cgroup, children);
        if found.is_empty() {
            // The quick listing may miss some children while others end.
            found = find(mark, cgroup, all_children);
        }
        for &pid in &found {
            to_reap.insert(pid);
            if let Some(pid) = Pid::from_raw(pid as i32) {
                // An error means that it has already ended.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        if let Some(cgroup) = cgroup {
            cgroup.kill();
        }
        to_reap.retain(|&pid| is_unreaped_child(pid));
        let is_over = found.is_empty() && to_reap.is_empty() && !any_child_exits();
        if is_over || Instant::now() > deadline {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn find(mark: &str, cgroup: Option<&Cgroup>, children: fn(u32) -> Vec<u32>) -> BTreeSet<u32> {
    let mut found: BTreeSet<u32> =
        cgroup.map(Cgroup::pids).unwrap_or_default().into_iter().collect();
    for child in children(std::process::id()) {
        if has_mark(child, mark) {
            found.insert(child);
            found.extend(descendants(child));
        }
    }
    found
}

/// Whether a child is about to end: it has released its memory, and with it its environment, so that
/// its mark can no longer be read, but it has not ended yet (exit_mm before exit_notify in do_exit,
/// kernel/exit.c).
fn any_child_exits() -> bool {
    let exits = |pid: u32| {
        let read = |file| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let has_no_memory = read("statm").starts_with("0 ");
        let stat = read("stat");
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
        has_no_memory && state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
    };
    all_children(std::process::id()).into_iter().any(exits)
}

fn has_mark(pid: u32, mark: &str) -> bool {
    let entry = format!("{VARIABLE}={mark}");
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(|variable| variable == entry.as_bytes())
}

/// Reaps `pid` if it has ended. Returns true if it is a child that is still running.
fn is_unreaped_child(pid: u32) -> bool {
    let Some(pid) = Pid::from_raw(pid as i32) else { return false };
    matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
}
