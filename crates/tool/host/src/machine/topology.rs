//! The physical cores of the machine, as the kernel describes them
//! (Documentation/ABI/stable/sysfs-devices-system-cpu, admin-guide/cputopology.rst).

use regatta_record::Core;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The folder in which the kernel describes its devices.
pub const DEVICES: &str = "/sys/devices";

/// Returns the cores of `cpus`, in the order of their first CPU; each lists only its CPUs in `cpus`.
/// `devices` is [`DEVICES`], or a copy of it. If the kernel gives no information, each CPU is its own
/// core, on no node and as fast as the others.
pub fn cores(devices: &Path, cpus: &[u32]) -> Vec<Core> {
    let read = |path: &str| fs::read_to_string(devices.join(path)).ok();
    let list = |path: &str| read(path).map(|text| cpus_of(&text)).unwrap_or_default();
    let slower = slower(devices, cpus, &list);
    let nodes = nodes(devices);
    let mut seen: BTreeSet<u32> = BTreeSet::new();
    let mut cores = Vec::new();
    for &cpu in &BTreeSet::from_iter(cpus.iter().copied()) {
        if seen.contains(&cpu) {
            continue;
        }
        let of_cpu = |file: &str| list(&format!("system/cpu/cpu{cpu}/topology/{file}"));
        // Before Linux 5.3 the same file had the second name.
        let mut siblings = of_cpu("core_cpus_list");
        if siblings.is_empty() {
            siblings = of_cpu("thread_siblings_list");
        }
        siblings.insert(cpu);
        let own: Vec<u32> = siblings.into_iter().filter(|cpu| cpus.contains(cpu)).collect();
        seen.extend(&own);
        cores.push(Core {
            cpus: own,
            node: nodes.iter().find(|(_, cpus)| cpus.contains(&cpu)).map(|(node, _)| *node),
            slower: slower.contains(&cpu),
        });
    }
    cores
}

/// Returns the CPUs of each NUMA node.
fn nodes(devices: &Path) -> BTreeMap<u32, BTreeSet<u32>> {
    let folder = devices.join("system/node");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let node = |name: &str| name.strip_prefix("node")?.parse::<u32>().ok();
    let each = entries.filter_map(|entry| {
        let number = node(entry.file_name().to_str()?)?;
        let list = fs::read_to_string(entry.path().join("cpulist")).ok()?;
        Some((number, cpus_of(&list)))
    });
    each.collect()
}

/// Returns the CPUs of a slower kind than others in `cpus`: on an Intel hybrid the atom cores, which are
/// a separate device, on Arm those with less than the greatest capacity.
fn slower(devices: &Path, cpus: &[u32], list: &dyn Fn(&str) -> BTreeSet<u32>) -> BTreeSet<u32> {
    let (core, atom) = (list("cpu_core/cpus"), list("cpu_atom/cpus"));
    if cpus.iter().any(|cpu| core.contains(cpu)) {
        return atom;
    }
    let capacity = |cpu: &u32| -> Option<u32> {
        let path = devices.join(format!("system/cpu/cpu{cpu}/cpu_capacity"));
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    let greatest = cpus.iter().filter_map(capacity).max();
    let is_less = |cpu: &u32| capacity(cpu).zip(greatest).is_some_and(|(own, most)| own < most);
    cpus.iter().copied().filter(is_less).collect()
}

/// Parses a list such as `0-3,8,10-11` (cpuset(7), "List format"). Ignores parts that are not numbers.
fn cpus_of(list: &str) -> BTreeSet<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_lists_of_cpus() {
        let of = |list| cpus_of(list).into_iter().collect::<Vec<_>>();
        assert_eq!(of("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(of("5\n"), [5]);
        assert_eq!(of("\n"), [0; 0]);
    }

    #[test]
    fn without_information_each_cpu_is_a_core() {
        let one = |cpu| Core { cpus: vec![cpu], node: None, slower: false };
        assert_eq!(cores(Path::new("/nowhere"), &[3, 1]), [one(1), one(3)]);
    }
}
