//! How rounds and races end.

use crate::{
    ask::{entrant::EntrantError, fingerprint::ChangedError},
    machine_error::MachineError,
    results::{
        events::Events,
        store::{Store, StoreError},
    },
};
use regatta_record::{Happened, LoadShape, Outcome, Round, RoundEnd};

/// Why a race could not continue. The rounds stored so far are kept.
#[derive(Debug, thiserror::Error)]
pub enum RaceError {
    /// An error of the result directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An error of the machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A program or file of the race was changed while it ran.
    #[error(transparent)]
    Changed(#[from] ChangedError),
    /// An error in the stored manifest of a contender.
    #[error(transparent)]
    Entrant(#[from] EntrantError),
}

/// Stores a round of `pass`, and emits its end.
pub(crate) fn stored(
    round: Round,
    pass: u32,
    store: &mut Store,
    events: &mut Events<'_>,
) -> Result<(), StoreError> {
    let round = store.append(round)?;
    events.emit(round_end(round, Some(pass)));
    Ok(())
}

/// Returns the event for the end of a round.
pub(crate) fn round_end(round: &Round, pass: Option<u32>) -> Happened {
    Happened::RoundEnded(Box::new(RoundEnd {
        pass,
        contender: round.contender.clone(),
        load: round.load,
        outcome: round.outcome.clone(),
        requests: round.requests,
        window_ns: round.window_ns,
        server_cpu_ns: round.server.as_ref().map(|server| server.cpu_ns),
    }))
}

/// Whether a round decided a cell for good.
pub(crate) fn settles(round: &Round, contender: &str, load: &LoadShape) -> bool {
    round.contender == contender && round.load == *load && round.outcome != Outcome::Finished
}
