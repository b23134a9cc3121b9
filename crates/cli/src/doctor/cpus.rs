//! The CPUs, and what makes their time uneven.

use super::check::{Check, Mark};
use regatta_host::cpu_limit;
use regatta_record::Setup;
use rustix::thread::{CpuSet, sched_getaffinity};

/// Reads and judges.
pub fn checks(setup: &Setup) -> Vec<Check> {
    // A kernel with more CPUs than the set holds is taken at its word: all of them.
    let allowed = sched_getaffinity(None).map_or(setup.cpus, |set: CpuSet| set.count());
    vec![
        cpus(allowed, setup.cpus),
        quota(cpu_limit(), allowed),
        clock_source(&setup.clock_source),
        governor(setup.governor.as_deref()),
        mitigations(&setup.mitigations),
    ]
}

fn cpus(allowed: u32, online: u32) -> Check {
    let server = allowed.div_ceil(2);
    let found = match allowed {
        1 => format!("1 of {online}, for server and load together"),
        _ => {
            format!("{allowed} of {online}: {server} for the server, {} for the load", allowed / 2)
        }
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
        assert_eq!(cpus(2, 2).found, "2 of 2: 1 for the server, 1 for the load");
        assert_eq!(cpus(5, 5).found, "5 of 5: 3 for the server, 2 for the load");
        assert_says(&cpus(1, 1), Mark::Warn, &["1 CPU"], &["2 CPUs"]);
        assert_says(&cpus(1, 8), Mark::Warn, &["1 CPU"], &["2 CPUs"]);
        assert_says(&cpus(3, 8), Mark::Note, &["3 of 8"], &["all 8", "cpuset"]);
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
