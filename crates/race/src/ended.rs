//! How rounds and races end.

use crate::{
    course::MachineError, entrant::EntrantError, fingerprint::ChangedError, store::StoreError,
};
use regatta_record::{LoadShape, Outcome, Round, RoundEnd};

/// Why a race could not go on. What was stored until then stays.
#[derive(Debug, thiserror::Error)]
pub enum RaceError {
    /// Of the result directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Of the machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// What it was run with was changed meanwhile.
    #[error(transparent)]
    Changed(#[from] ChangedError),
    /// Of a contender as it was stored.
    #[error(transparent)]
    Entrant(#[from] EntrantError),
}

/// The event of a finished round.
pub(crate) fn round_end(round: &Round, pass: Option<u32>, line: Option<u32>) -> RoundEnd {
    RoundEnd {
        pass,
        contender: round.contender.clone(),
        load: round.load,
        line,
        outcome: round.outcome.clone(),
        requests: round.requests,
        window_ns: round.window_ns,
        server_cpu_ns: round.server.as_ref().map(|server| server.cpu_ns),
    }
}

/// Whether a round decided a cell for good.
pub(crate) fn settles(round: &Round, contender: &str, load: &LoadShape) -> bool {
    round.contender == contender && round.load == *load && round.outcome != Outcome::Finished
}
