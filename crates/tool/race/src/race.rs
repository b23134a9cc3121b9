//! A race: runs every contender under every load, pass after pass, in an order derived from the seed.

use crate::{
    ask::{entrant::Entrant, fingerprint::Unchanged},
    context::{Machines, RaceContext},
    driving::{
        round,
        trial::{RunsTrials, Trial},
        warm::Warm,
        warm_up_pass::observe,
    },
    duel::{Duels, LivesHere, RunsLives, Starts},
    machine_error::MachineError,
    results::{events::Events, store::Store},
    round_end::{RaceError, settles, stored},
};
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use regatta_record::{Asked, Happened, JudgedCell, LoadShape, PassStart, Round, RoundStart};
use std::sync::atomic::Ordering;

/// Runs the rounds of the race in `store` that are missing from it, and adds each. Returns false if it was stopped
/// before all rounds were done. With a target precision, the loads to run are decided before each pass. Emits
/// events to `events` and syncs them after each round.
///
/// # Errors
/// If the machine, a contender's manifest, a changed program or the disk prevents the race from
/// continuing.
pub fn run(
    machines: Machines<'_>,
    asked: &Asked,
    store: &mut Store,
    events: &mut Events<'_>,
) -> Result<bool, RaceError> {
    let context = RaceContext::on(asked, machines);
    let entrants = Entrant::of_race(asked)?;
    let here = Runners { trials: &TrialsHere(&context), lives: &mut LivesHere::new(&context) };
    let ran = run_by(here, &context, &entrants, store, events);
    match machines.lost() {
        Some(lost) if !matches!(ran, Ok(true)) => Err(lost.into()),
        _ => ran,
    }
}

/// What runs the rounds and lives of a race: this machine, or a simulated one.
struct Runners<'a> {
    trials: &'a dyn RunsTrials,
    lives: &'a mut dyn RunsLives,
}

/// Runs trials on this machine.
struct TrialsHere<'a>(&'a RaceContext<'a>);

impl RunsTrials for TrialsHere<'_> {
    fn run_trial(
        &self,
        trial: Trial<'_>,
        warm: Warm<'_>,
        events: &mut Events<'_>,
    ) -> Result<Option<Round>, MachineError> {
        round::run(self.0, trial, warm, events)
    }
}

/// Runs a race on `runners`.
fn run_by(
    runners: Runners<'_>,
    context: &RaceContext<'_>,
    entrants: &[Entrant],
    store: &mut Store,
    events: &mut Events<'_>,
) -> Result<bool, RaceError> {
    let Runners { trials, lives } = runners;
    let asked = context.asked;
    let mut files = Unchanged::of(asked, context.binary)?;
    let Some(mut seen) = observe(context, entrants, trials, store, events)? else {
        return Ok(false);
    };
    let seen_in_rounds = seen.clone();
    let mut judged = Vec::new();
    let mut duels = Duels::new(context, entrants, &mut seen, lives);
    for pass in 0.. {
        let is_before = |round: &&Round| duels.pass_of(round) < pass;
        let before: Vec<Round> = store.rounds().iter().filter(is_before).cloned().collect();
        let due = regatta_judge::due(asked, &before, pass);
        if due.loads.is_empty() {
            break;
        }
        let stored_before = store.rounds().len();
        let (in_duels, in_rounds): (Vec<LoadShape>, Vec<LoadShape>) =
            due.loads.iter().partition(|load| duels.has(load));
        let starts = duels.starts_of_pass(&in_duels) + in_rounds.len() * entrants.len();
        let passes_left = due.passes.saturating_sub(pass) as usize;
        duels.starts.all = duels.starts.done + passes_left * starts;
        let start = PassStart { passes: due.passes, widest: due.widest };
        events.emit(Happened::PassStarted(start));
        files.look()?;
        context.look_at_server()?;
        if !duels.run_pass(pass, &in_duels, store, events)? {
            return Ok(false);
        }
        let Starts { mut done, all } = duels.starts;
        let pending = schedule(asked, entrants, pass, &in_rounds);
        for (nth, trial) in pending.iter().enumerate() {
            if context.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            done += 1;
            if !is_due(trial, store.rounds()) {
                continue;
            }
            files.look()?;
            let next = pending[nth + 1..].iter().find(|trial| is_due(trial, store.rounds()));
            let start = RoundStart {
                pass: Some(pass),
                done: done as u32 - 1,
                all: all as u32,
                next: next.map(Trial::next),
                ..trial.start(asked)
            };
            events.emit(Happened::RoundStarted(start));
            let settling = seen_in_rounds.of(asked, &trial.entrant.name, &trial.load);
            let ran = trials.run_trial(*trial, Warm::Needs(settling.as_ref()), events)?;
            let Some(round) = ran else { return Ok(false) };
            stored(round, pass, store, events)?;
            events.sync()?;
        }
        duels.starts.done = done;
        if store.rounds().len() > stored_before {
            let changed = changed(asked, store.rounds(), &mut judged);
            events.emit(Happened::PassJudged { pass, changed });
        }
    }
    Ok(true)
}

/// Judges all rounds so far. Returns the cells whose judgement differs from `judged`, and updates
/// `judged`.
fn changed(asked: &Asked, rounds: &[Round], judged: &mut Vec<JudgedCell>) -> Vec<JudgedCell> {
    let cells = regatta_judge::judge(asked, rounds).cells.into_iter();
    let now: Vec<JudgedCell> = cells
        .map(|cell| JudgedCell {
            contender: cell.contender,
            load: cell.load,
            rounds: cell.rounds,
            verdict: cell.verdict.kind(),
            relation: cell.relation,
            cost_ns_per_request: cell.cost_ns_per_request,
            ratio_to_baseline: cell.ratio_to_baseline,
            rate_per_s: cell.rate_per_s,
        })
        .collect();
    let is_new = |cell: &&JudgedCell| !judged.contains(cell);
    let changed = now.iter().filter(is_new).cloned().collect();
    *judged = now;
    changed
}

/// Returns the trials of a pass. The loads are shuffled, and within each load the contenders. The
/// contenders that are compared thus run close together, because the machine's speed drifts over
/// seconds. All contenders of a pass get the same requests under the same load. Order and requests
/// depend only on the seed and the pass, not on which loads are `due`.
fn schedule<'a>(
    asked: &Asked,
    entrants: &'a [Entrant],
    pass: u32,
    due: &[LoadShape],
) -> Vec<Trial<'a>> {
    let mut trials = Vec::new();
    let mut random = StdRng::seed_from_u64(asked.seed ^ u64::from(pass));
    let mut loads: Vec<(usize, LoadShape)> = asked.loads.iter().copied().enumerate().collect();
    loads.shuffle(&mut random);
    for (index, load) in loads {
        let nth = u64::from(pass) * asked.loads.len() as u64 + index as u64;
        let seed = asked.seed.wrapping_add(nth);
        let mut entrants: Vec<&Entrant> = entrants.iter().collect();
        entrants.shuffle(&mut random);
        if due.contains(&load) {
            let trial = |entrant| Trial { pass, entrant, load, seed };
            trials.extend(entrants.into_iter().map(trial));
        }
    }
    trials
}

/// Whether a trial is missing, and no earlier one already decided its cell: e.g. a wrong reply disqualifies for
/// good.
fn is_due(trial: &Trial<'_>, rounds: &[Round]) -> bool {
    let settles = |round: &Round| settles(round, &trial.entrant.name, &trial.load);
    !rounds.iter().any(|round| trial.is_of(round) || settles(round))
}

#[cfg(test)]
mod tests;
