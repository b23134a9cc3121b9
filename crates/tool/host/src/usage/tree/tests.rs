use super::*;
use crate::{group::cgroup::Version, usage::reading::Group};

fn usage(pids: &[(u32, u64)], reaped: u64, cgroup: Option<u64>) -> Usage {
    let process = |&(pid, cpu_ns): &(u32, u64)| {
        let (own, waited_for) = (Ticks::default(), Ticks::default());
        let (switches, scheduled) = (BTreeMap::new(), BTreeMap::new());
        let process = Process { cpu_ns, own, waited_for, switches, scheduled, all_scheduled: true };
        (Identity { pid, started: 1 }, process)
    };
    let clocks_ns = Some(pids.iter().map(|(_, cpu_ns)| cpu_ns).sum());
    let group = cgroup.map(|ns| Group { version: Version::V2, before_ns: ns, after_ns: ns });
    Usage {
        processes: pids.iter().map(process).collect(),
        reaped: Ticks { user: reaped, system: 0 },
        reading: Reading { clocks_ns, group },
        forks: None,
    }
}

const MS: u64 = 1_000_000;

#[test]
fn uses_the_clocks_if_no_process_comes_or_goes() {
    let earlier = usage(&[(1, 5 * MS), (2, 7 * MS)], 3, Some(0));
    let later = usage(&[(1, 15 * MS), (2, 7 * MS)], 3, Some(10 * MS));
    let spent = later.since(&earlier);
    assert_eq!((spent.cpu_ns, spent.source), (10 * MS, UsageSource::ProcessClocks));
    assert_eq!(spent.unseen, Unseen::AtMostNs(0));
}

/// Its parent waits for it after its clock was read, and before its entry is.
#[test]
fn the_time_of_a_process_that_is_waited_for_during_a_reading_is_not_lost() {
    let this = std::process::id();
    let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let mut child = std::process::Command::new("sh").args(["-c", burn]).spawn().unwrap();
    let pid = child.id();
    regatta_testkit::deadline::until("it ended", || Stat::of(pid).unwrap().is_zombie());
    let ticks = Stat::of(pid).unwrap().own.total();
    assert!(ticks > 0);
    let waited_for = |usage: &Usage| -> u64 {
        usage.processes.values().map(|process| process.waited_for.total()).sum()
    };
    let observed = ObservedProcesses::tree(this);
    let before = observed.usage().unwrap();
    assert!(before.pids().any(|found| found == pid));
    let after = observed.usage_while(|| assert!(child.wait().is_ok())).unwrap();
    assert!(!after.pids().any(|found| found == pid));
    assert!(waited_for(&after) >= waited_for(&before) + ticks);
}

#[test]
fn run_delay_counts_threads_alive_at_both_moments() {
    let with = |delays: &[(u32, u64)]| {
        let waited = |&(thread, waited_ns)| (thread, Scheduled { ran_ns: 0, waited_ns });
        with_threads(&[(1, &delays.iter().map(waited).collect::<Vec<_>>())])
    };
    let earlier = with(&[(1, 10), (2, 5), (4, 9)]);
    let later = with(&[(1, 25), (3, 99), (4, 9)]);
    assert_eq!(later.since(&earlier).run_delay_ns, Some(15));
    assert_eq!(with(&[]).since(&earlier).run_delay_ns, None, "the kernel does not report it");
    let mut many = with(&[]);
    many.processes.first_entry().unwrap().into_mut().all_scheduled = false;
    assert_eq!(many.since(&earlier).run_delay_ns, None);
}

fn with_threads(processes: &[(u32, &[(u32, Scheduled)])]) -> Usage {
    let pids: Vec<(u32, u64)> = processes.iter().map(|(pid, _)| (*pid, 0)).collect();
    let mut usage = usage(&pids, 0, None);
    for (process, (_, threads)) in usage.processes.values_mut().zip(processes) {
        process.scheduled = threads.iter().copied().collect();
    }
    usage
}

