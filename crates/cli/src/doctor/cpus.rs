//! The CPUs, and what makes their time uneven.

use super::check::{Check, Mark};
use regatta_host::cpu_limit;
use regatta_record::{Core, CpuSets, Setup};
use rustix::thread::{CpuSet, sched_getaffinity};

/// Reads and judges.
pub fn checks(setup: &Setup) -> Vec<Check> {
    // A kernel with more CPUs than the set holds is taken at its word: all of them.
    let allowed = sched_getaffinity(None).map_or(setup.cpus, |set: CpuSet| set.count());
    vec![
        cpus(allowed, setup.cpus),
        cores(&setup.cores),
        quota(cpu_limit(), allowed),
        clock_source(&setup.clock_source),
        governor(setup.governor.as_deref()),
        mitigations(&setup.mitigations),
    ]
}

fn cpus(allowed: u32, online: u32) -> Check {
    let found = match allowed {
        1 => format!("1 of {online}, for server and load together"),
        _ => format!("{allowed} of {online}"),
    };
    let check = Check::ok("cpus", found);
    if allowed == 1 {
        return check.but(
            Mark::Warn,
            "On 1 CPU server and load take turns, so rates and latencies say how they share it; \
             only cost at a fixed rate means anything.",
            "Give regatta at least 2 CPUs (`taskset -c 0,1 regatta …`, or a wider cpuset).",
        );
    }
    if allowed < online {
        return check.but(
            Mark::Note,
            format!(
                "This process may use {allowed} of {online} CPUs, so a race shows the servers on \
                 these alone."
            ),
            format!(
                "If all {online} are meant, start regatta without `taskset` or widen its cpuset."
            ),
        );
    }
    check
}

/// Who gets which core where nothing is asked for, and what shares a core with what.
fn cores(cores: &[Core]) -> Check {
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let sets = CpuSets::shared_out(cores, None, None);
    let threads: Vec<String> = cores
        .iter()
        .filter(|core| core.cpus.len() > 1)
        .map(|core| core.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join("+"))
        .collect();
    let mut found = format!(
        "{}: server on CPU {}, load on CPU {}",
        cores.len(),
        list(&sets.server),
        list(&sets.load)
    );
    if !sets.spare.is_empty() {
        found += &format!(", spare {}", list(&sets.spare));
    }
    if !threads.is_empty() {
        found += &format!("; threads of one core: {}", threads.join(" "));
    }
    let check = Check::ok("cores", found);
    if !sets.shared_cores(cores).is_empty() {
        return check.but(
            Mark::Warn,
            "Server and load are threads of one core, so each slows the other down and costs are too \
             high.",
            "Give regatta at least 2 physical cores (`taskset -c`, or a wider cpuset).",
        );
    }
    let mut unlike = Vec::new();
    if cores.iter().any(|core| core.slower) {
        unlike.push("kinds");
    }
    if cores.iter().any(|core| core.node != cores[0].node) {
        unlike.push("NUMA nodes");
    }
    if unlike.is_empty() {
        return check;
    }
    check.but(
        Mark::Note,
        format!(
            "The cores are of different {}, on which the same work costs different amounts. A race \
             uses cores of one kind if there are at least two.",
            unlike.join(" and ")
        ),
        "Name others with --server-cpus and --load-cpus.",
    )
}

/// `limit` in thousandths of a CPU.
fn quota(limit: Option<u64>, allowed: u32) -> Check {
    let Some(limit) = limit else { return Check::ok("cpu-quota", "none") };
    let found = format!("{}.{:02} CPUs", limit / 1_000, limit % 1_000 / 10);
    let check = Check::ok("cpu-quota", &found);
    if limit >= u64::from(allowed) * 1_000 {
        return check;
    }
    check.but(
        Mark::Warn,
        format!(
            "A control group stops everything here whenever {found} are used up, which is less \
             than the {allowed} CPUs of a race: rates and latencies show the stops."
        ),
        format!("Raise cpu.max (docker: --cpus) to {allowed} CPUs or more."),
    )
}

fn clock_source(name: &str) -> Check {
    // Those that a process reads without a system call (the kernel's vDSO has a form for each).
    const CHEAP: [&str; 4] =
        ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];
    let check = Check::ok("clock-source", name);
    if CHEAP.contains(&name) {
        return check;
    }
    check.but(
        Mark::Warn,
        format!(
            "With the clock source {name} reading the time may be a system call, which makes load \
             and servers dearer and latencies coarser."
        ),
        "Write tsc to /sys/devices/system/clocksource/clocksource0/current_clocksource, if \
         available_clocksource beside it lists it.",
    )
}

