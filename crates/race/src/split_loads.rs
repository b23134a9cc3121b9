//! Which loads of a race take several load processes.

use crate::{
    processes::{load_processes, processes_in_words},
    round::plan,
};
use regatta_record::Asked;
use regatta_script::Workload;
use std::path::Path;

/// Says which loads of a race take more than one load process on this machine: a sentence for each.
/// `binary` is the regatta program.
pub fn split_loads(asked: &Asked, binary: &Path) -> Vec<String> {
    let processes = load_processes(binary, 1);
    // What is asked does not matter.
    let speaks = Workload::built_in().swap_remove(0);
    let mut sentences = Vec::new();
    for load in &asked.loads {
        let plan = plan(asked, speaks.clone(), 0, *load, 0);
        if let Ok(split) = processes.split(&plan)
            && split.processes > 1
        {
            sentences.push(processes_in_words(plan.connections + plan.idle + plan.passing, split));
        }
    }
    sentences.dedup();
    sentences
}
