//! Cores of other machines, from recordings of their /sys/devices: `topologies/NAME.txt` has a line for
//! each file.

use regatta_host::cores;
use regatta_record::{Core, CpuSets};
use std::{fs, path::Path};
use tempfile::TempDir;

/// Returns the cores of a recorded machine, limited to these CPUs.
fn recorded(name: &str, cpus: impl IntoIterator<Item = u32>) -> Vec<Core> {
    let folder = TempDir::new().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/topologies").join(name);
    let text = fs::read_to_string(file.with_extension("txt")).unwrap();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (path, content) = line.split_once(' ').unwrap();
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{content}\n")).unwrap();
    }
    cores(folder.path(), &cpus.into_iter().collect::<Vec<_>>())
}

fn cpus(cores: &[Core]) -> Vec<&[u32]> {
    cores.iter().map(|core| &core.cpus[..]).collect()
}

/// Returns the server, load and spare CPUs if the user gives none.
fn divide(cores: &[Core]) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let CpuSets { server, load, spare, .. } = CpuSets::divide(cores, None, None);
    (server, load, spare)
}

#[test]
fn on_an_intel_siblings_half_the_cpus_apart_stay_together() {
    let cores = recorded("intel", 0..8);
    assert_eq!(cpus(&cores), [[0, 4], [1, 5], [2, 6], [3, 7]]);
    assert_eq!(divide(&cores), (vec![0, 1, 4, 5], vec![2, 3, 6, 7], vec![]));
}

#[test]
fn on_an_amd_neighbours_stay_together_and_two_cores_come_before_two_threads() {
    let cores = recorded("amd", 0..8);
    assert_eq!(cpus(&cores), [[0, 1], [2, 3], [4, 5], [6, 7]]);
    assert_eq!(divide(&cores), (vec![0, 2, 1, 3], vec![4, 6, 5, 7], vec![]));
}

#[test]
fn on_a_hybrid_both_sides_get_performance_cores() {
    let cores = recorded("hybrid", 0..8);
    let slower: Vec<bool> = cores.iter().map(|core| core.slower).collect();
    assert_eq!(slower, [false, false, true, true, true, true]);
    assert_eq!(divide(&cores), (vec![0, 1], vec![2, 3], vec![4, 5, 6, 7]));
    let arm = recorded("arm", 0..6);
    assert_eq!(divide(&arm), (vec![4], vec![5], vec![0, 1, 2, 3]));
}

#[test]
fn on_two_nodes_both_sides_are_on_one() {
    let cores = recorded("two-nodes", 0..8);
    let nodes: Vec<Option<u32>> = cores.iter().map(|core| core.node).collect();
    assert_eq!(nodes, [Some(0), Some(1), Some(0), Some(1)]);
    assert_eq!(divide(&cores), (vec![0, 4], vec![2, 6], vec![1, 3, 5, 7]));
}

#[test]
fn given_cpus_are_used_and_the_other_side_avoids_their_cores() {
    let cores = recorded("intel", 0..8);
    let of = |server: Option<&[u32]>, load: Option<&[u32]>| {
        CpuSets::divide(&cores, server.map(<[u32]>::to_vec), load.map(<[u32]>::to_vec))
    };
    assert_eq!(of(Some(&[0]), None).load, [1, 2, 3, 5, 6, 7], "not 4, its sibling");
    assert_eq!(of(None, Some(&[3])).server, [0, 1, 2, 4, 5, 6]);
    assert_eq!(of(Some(&[0, 1, 2, 3]), None).load, [4, 5, 6, 7], "no core is left whole");
    let crossed = of(Some(&[0, 1]), Some(&[4, 2]));
    assert_eq!(crossed.shared_cores(&cores), [[0, 4]]);
    assert_eq!(crossed.spare, [3, 5, 6, 7]);
    assert!(of(None, None).shared_cores(&cores).is_empty());
}

#[test]
fn a_part_of_a_machine_is_shared_out() {
    // Containers: on the two CPUs of one core, on one CPU, on one CPU of each node, and on a fast core
    // and a slow one.
    assert_eq!(divide(&recorded("amd", [2, 3])), (vec![2], vec![3], vec![]));
    let one = recorded("amd", [2, 3]);
    assert_eq!(CpuSets::divide(&one, None, None).shared_cores(&one), [[2, 3]]);
    assert_eq!(divide(&recorded("amd", [5])), (vec![5], vec![5], vec![]));
    assert_eq!(divide(&recorded("two-nodes", [0, 1])), (vec![0], vec![1], vec![]));
    assert_eq!(divide(&recorded("hybrid", [0, 1, 4])), (vec![0, 1], vec![4], vec![]));
}
