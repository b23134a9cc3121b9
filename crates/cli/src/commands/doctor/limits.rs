//! Checks of limits: open files, processes, memory and swap.

use super::{
    check::{Check, Mark},
    connections::{BURST, FEWEST_CONNECTIONS, MOST_CONNECTIONS},
};
use regatta_host::{meminfo_bytes, memory_limit, process_limit};
use regatta_report::{grouped, memory as in_units};
use rustix::process::{Resource, geteuid, getrlimit};
use std::fs;

/// Maximum number of descriptors of load and server that are not connections.
const RESERVED: u64 = 64;
/// Less is not enough for a load, its results, and one lean server, in bytes.
const LEAST_MEMORY: u64 = 128 << 20;
/// Enough for the largest race with a lean server: both ends of all connections and the kernel's
/// buffers, in bytes.
const ENOUGH_MEMORY: u64 = 1 << 30;
/// Less swap than this is harmless: it holds pages that nobody uses. In bytes.
const LITTLE_SWAP: u64 = 16 << 20;

/// Reads and judges.
pub fn checks() -> Vec<Check> {
    let files = getrlimit(Resource::Nofile);
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let swapped = meminfo_bytes(&meminfo, "SwapTotal")
        .zip(meminfo_bytes(&meminfo, "SwapFree"))
        .map(|(total, free)| total.saturating_sub(free));
    vec![
        open_files(files.current, files.maximum),
        processes(&process_limits()),
        memory(meminfo_bytes(&meminfo, "MemAvailable"), memory_limit()),
        swap(swapped),
    ]
}

/// Checks the hard limit: regatta raises the soft limit to it, for itself and its contenders.
fn open_files(soft: Option<u64>, hard: Option<u64>) -> Check {
    let number = |limit: Option<u64>| limit.map_or("unlimited".into(), grouped);
    let limits = format!("{} (hard limit {})", number(soft), number(hard));
    let Some(hard) = hard else { return Check::ok("open-files", limits) };
    let connections = hard.saturating_sub(RESERVED);
    let possible = grouped(connections);
    let check = Check::ok("open-files", format!("{limits}: {possible} connections per process"));
    let mark = match connections {
        ..FEWEST_CONNECTIONS => Mark::Bad,
        FEWEST_CONNECTIONS..BURST => Mark::Warn,
        BURST..MOST_CONNECTIONS => Mark::Note,
        _ => return check,
    };
    let effect = match mark {
        Mark::Bad => format!(
            "A hard limit of {} open files leaves {possible} connections per process. A \
             single-process server fails with the {} connections of the smallest race.",
            grouped(hard),
            FEWEST_CONNECTIONS
        ),
        _ => format!(
            "A single-process server can hold at most {possible} connections and fails under loads \
             with more (the burst has {}, the largest race {}). The load itself then uses several \
             processes.",
            grouped(BURST),
            grouped(MOST_CONNECTIONS)
        ),
    };
    check.marked(
        mark,
        effect,
        format!(
            "Raise the hard limit to {} (`ulimit -Hn`, LimitNOFILE= of systemd, docker --ulimit \
             nofile=).",
            grouped(MOST_CONNECTIONS + 1_000)
        ),
    )
}

/// Every limit of processes and threads that applies here, and where it is set.
fn process_limits() -> Vec<(u64, &'static str)> {
    let line = |path| fs::read_to_string(path).ok()?.trim().parse().ok();
    // The user's limit does not apply to root (getrlimit(2)).
    let user = if geteuid().is_root() { None } else { getrlimit(Resource::Nproc).current };
    [
        (user, "ulimit -u"),
        (process_limit(), "pids.max of the control group"),
        (line("/proc/sys/kernel/threads-max"), "kernel.threads-max"),
        (line("/proc/sys/kernel/pid_max"), "kernel.pid_max"),
    ]
    .into_iter()
    .filter_map(|(limit, name)| Some((limit?, name)))
    .collect()
}

fn processes(limits: &[(u64, &str)]) -> Check {
    let Some((limit, name)) = limits.iter().min() else {
        return Check::ok("processes", "no limit");
    };
    let check = Check::ok("processes", format!("{} ({name})", grouped(*limit)));
    let mark = match *limit {
        ..BURST => Mark::Warn,
        BURST..MOST_CONNECTIONS => Mark::Note,
        _ => return check,
    };
    check.marked(
        mark,
        format!(
            "`fork` and `threads` need a process or thread per connection, and fail above about {} \
             connections.",
            grouped(*limit)
        ),
        format!("Raise {name} to {}.", grouped(MOST_CONNECTIONS + 1_000)),
    )
}

