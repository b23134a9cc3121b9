//! fork(2), for a process of one thread.

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use std::{fs, io};

/// Which of the two processes this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The one that forked, and its new child.
    Parent(Pid),
    /// The child.
    Child,
}

/// The right to fork: this process had one thread when it was given.
#[derive(Debug)]
pub struct Fork(());

impl Fork {
    /// Fails when this process has more than one thread: the others, and what they had locked,
    /// would be missing in the child. Who holds this starts no threads.
    pub fn new() -> io::Result<Self> {
        let threads = fs::read_dir("/proc/self/task")?.count();
        if threads == 1 {
            return Ok(Fork(()));
        }
        Err(io::Error::other(format!("a process of {threads} threads cannot fork")))
    }

    /// Makes a child, which is killed when this process ends. Fails when out of processes or
    /// memory.
    pub fn fork(&self) -> io::Result<Forked> {
        let parent = getpid();
        // SAFETY: the process has one thread (`new`), so the child is a whole copy of it: no lock
        // is held by a thread that is missing there.
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
