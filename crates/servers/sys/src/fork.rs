//! fork(2), for single-threaded processes.

use rustix::{
    fs::stat,
    process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal},
};
use std::io;

/// Which of the two processes this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The process that forked, with its new child.
    Parent(Pid),
    /// The child.
    Child,
}

/// Forks this process, as long as it is single-threaded.
#[derive(Debug)]
pub struct Fork(());

impl Fork {
    /// Fails if this process has more than one thread, like [`Fork::fork`], but earlier.
    pub fn new() -> io::Result<Self> {
        check_alone()?;
        Ok(Fork(()))
    }

    /// Creates a child process, which is killed when this process ends. Fails if this process has
    /// more than one thread, and if out of processes or memory.
    pub fn fork(&self) -> io::Result<Forked> {
        check_alone()?;
        let parent = getpid();
        // SAFETY: this is the only thread, and no other could start one. So the child is a complete
        // copy of the process: no lock is held by a thread that is missing there.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        if let Some(child) = Pid::from_raw(pid) {
            return Ok(Forked::Parent(child));
        }
        let kept = set_parent_process_death_signal(Some(Signal::KILL));
        if kept.is_err() || getppid() != Some(parent) {
            signal_hook::low_level::exit(1); // the parent is gone, or its end would go unnoticed
        }
        Ok(Forked::Child)
    }
}

/// Fails if this process has more than one thread: the others would be missing in the child, and
/// their locks would stay locked. Also fails if `/proc` cannot be read. Costs one system call, which is
/// little compared to the fork.
fn check_alone() -> io::Result<()> {
    // A directory has two links, plus one for each subdirectory: here, one per thread.
    match stat("/proc/self/task")?.st_nlink {
        3 => Ok(()),
        links => {
            let threads = links.saturating_sub(2);
            Err(io::Error::other(format!("cannot fork a process with {threads} threads")))
        }
    }
}