#[test]
fn the_busiest_thread_is_one_of_all_processes() {
    let ran = |thread: u32, ran_ns| (thread, Scheduled { ran_ns, waited_ns: 0 });
    let earlier = with_threads(&[(1, &[ran(1, 900), ran(2, 10)]), (3, &[ran(3, 50)])]);
    let later = with_threads(&[(1, &[ran(1, 950), ran(2, 30)]), (3, &[ran(3, 130)])]);
    assert_eq!(later.since(&earlier).busiest_thread_ns, Some(80), "not the oldest, nor a sum");
    let born = with_threads(&[(1, &[ran(1, 950), ran(7, 70)])]);
    assert_eq!(born.since(&earlier).busiest_thread_ns, Some(70));
    assert_eq!(with_threads(&[(1, &[])]).since(&earlier).busiest_thread_ns, None);
    let both = later.since(&earlier).plus(born.since(&earlier));
    assert_eq!(both.busiest_thread_ns, Some(80));
    let unread = usage(&[(1, 0)], 0, None).since(&earlier);
    assert_eq!(unread.plus(born.since(&earlier)).busiest_thread_ns, Some(70));
}

#[test]
fn two_servers_together_use_what_each_of_them_uses() {
    let spent = |n: u64| Spent {
        cpu_ns: n,
        user_ns: 2 * n,
        system_ns: 3 * n,
        source: UsageSource::ProcessClocks,
        unseen: Unseen::AtMostNs(4 * n),
        voluntary_switches: 5 * n,
        involuntary_switches: 6 * n,
        run_delay_ns: Some(7 * n),
        busiest_thread_ns: None,
        processes: 8 * n as u32,
        threads: 9 * n as u32,
    };
    assert_eq!(spent(1).plus(spent(100)), spent(101));
}

#[test]
fn uses_the_control_group_if_a_child_came_and_went() {
    let earlier = usage(&[(1, 0)], 3, Some(0));
    let later = usage(&[(1, 10 * MS)], 5, Some(31 * MS));
    let spent = later.since(&earlier);
    assert_eq!((spent.cpu_ns, spent.source), (31 * MS, UsageSource::CgroupV2));
}

#[test]
fn the_control_group_shows_a_child_that_was_not_waited_for() {
    let earlier = usage(&[(1, 0)], 0, Some(0));
    let later = usage(&[(1, 10 * MS)], 0, Some(100 * MS));
    let spent = later.since(&earlier);
    assert_eq!((spent.cpu_ns, spent.source), (100 * MS, UsageSource::CgroupV2));
    let little = usage(&[(1, 500 * MS)], 0, Some(515 * MS));
    assert_eq!(little.since(&earlier).cpu_ns, 515 * MS, "3% of a short window");
}

#[test]
fn without_a_control_group_usage_is_complete_if_no_process_was_started() {
    let with = |forks, threads: &[u32]| {
        let mut usage = usage(&[(1, 10 * MS)], 0, None);
        usage.forks = forks;
        let process = usage.processes.first_entry().unwrap().into_mut();
        process.switches = threads.iter().map(|&id| (id, Switches::default())).collect();
        usage
    };
    let earlier = with(Some(100), &[1]);
    let unseen = |forks, threads: &[u32]| with(forks, threads).since(&earlier).unseen;
    assert_eq!(unseen(Some(100), &[1]), Unseen::AtMostNs(0));
    assert_eq!(unseen(Some(102), &[1, 7, 8]), Unseen::AtMostNs(0), "its own threads");
    assert_eq!(unseen(Some(103), &[1, 7, 8]), Unseen::Unbounded);
    assert_eq!(unseen(None, &[1]), Unseen::Unbounded);
}

#[test]
fn without_a_control_group_ended_processes_are_counted_in_ticks() {
    let earlier = usage(&[(1, 0), (2, 40 * MS)], 0, None);
    let later = usage(&[(1, 10 * MS), (3, 2 * MS)], 6, None);
    let spent = later.since(&earlier);
    let tick = 1_000_000_000 / clock_ticks_per_second();
    // The 40 ms of process 2 are gone with it; its parent has counted 6 ticks of it.
    assert_eq!((spent.cpu_ns, spent.source), (6 * tick - 28 * MS, UsageSource::ProcessTree));
    assert_eq!(spent.unseen, Unseen::Unbounded);
}
