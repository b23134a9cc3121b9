//! The load processes of races and other loads.

use regatta_load::{Processes, Split};
use std::path::Path;

/// Describes load processes that are started from `binary`, the regatta program. There are at least
/// `least`, and more if these may not open enough files.
pub fn load_processes(binary: &Path, least: usize) -> Processes {
    Processes { program: binary.into(), arguments: vec!["load-process".into()], least }
}

/// Says that so many connections take more processes than were asked for.
pub fn processes_in_words(connections: usize, split: Split) -> String {
    format!(
        "{connections} connections take {} load processes: one process may not open that many files \
         (ulimit -Hn)",
        split.processes
    )
}
