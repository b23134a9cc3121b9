//! Kills the processes that a killed supervisor left behind. Its orphans become children of `race`,
//! which is their reaper. They are identified by a mark in their environment and by the control group.

use crate::{
    group::cgroup::Cgroup,
    process::tree::{all_children, children, descendants},
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
        let (mut found, mut are_known) = find(mark, cgroup, children);
        if found.is_empty() {
            // The quick listing may miss some children while others end.
            (found, are_known) = find(mark, cgroup, all_children);
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
        let is_over = found.is_empty() && to_reap.is_empty() && are_known;
        if is_over || Instant::now() > deadline {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the processes to kill, and whether it is known of all children whether they are.
fn find(
    mark: &str,
    cgroup: Option<&Cgroup>,
    children: fn(u32) -> Vec<u32>,
) -> (BTreeSet<u32>, bool) {
    let mut are_known = true;
    let mut found: BTreeSet<u32> =
        cgroup.map(Cgroup::pids).unwrap_or_default().into_iter().collect();
    for child in children(std::process::id()) {
        match has_mark(child, mark) {
            Some(true) => {
                found.insert(child);
                found.extend(descendants(child));
            }
            Some(false) => {}
            None => are_known = false,
        }
    }
    (found, are_known)
}

/// Whether a process has `mark`. `None`: not known at this moment, because it has no environment while it is
/// about to run another program (exec_mmap before create_elf_tables, fs/exec.c) or to end (exit_mm before
/// exit_notify in do_exit, kernel/exit.c).
fn has_mark(pid: u32, mark: &str) -> Option<bool> {
    let entry = format!("{VARIABLE}={mark}");
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    if environment.is_empty() {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        if stat.is_ok_and(|stat| !has_ended_or_cleared(&stat)) {
            return None;
        }
    }
    Some(environment.split(|&byte| byte == 0).any(|variable| variable == entry.as_bytes()))
}

/// Whether a process without an environment stays without, by its `stat`: it has ended, or was given none.
fn has_ended_or_cleared(stat: &str) -> bool {
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_ascii_whitespace());
    fields.is_some_and(|mut fields| {
        // The state is field 3; begin and end of the environment are fields 50 and 51 (proc_pid_stat(5)).
        let has_ended = matches!(fields.next(), Some("Z" | "X"));
        let (begin, end) = (fields.nth(46), fields.next());
        has_ended || begin == end && begin != Some("0")
    })
}

/// Reaps `pid` if it has ended. Returns true if it is a child that is still running.
fn is_unreaped_child(pid: u32) -> bool {
    let Some(pid) = Pid::from_raw(pid as i32) else { return false };
    matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(state: char, begin: u64, end: u64) -> String {
        let between: String = (4..50).map(|field| format!("{field} ")).collect();
        format!("7 (a (b) c) {state} {between}{begin} {end} 0\n")
    }

    #[test]
    fn a_missing_environment_may_be_missing_for_a_moment() {
        assert!(!has_ended_or_cleared(&stat('R', 0, 0)), "it is about to run another program");
        assert!(!has_ended_or_cleared(&stat('R', 4_096, 4_200)), "it has one by now");
        assert!(has_ended_or_cleared(&stat('S', 4_096, 4_096)), "it was started without one");
        assert!(has_ended_or_cleared(&stat('Z', 0, 0)) && has_ended_or_cleared(&stat('X', 0, 0)));
    }

    #[test]
    fn this_process_has_no_mark_and_a_missing_one_neither() {
        assert_eq!(has_mark(std::process::id(), "a"), Some(false));
        assert_eq!(has_mark(u32::MAX, "a"), Some(false));
        // The fields of the kernel are where they are expected.
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        assert!(!has_ended_or_cleared(&stat), "{stat}");
        let child = std::process::Command::new("sleep").arg("9").env_clear().spawn();
        let mut child = child.unwrap();
        let cleared = has_mark(child.id(), "a");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(cleared, Some(false));
    }
}
