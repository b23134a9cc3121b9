//! The description of a race's machine, as read from its kernel (method, rule 11).

use crate::{
    group::cgroup::{Cgroup, Version},
    machine::{
        cpus::allowed_cpus,
        priority::priority,
        topology::{DEVICES, cores},
    },
};
use regatta_record::Setup;
use rustix::process::{Resource, getrlimit};
use std::{
    fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// Describes the machine and the program. Values that the kernel does not report are `unknown`, zero,
/// or left out.
///
/// `version` and `revision` are those of regatta, from its build.
pub fn read_setup(version: &str, revision: Option<&str>, command_line: Vec<String>) -> Setup {
    let uname = rustix::system::uname();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Setup {
        regatta: match revision {
            Some(revision) => format!("{version} ({revision})"),
            None => version.to_string(),
        },
        command_line,
        kernel: format!(
            "{} {} {}",
            uname.sysname().to_string_lossy(),
            uname.release().to_string_lossy(),
            uname.version().to_string_lossy()
        ),
        cpu: cpu_model(&cpuinfo),
        cpus: fields(&cpuinfo, "processor").count() as u32,
        cores: cores(Path::new(DEVICES), &allowed_cpus().unwrap_or_default()),
        memory_bytes: meminfo_bytes(&meminfo, "MemTotal").unwrap_or_default(),
        clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .unwrap_or_else(|| "unknown".to_string()),
        nice: priority(),
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        mitigations: mitigations(),
        open_files: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        somaxconn: line("/proc/sys/net/core/somaxconn").and_then(|number| number.parse().ok()),
        port_range: line("/proc/sys/net/ipv4/ip_local_port_range").and_then(|range| {
            let (first, last) = range.split_once(char::is_whitespace)?;
            Some((first.parse().ok()?, last.trim().parse().ok()?))
        }),
        cgroup: match Cgroup::best_version() {
            Some(Version::V2) => "v2",
            Some(Version::V1) => "v1",
            None => "none",
        }
        .to_string(),
        started_unix_s: since_epoch.as_secs(),
    }
}

fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.trim();
    (!line.is_empty()).then(|| line.to_string())
}

/// Returns the values of `name : value` lines.
fn fields<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// Returns the CPU model. x86 kernels name it; Arm kernels give only numbers.
fn cpu_model(cpuinfo: &str) -> String {
    if let Some(model) = fields(cpuinfo, "model name").next() {
        return model.to_string();
    }
    match (fields(cpuinfo, "CPU implementer").next(), fields(cpuinfo, "CPU part").next()) {
        (Some(implementer), Some(part)) => format!("implementer {implementer}, part {part}"),
        _ => "unknown".to_string(),
    }
}

/// Returns a size in a text of `/proc/meminfo`, in bytes (proc_meminfo(5)).
pub fn meminfo_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let kib = fields(meminfo, name).next()?.strip_suffix(" kB")?;
    Some(kib.parse::<u64>().ok()? * 1024)
}

/// Returns e.g. `spectre_v2: Retpolines; …` for each mitigated vulnerability, in alphabetical order.
fn mitigations() -> Vec<String> {
    let folder = "/sys/devices/system/cpu/vulnerabilities";
    let mut active: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let state = fs::read_to_string(entry.path()).ok()?;
            let how = state.trim().strip_prefix("Mitigation: ")?;
            Some(format!("{}: {how}", entry.file_name().to_string_lossy()))
        })
        .collect();
    active.sort();
    active
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_this_machine() {
        let setup = read_setup("0.1.0", Some("abc123"), vec!["regatta".into(), "race".into()]);
        assert_eq!(setup.regatta, "0.1.0 (abc123)");
        assert!(setup.kernel.starts_with("Linux "), "{}", setup.kernel);
        assert!(setup.cpus >= 1);
        let mut cpus: Vec<u32> = setup.cores.iter().flat_map(|core| core.cpus.clone()).collect();
        cpus.sort_unstable();
        assert_eq!(cpus, allowed_cpus().unwrap(), "each belongs to one core");
        assert!(setup.memory_bytes > 1 << 20);
        assert!(setup.open_files > 0);
        assert!(["v1", "v2", "none"].contains(&setup.cgroup.as_str()));
        assert!(setup.started_unix_s > 1_700_000_000);
    }

    #[test]
    fn reads_the_models_of_x86_and_arm_cpus() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: AMD EPYC\n"), "AMD EPYC");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(cpu_model(arm), "implementer 0x41, part 0xd0c");
        assert_eq!(cpu_model(""), "unknown");
    }

    #[test]
    fn memory_is_in_bytes() {
        let meminfo = "MemTotal:       24684092 kB\nMemFree: 1 kB\n";
        assert_eq!(meminfo_bytes(meminfo, "MemTotal"), Some(24_684_092 * 1024));
        assert_eq!(meminfo_bytes(meminfo, "Mem"), None);
    }
}
