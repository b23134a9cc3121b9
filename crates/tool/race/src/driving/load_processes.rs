//! Load processes of races and of other loads.

use crate::driving::load_plan::plan;
use regatta_load::{LoadProcessConfig, Split};
use regatta_record::Asked;
use regatta_script::Workload;
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

/// Returns the number of load processes and how to start them from `binary`, the regatta program:
/// `least`, or more if the file limit of each process requires it. There are never more processes
/// than connections.
pub fn load_processes(binary: &Path, least: usize) -> LoadProcessConfig {
    LoadProcessConfig { program: binary.into(), arguments: vec!["load-process".into()], least }
}

/// Returns a sentence: so many connections need more than one process.
pub fn processes_in_words(connections: usize, split: Split) -> String {
    format!(
        "{connections} connections need {} load processes: the file limit of one process is too \
         low (ulimit -Hn)",
        split.processes
    )
}

/// Returns a sentence for each load of a race that needs more than one load process on this machine.
/// Equal sentences in a row are merged. `binary` is the regatta program.
pub fn split_loads(asked: &Asked, binary: &Path) -> Vec<String> {
    let processes = load_processes(binary, 1);
    // Neither the workload nor the address matters here.
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let speaks = Workload::built_in().swap_remove(0);
    let mut sentences = Vec::new();
    for load in &asked.loads {
        let plan = plan(asked, speaks.clone(), nowhere, *load, 0);
        if let Ok(split) = processes.split(&plan)
            && split.processes > 1
        {
            sentences.push(processes_in_words(plan.connections + plan.idle + plan.passing, split));
        }
    }
    sentences.dedup();
    sentences
}
