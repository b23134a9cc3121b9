//! A race: runs every contender under every load, pass after pass, in an order derived from the seed.

use crate::{
    ask::{entrant::Entrant, fingerprint::Unchanged},
    context::RaceContext,
    driving::{observe::observe, round, warm::Warm},
    duel::{Duels, Starts},
    ended::{RaceError, round_end, settles},
    results::{events::Events, store::Store},
};
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use regatta_host::Containment;
use regatta_record::{
    Asked, Happened, JudgedCell, LoadShape, NextStart, PassStart, Round, RoundStart,
};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

/// A pending start: one contender under one load in one pass.
struct Start<'a> {
    /// The pass, from 0.
    pass: u32,
    load: LoadShape,
    entrant: &'a Entrant,
    seed: u64,
}

/// Runs the rounds of the race in `store` that are missing from `rounds`, and adds each round to both.
/// Returns false if `stop` was set before all rounds were done. With a target precision, the loads
/// to run are decided before each pass. Emits events to `events` and syncs them after each round.
///
/// # Errors
/// If the machine, a contender's manifest, a changed program or the disk prevents the race from
/// continuing.
pub fn run(
    binary: &Path,
    containment: Containment,
    asked: &Asked,
    store: &mut Store,
    rounds: &mut Vec<Round>,
    events: &mut Events<'_>,
    stop: &AtomicBool,
) -> Result<bool, RaceError> {
    let entrants = Entrant::of_race(asked)?;
    let context = RaceContext { asked, binary, containment, stop, restless: AtomicU32::new(0) };
    let mut files = Unchanged::of(asked, binary)?;
    let Some(mut seen) = observe(&context, &entrants, store, rounds, events)? else {
        return Ok(false);
    };
    let seen_in_rounds = seen.clone();
    let mut judged = Vec::new();
    let mut done = 0;
    let mut duels = Duels::new(&context, &entrants, &mut seen);
    for pass in 0.. {
        let before = rounds.iter().filter(|round| duels.pass_of(round) < pass);
        let before: Vec<Round> = before.cloned().collect();
        let due = regatta_judge::due(asked, &before, pass);
        if due.loads.is_empty() {
            break;
        }
        let stored_before = rounds.len();
        let passes_left = due.passes.saturating_sub(pass) as usize;
        let all = done + passes_left * due.loads.len() * entrants.len();
        let (passes, widest) = (due.passes, due.widest);
        let (in_duels, in_rounds): (Vec<LoadShape>, Vec<LoadShape>) =
            due.loads.iter().partition(|load| duels.has(load));
        let starts = schedule(asked, &entrants, pass, &in_rounds);
        events.emit(Happened::PassStarted(PassStart { pass, loads: due.loads, passes, widest }));
        files.look()?;
        let mut so_far = Starts { done, all };
        if !duels.run_pass(pass, &in_duels, &mut so_far, store, rounds, events)? {
            return Ok(false);
        }
        done = so_far.done;
        for (nth, start) in starts.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            done += 1;
            let is_due = |start: &&Start<'_>| !is_done(start, rounds) && !is_settled(start, rounds);
            if !is_due(&start) {
                continue;
            }
            let next = starts[nth + 1..].iter().find(is_due);
            files.look()?;
            let next = next
                .map(|next| NextStart { contender: next.entrant.name.clone(), load: next.load });
            let started = round_start(&context, start, next, done - 1, all);
            events.emit(Happened::RoundStarted(started));
            let Start { entrant, load, seed, .. } = *start;
            let settling = seen_in_rounds.of(asked, &entrant.name, &load);
            let warm = Warm::Needs(settling.as_ref());
            let ran = round::run(&context, pass, entrant, load, seed, warm, events)?;
            let Some(round) = ran else { return Ok(false) };
            store.append(&round)?;
            let line = Some(rounds.len() as u32 + 1);
            events.emit(Happened::RoundEnded(Box::new(round_end(&round, Some(pass), line))));
            rounds.push(round);
            events.sync()?;
        }
        if rounds.len() > stored_before {
            let changed = changed(asked, rounds, &mut judged);
            events.emit(Happened::PassJudged { pass, changed });
        }
    }
    Ok(true)
}

fn round_start(
    context: &RaceContext<'_>,
    start: &Start<'_>,
    next: Option<NextStart>,
    done: usize,
    all: usize,
) -> RoundStart {
    RoundStart {
        pass: Some(start.pass),
        observes_s: None,
        done: done as u32,
        all: all as u32,
        contender: start.entrant.name.clone(),
        load: start.load,
        window: round::window(context.asked, &start.load),
        next,
    }
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

/// Returns the starts of a pass. The loads are shuffled, and within each load the contenders. The
/// contenders that are compared thus run close together, because the machine's speed drifts over
/// seconds. All contenders of a pass get the same requests under the same load. Order and requests
/// depend only on the seed and the pass, not on which loads are `due`.
fn schedule<'a>(
    asked: &Asked,
    entrants: &'a [Entrant],
    pass: u32,
    due: &[LoadShape],
) -> Vec<Start<'a>> {
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
            let start = |entrant| Start { pass, load, entrant, seed };
            starts.extend(entrants.into_iter().map(start));
        }
    }
    starts
}

fn is_of(start: &Start<'_>, round: &Round) -> bool {
    round.contender == start.entrant.name && round.load == start.load
}

fn is_done(start: &Start<'_>, rounds: &[Round]) -> bool {
    rounds.iter().any(|round| is_of(start, round) && round.round == start.pass)
}

/// Whether an earlier round already decided this cell: e.g. a wrong reply disqualifies for good.
fn is_settled(start: &Start<'_>, rounds: &[Round]) -> bool {
    rounds.iter().any(|round| settles(round, &start.entrant.name, &start.load))
}
