//! The memory of a tree of processes: its own in user space, and the kernel's for its connections. It is
//! read at two moments and subtracted.
//!
//! The kernel's part: a version 2 control group with the memory controller counts all of it for the
//! contender alone. A version 1 group does not: the socket of an accepted connection is created by an
//! incoming packet, and not charged to any group. Without version 2, the kernel's tables of its objects
//! are read, which cover the whole system.

use crate::{group::cgroup::Cgroup, process::tree::number_after, usage::tree::ObservedProcesses};
use regatta_record::{KernelGrowth, KernelMemorySource};
use rustix::param::page_size;
use std::fs;

/// Memory at one moment, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Proportional set sizes of all processes. If the kernel does not report them, the resident set
    /// sizes, which count shared pages once for each process.
    pub proportional: u64,
    /// The part of it that is not backed by files: heaps, stacks, shared memory.
    own: Option<u64>,
    kernel: Option<(u64, KernelMemorySource)>,
}

impl Memory {
    /// Returns the growth of its own pages since `earlier`, bytes.
    pub fn user_growth(&self, earlier: &Memory) -> Option<i64> {
        Some(self.own? as i64 - earlier.own? as i64)
    }

    /// Returns the growth of the kernel's memory since `earlier`; `None` if one of the two is unknown,
    /// or if their sources differ.
    pub fn kernel_growth(&self, earlier: &Memory) -> Option<KernelGrowth> {
        let ((now, source), (then, other)) = (self.kernel?, earlier.kernel?);
        (source == other).then_some(KernelGrowth { bytes: now as i64 - then as i64, source })
    }
}

impl Memory {
    /// Reads the current memory of all of `observed` together. Takes milliseconds and disturbs the
    /// processes: do not call it inside a measured window.
    pub fn of(observed: &[ObservedProcesses]) -> Memory {
        let mut memory = Memory { own: Some(0), ..Memory::default() };
        let mut page_tables = 0;
        for pid in observed.iter().flat_map(ObservedProcesses::pids) {
            let read = |file| fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
            let rollup = read("smaps_rollup");
            let kib = |label| number_after(rollup.as_deref()?, label);
            memory.proportional +=
                kib("\nPss:").map(|kib| kib * 1024).or_else(|| resident(pid)).unwrap_or(0);
            // A process that has just ended has no rollup.
            if let Some(rollup) = &rollup
                && !rollup.is_empty()
            {
                let own = kib("\nPss_Anon:").zip(kib("\nPss_Shmem:")).map(|(a, s)| (a + s) * 1024);
                memory.own = memory.own.zip(own).map(|(sum, own)| sum + own);
            }
            let status = read("status").unwrap_or_default();
            page_tables += number_after(&status, "\nVmPTE:").unwrap_or(0) * 1024;
        }
        let groups = observed.iter().map(|one| one.cgroup().and_then(of_cgroup));
        memory.kernel = groups
            .sum::<Option<u64>>()
            .map(|bytes| (bytes, KernelMemorySource::CgroupV2))
            .or_else(|| Some((of_system()? + page_tables, KernelMemorySource::BothEnds)));
        memory
    }
}

impl ObservedProcesses {
    /// Reads the current memory, as [`Memory::of`] does.
    pub fn memory(&self) -> Memory {
        Memory::of(std::slice::from_ref(self))
    }
}

fn resident(pid: u32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * page_size() as u64)
}

/// Returns the kernel memory that is charged to a control group: its objects, stacks and page tables
/// (`kernel`), and the buffers of its sockets (`sock`).
fn of_cgroup(group: &Cgroup) -> Option<u64> {
    charged(&fs::read_to_string(group.path().join("memory.stat")).ok()?)
}

