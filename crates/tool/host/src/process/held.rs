//! The sockets among the open files of processes (`/proc/PID/fd`).

use crate::process::tree::{all_pids, threads};
use std::{collections::BTreeSet, fs};

/// Returns the processes whose open files contain one of these sockets. Reads the open files of all
/// processes of the machine, which takes some 10 ms.
pub(crate) fn holders(sockets: &BTreeSet<u64>) -> BTreeSet<u32> {
    all_pids().into_iter().filter(|pid| !Held::by(*pid).sockets.is_disjoint(sockets)).collect()
}

/// The sockets and rings among the open files of a process.
#[derive(Default)]
pub(crate) struct Held {
    /// Inodes of sockets.
    pub sockets: BTreeSet<u64>,
    /// Whether it has a ring, which may hold sockets that are not shown.
    pub has_ring: bool,
}

impl Held {
    /// Reads the files of a process's first thread, which are usually those of all threads. Empty if the
    /// process is gone, or if its files may not be read.
    pub fn by(pid: u32) -> Held {
        let mut held = Held::default();
        held.add(&format!("/proc/{pid}/fd"));
        held
    }

    /// Reads the files of all threads of a process: threads may have their own files (CLONE_FILES,
    /// clone(2)), and may outlive the first thread.
    pub fn by_threads(pid: u32) -> Held {
        let mut held = Held::by(pid);
        for thread in threads(pid) {
            held.add(&format!("/proc/{pid}/task/{thread}/fd"));
        }
        held
    }

    fn add(&mut self, folder: &str) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for link in entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()) {
            let link = link.to_string_lossy();
            let inode = link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
            self.sockets.extend(inode.and_then(|inode| inode.parse::<u64>().ok()));
            self.has_ring |= link == "anon_inode:[io_uring]";
        }
    }
}
