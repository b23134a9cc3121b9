//! The priority of a race over other programs of the machine: one that runs for 3 ms in the middle of a slice
//! changes what a request costs, and delays replies.

use rustix::process::{getpriority_process, setpriority_process};
use std::{fs, io};

/// The highest priority of ordinary processes (setpriority(2)).
const HIGHEST: i32 = -20;
/// The priority of the processes of a session together, relative to other sessions (sched(7), autogroup).
const SESSION: &str = "/proc/self/autogroup";

/// Raises the priority of this process and of what it starts. Only root may; without that right, it fails.
pub fn raise_priority() -> io::Result<()> {
    Ok(setpriority_process(None, HIGHEST)?)
}

/// Raises the priority of this process's session over other sessions. It stays so when the process has ended: for
/// sessions that end with it. A kernel without such priorities, or one that does not permit it, changes nothing.
pub fn raise_session() {
    let _ = fs::write(SESSION, HIGHEST.to_string());
}

/// Returns the nice value of this process: −20 is the highest priority, 0 the usual one.
pub fn priority() -> Option<i32> {
    getpriority_process(None).ok()
}
