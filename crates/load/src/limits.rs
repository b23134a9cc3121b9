//! The machine's limits that a plan meets before anything is opened: descriptors.

use crate::Error;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors left for the rest of the process: files that the caller opens during a run.
const SPARE: usize = 32;

/// Descriptors that a load process has open when it begins.
const OF_CHILD: usize = 16;

/// Raises the soft descriptor limit to what the plan needs, or says how many connections would be
/// possible.
pub(crate) fn make_room(connections: usize, threads: usize) -> Result<(), Error> {
    let others = in_use() + threads + SPARE;
    let limit = getrlimit(Resource::Nofile);
    let needed = (connections + others) as u64;
    if needed > hard() {
        let possible = (hard() as usize).saturating_sub(others);
        return Err(Error::Descriptors { wanted: connections, possible });
    }
    if limit.current.is_some_and(|soft| soft < needed) {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).map_err(
            |error| Error::Machine { what: "raise its descriptor limit", error: error.into() },
        )?;
    }
    Ok(())
}

/// How many connections this process can open with so many load threads.
pub(crate) fn possible_here(threads: usize) -> usize {
    (hard() as usize).saturating_sub(in_use() + threads + SPARE)
}

/// The same of a process that it starts.
pub(crate) fn possible_in_child(threads: usize) -> usize {
    (hard() as usize).saturating_sub(OF_CHILD + threads + SPARE)
}

/// Descriptors that this process has open.
fn in_use() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(SPARE, Iterator::count)
}

/// How many descriptors a process may have; processes inherit it.
fn hard() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}
