//! fork(2), for a process of one thread.

use rustix::{
    fs::stat,
    process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal},
};
use std::io;

/// Which of the two processes this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The one that forked, and its new child.
    Parent(Pid),
    /// The child.
    Child,
}

/// Forks, while this process has one thread.
#[derive(Debug)]
pub struct Fork(());

impl Fork {
    /// Fails early where [`Fork::fork`] would: when this process has more than one thread.
    pub fn new() -> io::Result<Self> {
        check_alone()?;
        Ok(Fork(()))
    }

    /// Makes a child, which is killed when this process ends. Fails when this process has more than
    /// one thread, and when out of processes or memory.
    pub fn fork(&self) -> io::Result<Forked> {
        check_alone()?;
        let parent = getpid();
        // SAFETY: this is the only thread, and no other could start one, so the child is a whole
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
            signal_hook::low_level::exit(1); // the parent is gone already
        }
        Ok(Forked::Child)
    }
}

/// Fails when this process has more than one thread: the others would be missing in the child, and
/// what they had locked would stay locked. One system call, little beside the fork.
fn check_alone() -> io::Result<()> {
    // A directory has two links, and one more for each directory in it: here, for each thread.
    match stat("/proc/self/task")?.st_nlink {
        3 => Ok(()),
        links => {
            let threads = links.saturating_sub(2);
            Err(io::Error::other(format!("a process of {threads} threads cannot fork")))
        }
    }
}
