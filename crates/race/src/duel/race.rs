//! The duels of a pass: which loads share a life, who is in which heat, and what a life does.

use super::{
    bench::{Scripts, Stand},
    life::{LoadPlan, Plan, WarmUp, live},
    order::Orders,
};
use crate::{
    ask::{
        duels::{groups, heats_of, is_raced_in_duels, slice},
        entrant::Entrant,
    },
    context::RaceContext,
    driving::{observe::Seen, round, warm},
    ended::{RaceError, round_end, settles},
    results::{events::Events, store::Store},
};
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use regatta_host::Settings;
use regatta_record::{Happened, LoadShape, NextStart, Outcome, Round, RoundStart};
use std::time::Duration;

/// Length of an idle slice.
const IDLE: Duration = Duration::from_millis(50);
/// One contender in this many gets an idle slice under each load of a life.
const IDLE_EVERY: usize = 3;
/// More than the blocks of any life under a load: the distance of the first blocks of successive lives. It is
/// prime, so that lives begin with different orders.
const MOST_BLOCKS: usize = 37;

/// The duels of a race.
pub(crate) struct Duels<'a> {
    context: &'a RaceContext<'a>,
    entrants: &'a [Entrant],
    seen: &'a mut Seen,
    /// Loads for which all contenders are started in the same way, so that one life carries all of them.
    groups: Vec<Vec<LoadShape>>,
    scripts: Scripts,
}

/// The starts of a race, for its progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Starts {
    pub done: usize,
    pub all: usize,
}

impl<'a> Duels<'a> {
    pub fn new(context: &'a RaceContext<'a>, entrants: &'a [Entrant], seen: &'a mut Seen) -> Self {
        let loads =
            context.asked.loads.iter().filter(|load| is_raced_in_duels(context.asked, load));
        let groups = groups(context.asked, entrants, loads, context.binary, context.containment);
        Duels { context, entrants, seen, groups, scripts: Scripts(Vec::new()) }
    }

    /// Whether a load is raced in duels.
    pub fn has(&self, load: &LoadShape) -> bool {
        self.groups.iter().flatten().any(|other| other == load)
    }

    /// The pass of a round. With several heats, a pass has several lives.
    pub fn pass_of(&self, round: &Round) -> u32 {
        let group = self.groups.iter().find(|group| group.contains(&round.load));
        round.round
            / group.map_or(1, |group| {
                heats_of(self.context.asked, self.entrants, group).len().max(1) as u32
            })
    }

    /// Runs the lives of the `due` loads in `pass` that are missing from `rounds`, and adds their rounds to
    /// `store` and to `rounds`. Returns false if the race was interrupted.
    pub fn run_pass(
        &mut self,
        pass: u32,
        due: &[LoadShape],
        starts: &mut Starts,
        store: &mut Store,
        rounds: &mut Vec<Round>,
        events: &mut Events<'_>,
    ) -> Result<bool, RaceError> {
        for group in self.groups.clone() {
            let mut loads: Vec<LoadShape> =
                group.iter().filter(|load| due.contains(load)).copied().collect();
            let heats = heats_of(self.context.asked, self.entrants, &group);
            for (nth, heat) in heats.iter().enumerate() {
                let life = pass * heats.len() as u32 + nth as u32;
                // The first two lives of a heat have the same order: a warm-up is observed twice under one load.
                let order = u64::from(if pass == 1 { nth as u32 } else { life });
                loads.shuffle(&mut StdRng::seed_from_u64(self.context.asked.seed ^ order));
                let heat: Vec<&Entrant> = heat.iter().map(|who| &self.entrants[*who]).collect();
                if !is_due(life, &loads, &heat, rounds) {
                    starts.done += heat.len();
                    continue;
                }
                forget_part(life, &loads, &heat, store, rounds)?;
                let Some(mut lived) =
                    self.life((pass, life), &loads, &heat, starts, store, rounds, events)?
                else {
                    return Ok(false);
                };
                starts.done += heat.len();
                lived.sort_by_key(is_forgettable);
                for round in lived {
                    store.append(&round)?;
                    let line = Some(rounds.len() as u32 + 1);
                    let ended = round_end(&round, Some(pass), line);
                    events.emit(Happened::RoundEnded(Box::new(ended)));
                    rounds.push(round);
                }
                events.sync()?;
            }
        }
        Ok(true)
    }

