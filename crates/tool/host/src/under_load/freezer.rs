//! Freezing a contender while another one is loaded: a frozen process gets no CPU, so it cannot disturb the
//! others, and what it puts off it does once it is thawed.
//!
//! The freezer of the control group stops all processes within some 20 µs, also those that are being
//! started (cgroup.freeze in the kernel's cgroup-v2 documentation, the freezer controller in version 1).
//! Without such a group every process gets SIGSTOP.

use crate::{
    contender::roles::Roles,
    group::cgroup::Cgroup,
    usage::{meter::Meter, tree::ObservedProcesses},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs, io, thread,
    time::{Duration, Instant},
};

/// Time limit for a freeze. A process in an uninterruptible wait, e.g. for a disk, delays it.
const FREEZES_WITHIN: Duration = Duration::from_millis(200);

/// The processes of one contender, which can be frozen and thawed, and the CPU time that they use in between.
/// Dropping it thaws them.
#[derive(Debug)]
pub struct Freezer {
    parts: Vec<Part>,
    frozen: bool,
}

/// The processes of one supervisor.
#[derive(Debug)]
enum Part {
    Group(Cgroup),
    /// Processes without a group that has a freezer.
    Signals(ObservedProcesses),
    /// They were not started by regatta, so they keep running.
    Attached,
}

impl Freezer {
    /// For all processes of a contender, its backends included.
    pub fn of(roles: &Roles) -> Freezer {
        let part = |observed: ObservedProcesses| match observed.cgroup() {
            Some(group) if group.can_freeze() => Part::Group(group.clone()),
            _ => Part::Signals(observed),
        };
        let of_role = |role: &crate::Role| -> Vec<Part> {
            match role.is_attached() {
                true => vec![Part::Attached],
                false => role.observed().into_iter().map(part).collect(),
            }
        };
        Freezer { parts: roles.all().iter().flat_map(of_role).collect(), frozen: false }
    }

    /// Whether all of its processes can be frozen: not if they ran before the race.
    pub fn can_freeze(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, Part::Attached))
    }

    /// Freezes all processes, and returns when they are frozen. Processes that cannot be frozen keep running.
    ///
    /// # Errors
    /// If the kernel refuses, or needs more than 200 ms.
    pub fn freeze(&mut self) -> io::Result<()> {
        self.frozen = true;
        self.parts.iter().try_for_each(|part| match part {
            Part::Group(group) => group.freeze(FREEZES_WITHIN),
            Part::Signals(observed) => stop(observed),
            Part::Attached => Ok(()),
        })
    }

    /// Thaws all processes. No error if they have exited.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn thaw(&mut self) -> io::Result<()> {
        self.frozen = false;
        self.parts.iter().try_for_each(|part| match part {
            Part::Group(group) => match group.thaw() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                thawed => thawed,
            },
            Part::Signals(observed) => {
                signal(observed, Signal::CONT);
                Ok(())
            }
            Part::Attached => Ok(()),
        })
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        if self.frozen {
            // The supervisor kills frozen processes, too.
            let _ = self.thaw();
        }
    }
}

fn signal(observed: &ObservedProcesses, signal: Signal) {
    for pid in observed.pids().into_iter().filter_map(|pid| Pid::from_raw(pid as i32)) {
        // An error means that it has exited.
        let _ = kill_process(pid, signal);
    }
}

/// Stops every process, also those that are started meanwhile.
fn stop(observed: &ObservedProcesses) -> io::Result<()> {
    let deadline = Instant::now() + FREEZES_WITHIN;
    loop {
        signal(observed, Signal::STOP);
        if observed.pids().into_iter().all(is_stopped) {
            return Ok(());
        }
        if Instant::now() > deadline {
            let what = format!("its processes are not stopped after {FREEZES_WITHIN:?}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, what));
        }
        thread::sleep(Duration::from_micros(50));
    }
}

/// Whether all threads of a process are stopped or have exited (state in /proc/PID/task/TID/stat).
fn is_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.into_iter().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
        state.is_none_or(|rest| rest.starts_with(['T', 't', 'Z', 'X']))
    })
}

/// Returns a meter for each role of a contender: read while its processes are frozen, the figures are exact,
/// because the kernel's clock of a running thread lags by up to a timer tick.
pub fn meters(roles: &Roles) -> Vec<Meter> {
    roles.all().iter().map(|role| Meter::of(role.observed())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn processes_run_again_after_a_freeze_that_failed_for_others() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let gone = serde_json::json!({ "version": "v2", "path": "/nonexistent", "home": "/" });
        let gone: Cgroup = serde_json::from_value(gone).unwrap();
        let parts = vec![Part::Signals(ObservedProcesses::tree(child.id())), Part::Group(gone)];
        let mut freezer = Freezer { parts, frozen: false };
        let frozen = freezer.freeze();
        let was_stopped = is_stopped(child.id());
        drop(freezer);
        let until = Instant::now() + Duration::from_secs(10);
        while is_stopped(child.id()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        let is_left = is_stopped(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((frozen.is_err(), was_stopped, is_left), (true, true, false));
    }
}