/// Judges the memory: `available` on the machine, and `permitted` by a control group, both in bytes.
fn memory(available: Option<u64>, permitted: Option<u64>) -> Check {
    let Some(available) = available else {
        return Check::ok("memory", "unknown").marked(
            Mark::Note,
            "The available memory is unknown, so servers may run out of memory.",
            "Mount /proc, and check MemAvailable in /proc/meminfo.",
        );
    };
    let usable = permitted.map_or(available, |permitted| permitted.min(available));
    let found = match permitted.filter(|permitted| *permitted < available) {
        Some(permitted) => format!("{} permitted by the control group", in_units(permitted)),
        None => format!("{} available", in_units(available)),
    };
    let check = Check::ok("memory", found);
    let mark = match usable {
        ..LEAST_MEMORY => Mark::Bad,
        LEAST_MEMORY..ENOUGH_MEMORY => Mark::Warn,
        _ => return check,
    };
    check.marked(
        mark,
        format!(
            "With {}, the kernel may kill load or servers during a round, more likely with more \
             connections.",
            in_units(usable)
        ),
        format!("Stop other programs, or provide {} or more.", in_units(ENOUGH_MEMORY)),
    )
}

/// Judges the bytes of memory in swap.
fn swap(used: Option<u64>) -> Check {
    let used = used.unwrap_or_default();
    let check = Check::ok("swap", format!("{} in use", in_units(used)));
    if used < LITTLE_SWAP {
        return check;
    }
    check.marked(
        Mark::Note,
        format!(
            "{} of memory are in swap; a page that is read back during a round stalls it.",
            in_units(used)
        ),
        "Stop the programs that need the memory, then run `swapoff -a && swapon -a`.",
    )
}

#[cfg(test)]
mod tests {
    use super::super::check::assert_says;
    use super::*;

    #[test]
    fn open_files_limit_connections() {
        let of = |hard| open_files(Some(1024), hard);
        assert_eq!(of(None).mark, Mark::Ok);
        assert_eq!(of(Some(19_064)).mark, Mark::Ok);
        let found = "1,024 (hard limit 20,000): 19,936 connections per process";
        assert_eq!(of(Some(20_000)).found, found);
        assert_says(&of(Some(19_063)), Mark::Note, &["18,999"], &["20,000"]);
        assert_says(&of(Some(5_063)), Mark::Warn, &["4,999", "5,000"], &["20,000", "ulimit"]);
        assert_says(&of(Some(127)), Mark::Bad, &["127", "63 connections"], &["20,000"]);
        assert_says(&of(Some(10)), Mark::Bad, &["leaves 0"], &["20,000"]);
    }

    #[test]
    fn names_the_lowest_limit_of_processes() {
        let of = |user, group| processes(&[(user, "ulimit -u"), (group, "pids.max")]);
        assert_eq!(of(20_000, 30_000).found, "20,000 (ulimit -u)");
        assert_eq!(of(20_000, 30_000).mark, Mark::Ok);
        assert_says(&of(9_000, 30_000), Mark::Note, &["9,000"], &["ulimit -u", "20,000"]);
        assert_says(&of(9_000, 512), Mark::Warn, &["512", "fork"], &["pids.max", "20,000"]);
        assert_eq!(processes(&[]).mark, Mark::Ok);
    }

    #[test]
    fn memory_is_limited_by_machine_and_control_group() {
        assert_eq!(memory(Some(8 << 30), None).found, "8.00 GiB available");
        assert_eq!(memory(Some(8 << 30), Some(u64::MAX)).mark, Mark::Ok);
        let tight = memory(Some(8 << 30), Some(512 << 20));
        assert_eq!(tight.found, "512 MiB permitted by the control group");
        assert_says(&tight, Mark::Warn, &["512 MiB"], &["1.00 GiB"]);
        assert_says(&memory(Some(64 << 20), None), Mark::Bad, &["64.0 MiB"], &["1.00 GiB"]);
        assert_says(&memory(None, None), Mark::Note, &["memory"], &["MemAvailable"]);
    }

    #[test]
    fn notes_swap_in_use() {
        assert_eq!(swap(None).mark, Mark::Ok);
        assert_eq!(swap(Some(1 << 20)).mark, Mark::Ok);
        assert_says(&swap(Some(64 << 20)), Mark::Note, &["64.0 MiB"], &["swapoff"]);
    }
}
