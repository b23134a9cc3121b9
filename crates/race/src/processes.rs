//! Load processes of races and of other loads.

use regatta_load::{Processes, Split};
use std::path::Path;

/// Returns load processes that are started from `binary`, the regatta program: at least `least`, and
/// more if the file limit of each process requires it.
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