fn charged(memory_stat: &str) -> Option<u64> {
    let field = |name: &str| {
        memory_stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    Some(field("kernel ")? + field("sock ")?)
}

/// Kernel objects that belong to connections, and to the processes and threads that serve them
/// (slabinfo(5)).
const OBJECTS: [&str; 17] = [
    "TCP",
    "TCPv6",
    "sock_inode_cache",
    "filp",
    "lsm_file_cache",
    "lsm_inode_cache",
    "eventpoll_epi",
    "eventpoll_pwq",
    "io_kiocb",
    "task_struct",
    "mm_struct",
    "vm_area_struct",
    "files_cache",
    "signal_cache",
    "sighand_cache",
    "anon_vma",
    "anon_vma_chain",
];

/// Returns the size of such objects in the whole system, plus the buffers of its TCP sockets and its
/// kernel stacks. Only root may read the slabs.
fn of_system() -> Option<u64> {
    let slabs = objects(&fs::read_to_string("/proc/slabinfo").ok()?);
    let sockstat = fs::read_to_string("/proc/net/sockstat").ok()?;
    let buffers = number_after(sockstat.split_once("\nTCP:")?.1, " mem ")? * page_size() as u64;
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    Some(slabs + buffers + number_after(&meminfo, "\nKernelStack:")? * 1024)
}

fn objects(slabinfo: &str) -> u64 {
    let sizes = |line: &str| {
        let mut fields = line.split_whitespace();
        let name = fields.next()?.to_owned();
        let (active, _all) = (fields.next()?.parse::<u64>().ok()?, fields.next()?);
        Some((name, active, fields.next()?.parse::<u64>().ok()?))
    };
    let all: Vec<(String, u64, u64)> = slabinfo.lines().filter_map(sizes).collect();
    let known = all.iter().filter(|(name, ..)| OBJECTS.contains(&name.as_str()));
    let known: u64 = known.map(|(_, active, size)| active * size).sum();
    let find = |wanted| all.iter().find(|(name, ..)| name == wanted);
    // Each socket has a directory entry; the other entries in that cache belong to files.
    let sockets = find("sock_inode_cache").map_or(0, |(_, active, _)| *active);
    known + sockets * find("dentry").map_or(0, |(.., size)| *size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tree::descendants;
    use rustix::process::{Pid, Signal, kill_process};
    use std::{
        process::Command,
        thread,
        time::{Duration, Instant},
    };

    #[test]
    fn a_control_group_is_charged_for_kernel_objects_and_sockets() {
        let text = "anon 819200\nfile 0\nkernel 65536\nkernel_stack 16384\nsock 4096\n";
        assert_eq!(charged(text), Some(69_632));
        assert_eq!(charged("anon 1\nsock 4096\n"), None, "before Linux 5.18");
    }

    #[test]
    fn objects_of_connections_are_counted_and_a_directory_entry_for_each_socket() {
        let text = "\
slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab>
TCP                 10    182   2368   13    8 : tunables    0    0    0
sock_inode_cache    20    190    832   19    4 : tunables    0    0    0
dentry          215416 255066    192   21    1 : tunables    0    0    0
buffer_head       1092   1100    104   39    1 : tunables    0    0    0
";
        assert_eq!(objects(text), 10 * 2368 + 20 * (832 + 192));
    }

    #[test]
    fn growth_needs_the_same_source() {
        let kernel = |bytes, source| Memory { kernel: Some((bytes, source)), ..Memory::default() };
        let (group, slabs) = (KernelMemorySource::CgroupV2, KernelMemorySource::BothEnds);
        let grown = kernel(300, slabs).kernel_growth(&kernel(500, slabs)).unwrap();
        assert_eq!((grown.bytes, grown.source), (-200, slabs));
        assert_eq!(kernel(300, slabs).kernel_growth(&kernel(500, group)), None);
        let own = |own| Memory { own, ..Memory::default() };
        assert_eq!(own(Some(5)).user_growth(&own(Some(3))), Some(2));
        assert_eq!(own(None).user_growth(&own(Some(3))), None);
    }

    #[test]
    fn the_memory_of_children_is_part_of_that_of_a_tree() {
        let script = "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait";
        let mut shell = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        let sleeps = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n")
        };
        let children = loop {
            let children = descendants(shell.id());
            if children.len() == 8 && children.iter().all(sleeps) || Instant::now() > until {
                break children;
            }
            thread::sleep(Duration::from_millis(1));
        };
        let of_children: Vec<ObservedProcesses> =
            children.iter().map(|pid| ObservedProcesses::tree(*pid)).collect();
        let of_children = Memory::of(&of_children).proportional;
        let whole = ObservedProcesses::tree(shell.id()).memory().proportional;
        for pid in children.iter().filter_map(|pid| Pid::from_raw(*pid as i32)) {
            kill_process(pid, Signal::KILL).unwrap();
        }
        shell.wait().unwrap();
        assert_eq!(children.len(), 8);
        assert!(whole > of_children && of_children > 0, "{whole} and {of_children}");
    }
}