fn governor(name: Option<&str>) -> Check {
    let Some(name) = name else { return Check::ok("governor", "not the system's to choose") };
    let check = Check::ok("governor", name);
    if name == "performance" {
        return check;
    }
    check.but(
        Mark::Warn,
        format!(
            "The governor {name} changes the CPU's frequency with its load, so a lean server may \
             look dearer than it is."
        ),
        "Run `cpupower frequency-set -g performance`.",
    )
}

fn mitigations(active: &[String]) -> Check {
    if active.is_empty() {
        return Check::ok("mitigations", "none active");
    }
    let names: Vec<&str> =
        active.iter().map(|line| line.split(':').next().unwrap_or_default()).collect();
    Check::ok("mitigations", names.join(", ")).but(
        Mark::Note,
        format!(
            "{} mitigations of CPU flaws make system calls dearer: comparisons hold here, costs \
             do not carry over to a machine with others.",
            active.len()
        ),
        "Keep them if your servers will run with them; `mitigations=off` on the kernel's command \
         line shows costs without.",
    )
}

#[cfg(test)]
mod tests {
    use super::super::check::assert_says;
    use super::*;

    #[test]
    fn cpus_are_shared_out() {
        assert_eq!(cpus(2, 2).mark, Mark::Ok);
        assert_eq!(cpus(2, 2).found, "2 of 2");
        assert_says(&cpus(1, 1), Mark::Warn, &["1 CPU"], &["2 CPUs"]);
        assert_says(&cpus(1, 8), Mark::Warn, &["1 CPU"], &["2 CPUs"]);
        assert_says(&cpus(3, 8), Mark::Note, &["3 of 8"], &["all 8", "cpuset"]);
    }

    #[test]
    fn what_shares_a_core_is_told() {
        let core = |cpus: &[u32]| Core { cpus: cpus.to_vec(), node: Some(0), slower: false };
        let alone = cores(&[core(&[0]), core(&[1])]);
        assert_eq!((alone.mark, &*alone.found), (Mark::Ok, "2: server on CPU 0, load on CPU 1"));
        let threads = cores(&[core(&[0, 2]), core(&[1, 3])]);
        let found = "2: server on CPU 0,2, load on CPU 1,3; threads of one core: 0+2 1+3";
        assert_eq!((threads.mark, &*threads.found), (Mark::Ok, found));
        let one = cores(&[core(&[0, 1])]);
        assert_says(&one, Mark::Warn, &["threads of one core"], &["2 physical cores"]);
        let small = Core { slower: true, ..core(&[2]) };
        let hybrid = cores(&[core(&[0]), core(&[1]), small]);
        assert_says(&hybrid, Mark::Note, &["different kinds"], &["--server-cpus"]);
        assert!(hybrid.found.ends_with("load on CPU 1, spare 2"), "{}", hybrid.found);
        let other = Core { node: Some(1), ..core(&[2]) };
        assert_says(&cores(&[core(&[0]), other]), Mark::Note, &["NUMA nodes"], &["--load-cpus"]);
        assert_eq!(cores(&[]).mark, Mark::Ok);
    }

    #[test]
    fn a_quota_matters_where_it_is_less_than_the_cpus() {
        assert_eq!(quota(None, 2).mark, Mark::Ok);
        assert_eq!(quota(Some(2_000), 2).mark, Mark::Ok);
        assert_says(&quota(Some(1_500), 2), Mark::Warn, &["1.50 CPUs", "2 CPUs"], &["cpu.max"]);
    }

    #[test]
    fn a_dear_clock_is_told() {
        assert_eq!(clock_source("tsc").mark, Mark::Ok);
        assert_says(&clock_source("hpet"), Mark::Warn, &["hpet"], &["tsc"]);
    }

    #[test]
    fn a_governor_other_than_performance_is_told() {
        assert_eq!(governor(None).mark, Mark::Ok);
        assert_eq!(governor(Some("performance")).mark, Mark::Ok);
        assert_says(&governor(Some("powersave")), Mark::Warn, &["powersave"], &["performance"]);
    }

    #[test]
    fn mitigations_are_noted_by_name() {
        assert_eq!(mitigations(&[]).mark, Mark::Ok);
        let check = mitigations(&["mds: Clear".into(), "spectre_v2: IBRS; x: y".into()]);
        assert_eq!(check.found, "mds, spectre_v2");
        assert_says(&check, Mark::Note, &["2 mitigations"], &["mitigations=off"]);
    }
}
