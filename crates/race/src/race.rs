//! A race: every contender under every load, pass after pass, in an order that the seed decides.

use crate::{
    entrant::{Entrant, EntrantError},
    round::{self, Course, MachineError},
    store::{Store, StoreError},
};
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use regatta_host::Containment;
use regatta_judge::Due;
use regatta_load::Progress;
use regatta_record::{Asked, LoadShape, Outcome, Round};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

/// Told of how a race goes, for whoever watches.
pub trait Watch {
    /// A pass begins, and this is due. With a precision asked for, how many follow is a forecast.
    fn pass_begins(&mut self, due: &Due);
    /// A round begins; `done` are behind, of `all` as far as can be told.
    fn round_begins(&mut self, done: usize, all: usize, at: &Cell<'_>);
    /// The load tells how it goes, about ten times a second.
    fn under_load(&mut self, progress: &Progress);
    /// A round ended and is stored.
    fn round_ended(&mut self, round: &Round);
}

/// One start that is due: a contender under a load in a pass.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    /// The pass, from 0.
    pub pass: u32,
    /// Name of the contender.
    pub contender: &'a str,
    /// The load.
    pub load: LoadShape,
    entrant: &'a Entrant,
    seed: u64,
}

/// Why a race could not go on. What was stored until then stays.
#[derive(Debug, thiserror::Error)]
pub enum RaceError {
    /// Of the result directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Of the machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// Of a contender as it was stored.
    #[error(transparent)]
    Entrant(#[from] EntrantError),
}

/// Runs what `rounds` lacks of the race that `store` holds, adding each round to both. False if
/// `stop` was set before all were done. Where a precision is asked for, what is due is decided after
/// each pass.
pub fn run(
    binary: &Path,
    containment: Containment,
    asked: &Asked,
    store: &mut Store,
    rounds: &mut Vec<Round>,
    watch: &mut dyn Watch,
    stop: &AtomicBool,
) -> Result<bool, RaceError> {
    let entrants = Entrant::of_race(asked)?;
    let course = Course { asked, binary, containment, stop };
    let mut done = 0;
    for pass in 0.. {
        let due = regatta_judge::due(asked, rounds, pass);
        if due.loads.is_empty() {
            break;
        }
        watch.pass_begins(&due);
        let passes_left = due.passes.saturating_sub(pass) as usize;
        let all = done + passes_left * due.loads.len() * entrants.len();
        for cell in schedule(asked, &entrants, pass, &due.loads) {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            done += 1;
            if is_done(&cell, rounds) || is_settled(&cell, rounds) {
                continue;
            }
            watch.round_begins(done - 1, all, &cell);
            let mut progress = |progress: &Progress| watch.under_load(progress);
            let Cell { pass, entrant, load, seed, .. } = cell;
            let ran = round::run(&course, pass, entrant, load, seed, &mut progress)?;
            let Some(round) = ran else { return Ok(false) };
            store.append(&round)?;
            watch.round_ended(&round);
            rounds.push(round);
        }
    }
    Ok(true)
}

/// Every start of a pass. Within it the loads are shuffled, and within a load the contenders: those
/// that are compared run close together, since the machine's speed drifts over seconds. All
/// contenders of a pass get the same requests under the same load. Order and requests follow from
/// the seed and the pass alone, whichever loads are `due`.
fn schedule<'a>(
    asked: &Asked,
    entrants: &'a [Entrant],
    pass: u32,
    due: &[LoadShape],
) -> Vec<Cell<'a>> {
    let mut starts = Vec::new();
    let mut random = StdRng::seed_from_u64(asked.seed ^ u64::from(pass));
    let mut loads: Vec<(usize, LoadShape)> = asked.loads.iter().copied().enumerate().collect();
    loads.shuffle(&mut random);
    for (index, load) in loads {
        let nth = u64::from(pass) * asked.loads.len() as u64 + index as u64;
        let seed = asked.seed.wrapping_add(nth);
        let mut entrants: Vec<&Entrant> = entrants.iter().collect();
        entrants.shuffle(&mut random);
        if due.contains(&load) {
            starts.extend(entrants.into_iter().map(|entrant| {
                let contender = entrant.name.as_str();
                Cell { pass, contender, load, entrant, seed }
            }));
        }
    }
    starts
}

fn is_of(cell: &Cell<'_>, round: &Round) -> bool {
    round.contender == cell.contender && round.load == cell.load
}

fn is_done(cell: &Cell<'_>, rounds: &[Round]) -> bool {
    rounds.iter().any(|round| is_of(cell, round) && round.round == cell.pass)
}

/// Whether one of its rounds decided it: a wrong reply stays wrong.
fn is_settled(cell: &Cell<'_>, rounds: &[Round]) -> bool {
    rounds.iter().any(|round| is_of(cell, round) && round.outcome != Outcome::Finished)
}
