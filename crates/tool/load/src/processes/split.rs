//! Decides into how many processes a load is split.

use crate::{Error, Plan, Split, sockets::limits};
use std::path::PathBuf;

/// How to start load processes, and how many there must be.
#[derive(Clone, Debug)]
pub struct LoadProcessConfig {
    /// A program that calls [`crate::load_process`] when it is started with `arguments`.
    pub program: PathBuf,
    /// The arguments.
    pub arguments: Vec<String>,
    /// Minimum number of processes, at most [`LoadProcessConfig::MOST`]. With 1, the load runs inside the
    /// calling process if that may open enough files.
    pub least: usize,
}

impl LoadProcessConfig {
    /// Maximum number of processes. Each holds a copy of the requests, usually some megabytes.
    pub const MOST: usize = 64;

    /// Determines how many processes and threads `plan` takes. There are more than
    /// [`LoadProcessConfig::least`] processes if the descriptor limit requires it, and more than
    /// [`Plan::threads`] threads if that number cannot be divided by the number of processes. There is
    /// never a thread without connections, so there may be fewer of both.
    ///
    /// # Errors
    /// [`Error::Plan`] if the plan contradicts itself; [`Error::Descriptors`] if not even the largest
    /// possible number of processes may open that many connections: [`LoadProcessConfig::MOST`], or as many as
    /// have work.
    pub fn split(&self, plan: &Plan) -> Result<Split, Error> {
        plan.check()?;
        let plan = &plan.needed();
        let most = plan.most_threads().min(Self::MOST);
        let mut processes = self.least.clamp(1, most);
        loop {
            let split = threads(plan, processes);
            let per_process = split.threads / processes;
            let possible = match processes {
                1 => limits::possible_here(per_process),
                _ => limits::possible_in_child(per_process),
            };
            if plan.connections_of(split.part(0)) <= possible {
                return Ok(split);
            }
            if processes == most {
                let wanted = plan.most_open();
                return Err(Error::Descriptors { wanted, possible: possible * processes });
            }
            processes += 1;
            // As many threads as asked for, if possible.
            while processes < plan.threads.min(most) && !plan.threads.is_multiple_of(processes) {
                processes += 1;
            }
        }
    }
}

/// The same number of threads in each of `processes` processes: in total at least as many as the plan
/// has, but no more than have work.
fn threads(plan: &Plan, processes: usize) -> Split {
    let per_process = plan.threads.div_ceil(processes).min(plan.most_threads() / processes).max(1);
    Split { processes, threads: per_process * processes }
}