    /// Runs a life. Returns its rounds; `None` if it was interrupted.
    #[allow(clippy::too_many_arguments, reason = "a life has this many parts")]
    fn life(
        &mut self,
        (pass, life): (u32, u32),
        loads: &[LoadShape],
        heat: &[&Entrant],
        starts: &Starts,
        store: &mut Store,
        rounds: &[Round],
        events: &mut Events<'_>,
    ) -> Result<Option<Vec<Round>>, RaceError> {
        let context = self.context;
        let asked = context.asked;
        let is_open = |name: &str, load: &LoadShape| is_open(rounds, name, load);
        let seed = asked.seed.wrapping_add(u64::from(life) << 20);
        let order = Orders::new(heat.len(), seed).of_block(0).to_vec();
        let raced = |who: &usize| loads.iter().any(|load| is_open(&heat[*who].name, load));
        let plan = Plan {
            contenders: heat.len(),
            loads: (0..loads.len())
                .map(|nth| self.plan(life, nth, &loads[nth], heat, &order, seed, rounds))
                .collect(),
            starts: order.into_iter().filter(raced).collect(),
        };
        let announced = (0..heat.len()).map(|who| {
            let nth = plan.starts.iter().position(|other| *other == who).unwrap_or(0);
            let next = plan.starts.get(nth + 1).map(|who| &heat[*who].name);
            let done = (starts.done + nth) as u32;
            RoundStart {
                pass: Some(pass),
                observes_s: None,
                done,
                all: (starts.all as u32).max(done + 1),
                contender: heat[who].name.clone(),
                load: loads[0],
                window: round::window(asked, &loads[0]),
                next: next.map(|name| NextStart { contender: name.clone(), load: loads[0] }),
            }
        });
        let announced = announced.collect();
        let seen = &*self.seen;
        let settling = |name: &str, load: &LoadShape| seen.of(asked, name, load);
        let mut stand = Stand::new(
            context,
            heat,
            loads,
            (life, seed),
            &settling,
            &is_open,
            announced,
            &mut self.scripts,
            events,
        );
        let settings = Settings::read();
        let lived = live(&mut stand, &plan)?;
        let changed = Settings::read().changed_since(&settings);
        let settled = stand.settled();
        let Some(mut lived) = stand.into_rounds(&plan, lived) else { return Ok(None) };
        lived.iter_mut().for_each(|round| round.settings_changed.clone_from(&changed));
        let twin = asked.twin();
        for one in settled.into_iter().filter(|one| Some(&one.contender) != twin.as_ref()) {
            store.append_settled(&one)?;
            self.seen.add(one);
        }
        Ok(Some(lived))
    }

    /// The plan of a life under one load.
    #[allow(clippy::too_many_arguments, reason = "a plan has this many parts")]
    fn plan(
        &self,
        life: u32,
        nth: usize,
        load: &LoadShape,
        heat: &[&Entrant],
        order: &[usize],
        seed: u64,
        rounds: &[Round],
    ) -> LoadPlan {
        let asked = self.context.asked;
        let usual = Duration::from_secs_f64(asked.warm_up_s);
        let needs = |who: &usize| {
            let of_load = |load| self.seen.of(asked, &heat[*who].name, load);
            asked.loads.iter().filter_map(of_load).map(|settling| warm::needs(&settling).0).max()
        };
        // The first block does not count, so it is a warm-up, too, and enough for a contender that was steady
        // from the start, or is warm from the first load of this life.
        let slice = slice(asked, load);
        let beyond_first_block = |length: Duration| match length <= slice {
            true => WarmUp::For(Duration::ZERO),
            false => WarmUp::For(length),
        };
        let is_observed =
            |who: &usize| asked.settle_s > 0.0 && self.seen.is_due(asked, &heat[*who].name, load);
        let warm_up = |who: &usize| match needs(who) {
            _ if nth == 0 && is_observed(who) => {
                WarmUp::Observed(Duration::from_secs_f64(asked.settle_s))
            }
            needs if nth == 0 => beyond_first_block(needs.unwrap_or(usual)),
            _ => WarmUp::For(Duration::ZERO),
        };
        // All blocks of a load are one sequence, so that its orders are balanced as a whole.
        let orders = Orders::new(heat.len(), asked.seed);
        let blocks = regatta_judge::blocks_of_next_life(asked, rounds, load) as usize;
        let first_block = life as usize * MOST_BLOCKS;
        let is_idle = |who: &usize| (who + life as usize).is_multiple_of(IDLE_EVERY);
        LoadPlan {
            load: nth,
            baseline: heat.iter().position(|one| one.name == asked.baseline).unwrap_or(0),
            raced: order.to_vec(),
            warm_ups: order.iter().map(warm_up).collect(),
            blocks: (0..=blocks).map(|n| orders.of_block(first_block + n).to_vec()).collect(),
            slice,
            first_block,
            idle: ((0..heat.len()).filter(is_idle).collect(), IDLE),
            seed: seed.wrapping_add((nth as u64) << 10),
        }
    }
}

/// Whether no round has decided a cell for good.
fn is_open(rounds: &[Round], contender: &str, load: &LoadShape) -> bool {
    !rounds.iter().any(|round| settles(round, contender, load))
}

/// Whether a round of a life is missing.
fn is_due(life: u32, loads: &[LoadShape], heat: &[&Entrant], rounds: &[Round]) -> bool {
    let mut cells = heat.iter().flat_map(|one| loads.iter().map(move |load| (&one.name, load)));
    cells.any(|(name, load)| {
        let is_its = |r: &Round| r.contender == *name && r.load == *load && r.round == life;
        is_open(rounds, name, load) && !rounds.iter().any(is_its)
    })
}

/// Whether a round may be forgotten. The others, which decide a cell for good, are stored before it.
fn is_forgettable(round: &Round) -> bool {
    round.outcome == Outcome::Finished
}

/// Removes the rounds of an incomplete life. They are the last: the race was killed, or the disk was full, before
/// the others were stored. Rounds of a life are compared with each other, so it is run again as a whole.
fn forget_part(
    life: u32,
    loads: &[LoadShape],
    heat: &[&Entrant],
    store: &mut Store,
    rounds: &mut Vec<Round>,
) -> Result<(), RaceError> {
    let is_its = |round: &&Round| {
        round.round == life
            && is_forgettable(round)
            && loads.contains(&round.load)
            && heat.iter().any(|one| one.name == round.contender)
    };
    let keep = rounds.len() - rounds.iter().rev().take_while(is_its).count();
    if keep < rounds.len() {
        store.keep(keep)?;
        rounds.truncate(keep);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
