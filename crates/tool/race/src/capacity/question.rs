//! The parameters of a capacity search, and its errors.

use crate::{ask::entrant::EntrantError, machine_error::MachineError};
use regatta_host::SupervisorError;
use regatta_load::Arrivals;
use regatta_record::{CapacityLoad, Limit};
use std::time::Duration;

/// The parameters of a capacity search.
#[derive(Clone, Debug)]
pub struct Question {
    /// The searched quantity, and the rest of the load's shape.
    pub load: CapacityLoad,
    /// The latency limit.
    pub limit: Limit,
    /// The first level. In a search for clients also the distance between levels; rates double.
    pub step: u32,
    /// The highest level to try.
    pub max: u32,
    /// Length of a measured window; longer if the percentile needs more replies.
    pub window: Duration,
    /// Warm-up. It is extended to a little longer than the limit, because all clients start at once and
    /// an overloaded server is late only after a while.
    pub warm_up: Duration,
    /// Maximum time that the server is observed before the first step, to see how long it takes to warm
    /// up; zero: not observed.
    pub settle: Duration,
    /// Time limit of the search. It then ends with the results so far.
    pub time_limit: Duration,
    /// Timeout of a reply, after which it is an error.
    pub timeout: Duration,
    /// Number of load threads.
    pub threads: usize,
    /// CPUs of the load threads; empty: not pinned.
    pub cpus: Vec<u32>,
    /// Seed of the requests.
    pub seed: u64,
}

impl Question {
    /// Whether the search is for clients rather than a rate.
    pub(super) fn by_clients(&self) -> bool {
        matches!(self.load, CapacityLoad::Clients { .. })
    }

    /// Returns the arrival process of requests at a rate.
    pub(super) fn arrivals(&self) -> Arrivals {
        match self.load {
            CapacityLoad::Rate { arrivals, .. } => arrivals,
            CapacityLoad::Clients { .. } => Arrivals::default(),
        }
    }
}

/// Why the search has no result.
#[derive(Debug, thiserror::Error)]
pub enum CapacityError {
    /// The contender did not become ready, as a sentence.
    #[error("{0}")]
    NotStarted(String),
    /// No connection could be opened, or the load could not run.
    #[error(transparent)]
    Load(#[from] regatta_load::Error),
    /// The agents that carry out the load failed.
    #[error(transparent)]
    Agents(regatta_fleet::Error),
    /// An error of the machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// An error of the contender's supervisor.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// An error in the contender's manifest.
    #[error(transparent)]
    Entrant(#[from] EntrantError),
    /// The server's process cannot be observed.
    #[error("cannot observe process {pid}: {error}")]
    Observe {
        /// The process id.
        pid: u32,
        /// The system's error.
        error: std::io::Error,
    },
}
