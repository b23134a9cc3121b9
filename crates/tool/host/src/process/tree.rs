//! Processes and process trees, as `/proc` describes them. Read-only.

use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeSet, HashMap},
    fmt, fs, io,
    path::{Path, PathBuf},
};

/// A process as it is named in messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// The kernel's name for it (at most 15 bytes); `?` if it has ended.
    pub name: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.pid)
    }
}

/// The fields of `/proc/PID/stat` that are used here. Times are clock ticks (proc_pid_stat(5)).
#[derive(Clone, Debug)]
pub(crate) struct Stat {
    pub name: String,
    pub state: char,
    /// User and system time of the process itself, including its ended threads.
    pub own: Ticks,
    /// User and system time of its children that have ended and were waited for, and of theirs.
    pub waited_for: Ticks,
    /// Start time in ticks since boot; together with the pid, this identifies the process.
    pub started: u64,
}

/// User and system time in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub user: u64,
    pub system: u64,
}

impl Ticks {
    pub fn total(self) -> u64 {
        self.user + self.system
    }

    pub fn plus(self, other: Ticks) -> Ticks {
        Ticks { user: self.user + other.user, system: self.system + other.system }
    }

    /// Subtracts, but not below zero: a sum over living processes falls when one ends without being
    /// waited for.
    pub fn minus(self, other: Ticks) -> Ticks {
        Ticks {
            user: self.user.saturating_sub(other.user),
            system: self.system.saturating_sub(other.system),
        }
    }
}

impl Stat {
    /// Reads it; fails with `NotFound` or "no such process" if the process is gone.
    pub fn of(pid: u32) -> io::Result<Stat> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Stat::parse(&text).ok_or_else(|| {
            io::Error::other(format!(
                "/proc/{pid}/stat does not have the format of proc_pid_stat(5): {text:?}"
            ))
        })
    }

    /// Parses the fields. The name is in parentheses and may itself contain parentheses and spaces.
    fn parse(text: &str) -> Option<Stat> {
        let (open, close) = (text.find('(')?, text.rfind(')')?);
        let name = text.get(open + 1..close)?.to_string();
        let fields: Vec<&str> = text.get(close + 1..)?.split_whitespace().collect();
        // The manual counts from 1. The state, our first field, is its third.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Stat {
            name,
            state: fields.first()?.chars().next()?,
            own: Ticks { user: number(14)?, system: number(15)? },
            waited_for: Ticks { user: number(16)?, system: number(17)? },
            started: number(22)?,
        })
    }

    /// Whether it has ended but was not waited for yet: it holds only a pid.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Returns `pid` with its name.
pub(crate) fn named(pid: u32) -> Process {
    let name = Stat::of(pid).map_or_else(|_| "?".to_string(), |stat| stat.name);
    Process { pid, name }
}

/// Whether this kernel lists the children of a process (`CONFIG_PROC_CHILDREN`).
pub(crate) fn can_list_children() -> bool {
    Path::new("/proc/thread-self/children").exists()
}

/// Returns the thread ids of `pid`; none if it is gone.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the children of all threads of `pid`, including zombies; none if it is gone.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let listing = |tid: u32| {
        let path = PathBuf::from(format!("/proc/{pid}/task/{tid}/children"));
        fs::read_to_string(path).unwrap_or_default()
    };
    let mut found = Vec::new();
    for tid in threads(pid) {
        found.extend(listing(tid).split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    found
}

/// Returns all processes whose parent is `pid`, including zombies (proc_pid_stat(5)). Reads a file of
/// each process of the machine, and misses none.
pub(crate) fn all_children(pid: u32) -> Vec<u32> {
    let parent = |of: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{of}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    all_pids().into_iter().filter(|&of| parent(of) == Some(pid)).collect()
}

/// Returns all processes of the machine that this process can see.
pub(crate) fn all_pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the name and the CPU time, in clock ticks, of each process of the machine that this process can see, by its
/// id. One that ends meanwhile is left out.
pub fn cpu_ticks() -> HashMap<u32, (String, u64)> {
    let of = |pid| Stat::of(pid).ok().map(|stat| (pid, (stat.name, stat.own.total())));
    all_pids().into_iter().filter_map(of).collect()
}

/// Returns all descendants of `root`, without `root` itself, parents before their children.
///
/// The kernel may miss a process while its siblings end, so one listing proves nothing. To be certain,
/// list again, or use waitpid(2).
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let mut found = children(root);
    let mut seen: BTreeSet<u32> = found.iter().copied().collect();
    let mut next = 0;
    while next < found.len() {
        for child in children(found[next]) {
            if seen.insert(child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found
}

/// Returns the [`descendants`] that have not ended.
pub(crate) fn living_descendants(root: u32) -> Vec<Process> {
    let living = |pid: u32| {
        let stat = Stat::of(pid).ok().filter(|stat| !stat.is_zombie())?;
        Some(Process { pid, name: stat.name })
    };
    descendants(root).into_iter().filter_map(living).collect()
}

/// Returns the number of processes and threads ever started on this machine (`processes` in
/// proc_stat(5)); `None` if the kernel does not count them.
pub(crate) fn forks() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    number_after(&text, "\nprocesses ").filter(|count| *count > 0)
}

/// Returns the number after a label, up to the next white space.
pub(crate) fn number_after(text: &str, label: &str) -> Option<u64> {
    let (_, after) = text.split_once(label)?;
    after.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let text =
            "6453 (a) b (c)) S 6432 6432 4657 0 -1 4194304 101 0 0 0 7 8 9 10 20 0 3 0 91084 1";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(stat.name, "a) b (c)");
        assert_eq!(stat.own, Ticks { user: 7, system: 8 });
        assert_eq!(stat.waited_for, Ticks { user: 9, system: 10 });
        assert_eq!((stat.state, stat.started), ('S', 91084));
    }

    #[test]
    fn counts_a_started_thread() {
        let before = forks().unwrap();
        std::thread::spawn(|| ()).join().unwrap();
        assert!(forks().unwrap() > before);
    }

    #[test]
    fn finds_itself_and_no_foreign_process_below_itself() {
        let own = std::process::id();
        assert!(can_list_children());
        assert!(!threads(own).is_empty());
        assert!(!Stat::of(own).unwrap().is_zombie());
        assert!(!descendants(own).contains(&1));
    }
}
