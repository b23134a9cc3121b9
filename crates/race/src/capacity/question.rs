//! What is asked of a search for a capacity, and why it has no answer.

use crate::{course::MachineError, entrant::EntrantError};
use regatta_host::SupervisorError;
use regatta_load::Arrivals;
use regatta_record::{CapacityLoad, Limit};
use std::time::Duration;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is searched for, and the rest of the load's shape.
    pub load: CapacityLoad,
    /// What latency is permitted.
    pub limit: Limit,
    /// The first level. By clients, also how far apart the next ones are; rates double.
    pub step: u32,
    /// The highest level to be tried.
    pub max: u32,
    /// Length of a measured window; longer where the percentile needs more replies.
    pub window: Duration,
    /// Warm-up; at least a little longer than the limit, since all clients begin at once and what
    /// overtaxes a server is late only after a while.
    pub warm_up: Duration,
    /// How long the server is observed before the first step at most, to see how long it takes to warm
    /// up; zero: it is not.
    pub settle: Duration,
    /// The search ends after this time, with what was found until then.
    pub time_limit: Duration,
    /// How long a reply may take before it is an error.
    pub timeout: Duration,
    /// Load threads.
    pub threads: usize,
    /// CPUs of the load threads; empty: not pinned.
    pub cpus: Vec<u32>,
    /// Seed of the requests.
    pub seed: u64,
}

impl Question {
    /// Whether clients are searched for, and not a rate.
    pub(super) fn by_clients(&self) -> bool {
        matches!(self.load, CapacityLoad::Clients { .. })
    }

    /// How requests at a rate arrive.
    pub(super) fn arrivals(&self) -> Arrivals {
        match self.load {
            CapacityLoad::Rate { arrivals, .. } => arrivals,
            CapacityLoad::Clients { .. } => Arrivals::default(),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CapacityError {
    /// The contender did not come to be ready; a sentence.
    #[error("{0}")]
    NotStarted(String),
    /// No connection came open, or the load refused.
    #[error(transparent)]
    Load(#[from] regatta_load::Error),
    /// Of the machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// Of the contender's supervisor.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// Of the contender's manifest.
    #[error(transparent)]
    Entrant(#[from] EntrantError),
    /// The server that was to be observed cannot be.
    #[error("cannot observe process {pid}: {error}")]
    Observe {
        /// Its id.
        pid: u32,
        /// What the system said.
        error: std::io::Error,
    },
}
