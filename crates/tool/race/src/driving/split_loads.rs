//! Finds the loads of a race that need several load processes.

use crate::driving::{
    load_plan::plan,
    processes::{load_processes, processes_in_words},
};
use regatta_record::Asked;
use regatta_script::Workload;
use std::path::Path;

/// Returns a sentence for each load of a race that needs more than one load process on this machine.
/// Equal sentences in a row are merged. `binary` is the regatta program.
pub fn split_loads(asked: &Asked, binary: &Path) -> Vec<String> {
    let processes = load_processes(binary, 1);
    // The workload does not matter here.
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
