//! Kills and reaps all descendants of this process.

use crate::{
    group::cgroup::Cgroup,
    process::{
        status::Status,
        tree::{self, Process, descendants, living_descendants},
    },
};
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpid, kill_process, wait},
};
use std::{
    io, thread,
    time::{Duration, Instant},
};

/// Time limit for processes to disappear after SIGKILL. Only those that hang in the kernel exceed it.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Reaps every child that has ended. Returns true if no child remains.
pub(crate) fn reap(mut reaped: impl FnMut(Pid, Status)) -> io::Result<bool> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => reaped(pid, Status::of_raw(status.as_raw())),
            Ok(None) => return Ok(false),
            Err(Errno::CHILD) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends SIGKILL to every descendant until none remains. Returns those that remain after [`KILL_LIMIT`].
pub(crate) fn kill_all(
    cgroup: Option<&Cgroup>,
    mut reaped: impl FnMut(Pid, Status),
) -> Vec<Process> {
    let own = pid_number(getpid());
    let deadline = Instant::now() + KILL_LIMIT;
    while !reap(&mut reaped).unwrap_or(false) {
        if Instant::now() > deadline {
            return living_descendants(own);
        }
        if let Some(cgroup) = cgroup {
            cgroup.kill();
        }
        for pid in pids(descendants(own)) {
            // An error means that it has already ended.
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(1));
    }
    // No process can leave the tree. If the impossible happens, the control group shows it.
    cgroup.map(Cgroup::pids).unwrap_or_default().into_iter().map(tree::named).collect()
}

pub(crate) fn pids(numbers: Vec<u32>) -> impl Iterator<Item = Pid> {
    numbers.into_iter().filter_map(|number| Pid::from_raw(number as i32))
}

pub(crate) fn pid_number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get() as u32
}
