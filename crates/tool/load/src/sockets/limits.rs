//! Checks the descriptor limit before anything is opened.

use crate::Error;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for the rest of the process: files that the caller opens during a run.
const SPARE: usize = 32;

/// Descriptors that a load process has open when it starts.
const OF_CHILD: usize = 16;

/// Raises the soft descriptor limit to the hard one if the plan needs it.
///
/// # Errors
/// [`Error::Descriptors`] with the possible number of connections, if the hard limit is too low;
/// [`Error::Machine`] if the limit cannot be raised.
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

/// Number of connections that this process can open with `threads` load threads.
pub(crate) fn possible_here(threads: usize) -> usize {
    (hard() as usize).saturating_sub(in_use() + threads + SPARE)
}

/// Number of connections that this process can open now, with a load thread for each of a few lanes.
pub fn most_connections() -> usize {
    possible_here(SPARE)
}

/// Number of connections that a load process can open with `threads` load threads.
pub(crate) fn possible_in_child(threads: usize) -> usize {
    (hard() as usize).saturating_sub(OF_CHILD + threads + SPARE)
}

/// Number of connections that a load process that this process starts can open, with a few load threads.
pub fn most_connections_of_process() -> usize {
    possible_in_child(SPARE)
}

/// Number of descriptors that this process has open; [`SPARE`] if `/proc` cannot be read.
fn in_use() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(SPARE, Iterator::count)
}

/// The hard descriptor limit; child processes inherit it.
fn hard() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}
