//! Load processes of races and of other loads.

use regatta_load::{Processes, Split};
use std::path::Path;

/// Returns the number of load processes and how to start them from `binary`, the regatta program:
/// `least`, or more if the file limit of each process requires it. There are never more processes
/// than connections.
pub fn load_processes(binary: &Path, least: usize) -> Processes {
    Processes { program: binary.into(), arguments: vec!["load-process".into()], least }
}

/// Returns a sentence: so many connections need more than one process.
pub fn processes_in_words(connections: usize, split: Split) -> String {
    format!(
        "{connections} connections need {} load processes: the file limit of one process is too \
         low (ulimit -Hn)",
        split.processes
    )
}
