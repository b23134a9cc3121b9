//! Checks of the CPUs, and of settings that make their speed uneven.

use super::check::{Check, Mark};
use regatta_host::{allowed_cpus, cpu_limit};
use regatta_record::{Core, CpuSets, Setup, joined};

/// Reads and judges.
pub fn checks(setup: &Setup) -> Vec<Check> {
    // If the kernel has more CPUs than a set can hold, assume that all are allowed.
    let allowed = allowed_cpus().map_or(setup.cpus, |cpus| cpus.len() as u32);
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
        return check.marked(
            Mark::Warn,
            "On 1 CPU, server and load take turns, so rates and latencies depend on how they share \
             it; only the cost at a fixed rate is meaningful.",
            "Give regatta at least 2 CPUs (`taskset -c 0,1 regatta …`, or a wider cpuset).",
        );
    }
    if allowed < online {
        return check.marked(
            Mark::Note,
            format!(
                "This process may use only {allowed} of {online} CPUs, so a race measures servers on \
                 these only."
            ),
            format!(
                "To use all {online}, start regatta without `taskset` or widen its cpuset."
            ),
        );
    }
    check
}

/// The default assignment of cores, and which CPUs share a core.
fn cores(cores: &[Core]) -> Check {
    let sets = CpuSets::divide(cores, None, None);
    let threads: Vec<String> = cores
        .iter()
        .filter(|core| core.cpus.len() > 1)
        .map(|core| joined(&core.cpus, "+"))
        .collect();
    let mut found = format!(
        "{}: server on CPU {}, load on CPU {}",
        cores.len(),
        joined(&sets.server, ","),
        joined(&sets.load, ",")
    );
    if !sets.spare.is_empty() {
        found += &format!(", spare {}", joined(&sets.spare, ","));
    }
    if !threads.is_empty() {
        found += &format!("; threads of one core: {}", threads.join(" "));
    }
    let check = Check::ok("cores", found);
    if !sets.shared_cores(cores).is_empty() {
        return check.marked(
            Mark::Warn,
            "Server and load run on threads of one core, so each slows down the other and costs are \
             too high.",
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
    check.marked(
        Mark::Note,
        format!(
            "The cores are of different {}, on which the cost of the same work differs. A race \
             uses cores of one kind if there are at least two.",
            unlike.join(" and ")
        ),
        "To choose other cores, use --server-cpus and --load-cpus.",
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
    check.marked(
        Mark::Warn,
        format!(
            "A control group throttles all processes here to {found}, which is less than the \
             {allowed} CPUs of a race: the pauses distort rates and latencies."
        ),
        format!("Raise cpu.max (docker: --cpus) to {allowed} CPUs or more."),
    )
}

fn clock_source(name: &str) -> Check {
    // The clock sources that a process reads without a system call, through the kernel's vDSO.
    const CHEAP: [&str; 4] =
        ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];
    let check = Check::ok("clock-source", name);
    if CHEAP.contains(&name) {
        return check;
    }
    check.marked(
        Mark::Warn,
        format!(
            "With the clock source {name}, reading the time may need a system call, which makes load \
             and servers more expensive and latencies coarser."
        ),
        "Write tsc to /sys/devices/system/clocksource/clocksource0/current_clocksource, if it is \
         listed in available_clocksource there.",
    )
}

fn governor(name: Option<&str>) -> Check {
    let Some(name) = name else { return Check::ok("governor", "none on this system") };
    let check = Check::ok("governor", name);
    if name == "performance" {
        return check;
    }
    check.marked(
        Mark::Warn,
        format!(
            "The governor {name} changes the CPU frequency with the load, so a lean server may look \
             more expensive than it is."
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
    Check::ok("mitigations", names.join(", ")).marked(
        Mark::Note,
        format!(
            "{} mitigations of CPU flaws make system calls more expensive: comparisons are valid on \
             this machine, but costs differ on machines with other mitigations.",
            active.len()
        ),
        "Keep them if your servers will run with them; to measure without them, put \
         `mitigations=off` on the kernel command line.",
    )
}

#[cfg(test)]
mod tests {
    use super::super::check::assert_says;
    use super::*;

    #[test]
    fn warns_of_one_cpu_and_notes_a_restricted_set() {
        assert_eq!(cpus(2, 2).mark, Mark::Ok);
        assert_eq!(cpus(2, 2).found, "2 of 2");
        assert_says(&cpus(1, 1), Mark::Warn, &["1 CPU"], &["2 CPUs"]);
        assert_says(&cpus(1, 8), Mark::Warn, &["1 CPU"], &["2 CPUs"]);
        assert_says(&cpus(3, 8), Mark::Note, &["3 of 8"], &["all 8", "cpuset"]);
    }

    #[test]
    fn shows_which_cpus_share_a_core() {
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
    fn warns_of_a_quota_below_the_allowed_cpus() {
        assert_eq!(quota(None, 2).mark, Mark::Ok);
        assert_eq!(quota(Some(2_000), 2).mark, Mark::Ok);
        assert_says(&quota(Some(1_500), 2), Mark::Warn, &["1.50 CPUs", "2 CPUs"], &["cpu.max"]);
    }

    #[test]
    fn warns_of_an_expensive_clock_source() {
        assert_eq!(clock_source("tsc").mark, Mark::Ok);
        assert_says(&clock_source("hpet"), Mark::Warn, &["hpet"], &["tsc"]);
    }

    #[test]
    fn warns_of_a_governor_other_than_performance() {
        assert_eq!(governor(None).mark, Mark::Ok);
        assert_eq!(governor(Some("performance")).mark, Mark::Ok);
        assert_says(&governor(Some("powersave")), Mark::Warn, &["powersave"], &["performance"]);
    }

    #[test]
    fn notes_active_mitigations_by_name() {
        assert_eq!(mitigations(&[]).mark, Mark::Ok);
        let check = mitigations(&["mds: Clear".into(), "spectre_v2: IBRS; x: y".into()]);
        assert_eq!(check.found, "mds, spectre_v2");
        assert_says(&check, Mark::Note, &["2 mitigations"], &["mitigations=off"]);
    }
}
