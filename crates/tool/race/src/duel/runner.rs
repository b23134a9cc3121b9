//! What a life needs, what it yields, and who runs it: this machine, or a simulated one.

use super::life::Plan;
use crate::{ask::entrant::Entrant, machine_error::MachineError, results::events::Events};
use regatta_record::{LoadShape, Round, RoundStart, Settled};

/// Runs the lives of a race.
pub(crate) trait RunsLives {
    /// Runs a life. Returns `None` if it was interrupted.
    fn run_life(
        &mut self,
        life: Life<'_>,
        events: &mut Events<'_>,
    ) -> Result<Option<Lived>, MachineError>;
}

/// A life, before it begins.
pub(crate) struct Life<'a> {
    /// Its number, from 0.
    pub nth: u32,
    pub seed: u64,
    pub loads: &'a [LoadShape],
    pub members: Vec<Member<'a>>,
    pub plan: Plan,
}

/// A contender of a life.
pub(crate) struct Member<'a> {
    pub entrant: &'a Entrant,
    /// The event of its start.
    pub start: RoundStart,
    /// Its rounds, by load, before anything is measured; `None` under a load where it is not raced in this life.
    pub rounds: Vec<Option<Round>>,
}

/// What a life yields.
pub(crate) struct Lived {
    pub rounds: Vec<Round>,
    /// The warm-ups that were observed in it.
    pub settled: Vec<Settled>,
}
