//! Physical cores, and how the CPUs of a machine are shared out between server and load. Two CPUs of one
//! core (SMT siblings) share its execution units: what one does takes time from the other. Cores of
//! different kinds or NUMA nodes make the same work cost different amounts.

use crate::CpuSets;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A physical core, as far as it may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// Its CPUs (hardware threads), in rising order.
    pub cpus: Vec<u32>,
    /// Its NUMA node; `None` where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Whether the machine has faster cores than this one: an efficiency core of a hybrid processor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub slower: bool,
}

impl CpuSets {
    /// Shares out the CPUs of `cores`; what was asked for is taken as it is.
    ///
    /// Where nothing is asked for, both sides get whole cores of the fastest kind on one NUMA node (the
    /// one with most of them), the server the larger half; the others are spare. A node or kind with a
    /// single core is no choice, then all of the kind or of the machine are taken. A single core is
    /// parted between its CPUs, a single CPU is shared. In each set the first CPU of every core comes
    /// before the second of any, so that a load on `cores = 2` gets two cores. Where one side is asked
    /// for, the other gets the CPUs of all cores that this leaves whole, or if there are none, all that
    /// are left.
    pub fn shared_out(cores: &[Core], server: Option<Vec<u32>>, load: Option<Vec<u32>>) -> CpuSets {
        let all = in_turn(&cores.iter().collect::<Vec<_>>());
        let besides = |taken: &[u32]| -> Vec<u32> {
            let whole =
                cores.iter().filter(|core| !core.cpus.iter().any(|cpu| taken.contains(cpu)));
            let whole = in_turn(&whole.collect::<Vec<_>>());
            let left = all.iter().copied().filter(|cpu| !taken.contains(cpu)).collect();
            // One CPU in all is shared; the referee says so.
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
        CpuSets { server, load, spare }
    }

    /// The CPUs of each core that server and load have in common, unless it is by the same CPU.
    pub fn shared_cores<'a>(&self, cores: &'a [Core]) -> Vec<&'a [u32]> {
        let has = |of: &[u32], core: &Core| core.cpus.iter().any(|cpu| of.contains(cpu));
        let apart = |core: &&Core| {
            !core.cpus.iter().any(|cpu| self.server.contains(cpu) && self.load.contains(cpu))
        };
        let both = |core: &&Core| has(&self.server, core) && has(&self.load, core);
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

/// The cores to share out: two or more.
fn alike(cores: &[Core]) -> Vec<&Core> {
    let fast: Vec<&Core> = cores.iter().filter(|core| !core.slower).collect();
    let mut by_node: BTreeMap<Option<u32>, Vec<&Core>> = BTreeMap::new();
    for core in &fast {
        by_node.entry(core.node).or_default().push(core);
    }
    // Of equal ones the first.
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
