//! Physical cores, and the division of a machine's CPUs between server and load. Two CPUs of one
//! core (SMT siblings) share its execution units: each slows the other down. On cores of different
//! kinds or NUMA nodes the same work has different costs.

use crate::CpuSets;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A physical core, with the CPUs of it that may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// Its CPUs (hardware threads), in ascending order.
    pub cpus: Vec<u32>,
    /// Its NUMA node; `None` if the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Whether the machine has faster cores than this one: an efficiency core of a hybrid processor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub slower: bool,
}

impl CpuSets {
    /// Divides the CPUs of `cores` between server and load; requested sets are used unchanged.
    ///
    /// If neither is requested, both sides get whole cores of the fastest kind on one NUMA node
    /// (the one with the most of them), the server the larger half; the other cores are spare. If
    /// the node has only one such core, all cores of the kind are used; if the kind has only one,
    /// all cores of the machine. A single core is divided between its CPUs, a single CPU is shared.
    /// In each set the first CPU of every core precedes the second CPU of any, so that a load with
    /// `cores = 2` gets two cores. If one side is requested, the other gets the CPUs of all
    /// untouched cores, or if there are none, all remaining CPUs, or if there are none, all CPUs.
    pub fn divide(cores: &[Core], server: Option<Vec<u32>>, load: Option<Vec<u32>>) -> CpuSets {
        let all = in_turn(&cores.iter().collect::<Vec<_>>());
        let besides = |taken: &[u32]| -> Vec<u32> {
            let whole =
                cores.iter().filter(|core| !core.cpus.iter().any(|cpu| taken.contains(cpu)));
            let whole = in_turn(&whole.collect::<Vec<_>>());
            let left = all.iter().copied().filter(|cpu| !taken.contains(cpu)).collect();
            // If no CPU remains, all are shared; the referee reports this.
            [whole, left].into_iter().find(|cpus| !cpus.is_empty()).unwrap_or_else(|| all.clone())
        };
        let (server, load) = match (server, load) {
            (Some(server), Some(load)) => (server, load),
            (Some(server), None) => (server.clone(), besides(&server)),
            (None, Some(load)) => (besides(&load), load),
            (None, None) => halves(cores),
        };
        let is_spare = |cpu: &u32| !server.contains(cpu) && !load.contains(cpu);
        let spare = all.iter().copied().filter(is_spare).collect();
        CpuSets { server, load, spare, apart: false }
    }

    /// The CPUs of a server and of a load on two machines with these cores: on each, all cores of the fastest kind on
    /// one NUMA node, unless CPUs are requested.
    pub fn of_two_machines(
        (of_server, server): (&[Core], Option<Vec<u32>>),
        (of_load, load): (&[Core], Option<Vec<u32>>),
    ) -> CpuSets {
        let all = |cores: &[Core]| in_turn(&alike(cores));
        let server = server.unwrap_or_else(|| all(of_server));
        let load = load.unwrap_or_else(|| all(of_load));
        CpuSets { server, load, spare: Vec::new(), apart: true }
    }

    /// The CPUs of each core that server and load share without sharing one CPU.
    pub fn shared_cores<'a>(&self, cores: &'a [Core]) -> Vec<&'a [u32]> {
        let has = |of: &[u32], core: &Core| core.cpus.iter().any(|cpu| of.contains(cpu));
        let apart = |core: &&Core| {
            !core.cpus.iter().any(|cpu| self.server.contains(cpu) && self.load.contains(cpu))
        };
        let both = |core: &&Core| !self.apart && has(&self.server, core) && has(&self.load, core);
        cores.iter().filter(both).filter(apart).map(|core| &core.cpus[..]).collect()
    }
}

fn halves(cores: &[Core]) -> (Vec<u32>, Vec<u32>) {
    let alike = alike(cores);
    match &alike[..] {
        [] => (Vec::new(), Vec::new()),
        [core] => match &core.cpus[..] {
            [cpu] => (vec![*cpu], vec![*cpu]),
            cpus => {
                let (server, load) = cpus.split_at(cpus.len().div_ceil(2));
                (server.to_vec(), load.to_vec())
            }
        },
        cores => {
            let (server, load) = cores.split_at(cores.len().div_ceil(2));
            (in_turn(server), in_turn(load))
        }
    }
}

/// The cores to divide, equal if possible.
fn alike(cores: &[Core]) -> Vec<&Core> {
    let fast: Vec<&Core> = cores.iter().filter(|core| !core.slower).collect();
    let mut by_node: BTreeMap<Option<u32>, Vec<&Core>> = BTreeMap::new();
    for core in &fast {
        by_node.entry(core.node).or_default().push(core);
    }
    // Of equal nodes, the first.
    let node = by_node.into_values().rev().max_by_key(Vec::len).unwrap_or_default();
    let all: Vec<&Core> = cores.iter().collect();
    let enough = [node, fast].into_iter().find(|cores| cores.len() > 1);
    enough.unwrap_or(all)
}

/// The first CPUs of all cores, then the second ones, and so on.
fn in_turn(cores: &[&Core]) -> Vec<u32> {
    let most = cores.iter().map(|core| core.cpus.len()).max().unwrap_or(0);
    (0..most)
        .flat_map(|nth| cores.iter().filter_map(move |core| core.cpus.get(nth).copied()))
        .collect()
}
