//! The duels of a pass: which loads share a life, who is in which heat, and what a life does.

use super::{
    life::{LoadPlan, Plan, WarmUp},
    order::orders,
    runner::{Life, Lived, Member, RunsLives},
};
use crate::{
    ask::{
        duels::{groups, heats_of, is_raced_in_duels, slice},
        entrant::Entrant,
    },
    context::RaceContext,
    driving::{trial::Trial, warm, warm_up_pass::Seen},
    results::{events::Events, store::Store},
    round_end::{RaceError, settles, stored},
};
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use regatta_record::{Asked, LoadShape, Outcome, Round, RoundStart};
use std::time::Duration;

/// Length of an idle slice.
const IDLE: Duration = Duration::from_millis(50);
/// One contender in this many gets an idle slice under each load of a life.
const IDLE_EVERY: usize = 3;
/// More than the blocks of any life under a load: the distance of the first blocks of successive lives. It is
/// prime, so that other blocks of each life are long.
const MOST_BLOCKS: usize = 37;

/// The duels of a race.
pub(crate) struct Duels<'a> {
    asked: &'a Asked,
    entrants: &'a [Entrant],
    seen: &'a mut Seen,
    runner: &'a mut dyn RunsLives,
    /// Loads for which all contenders are started in the same way, so that one life carries all of them.
    groups: Vec<Vec<LoadShape>>,
    /// The starts of the race, for its progress.
    pub starts: Starts,
}

/// The number of starts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Starts {
    pub done: usize,
    pub all: usize,
}

impl<'a> Duels<'a> {
    pub fn new(
        context: &RaceContext<'a>,
        entrants: &'a [Entrant],
        seen: &'a mut Seen,
        runner: &'a mut dyn RunsLives,
    ) -> Self {
        let asked = context.asked;
        let loads = asked.loads.iter().filter(|load| is_raced_in_duels(asked, load));
        let groups = groups(asked, entrants, loads, context.binary);
        Duels { asked, entrants, seen, runner, groups, starts: Starts::default() }
    }

    /// Whether a load is raced in duels.
    pub fn has(&self, load: &LoadShape) -> bool {
        self.groups.iter().flatten().any(|other| other == load)
    }

    /// The pass of a round. With several heats, a pass has several lives.
    pub fn pass_of(&self, round: &Round) -> u32 {
        let group = self.groups.iter().find(|group| group.contains(&round.load));
        round.round
            / group
                .map_or(1, |group| heats_of(self.asked, self.entrants, group).len().max(1) as u32)
    }

    /// The number of starts in a pass with these loads. One carries all loads of a group.
    pub fn starts_of_pass(&self, due: &[LoadShape]) -> usize {
        let groups = self.groups.iter().filter(|group| group.iter().any(|load| due.contains(load)));
        let heats = |group: &Vec<LoadShape>| heats_of(self.asked, self.entrants, group);
        groups.flat_map(heats).map(|heat| heat.len()).sum()
    }

    /// Runs the lives of the `due` loads in `pass` that are missing from `store`, and adds their rounds to it.
    /// Returns false if the race was interrupted.
    pub fn run_pass(
        &mut self,
        pass: u32,
        due: &[LoadShape],
        store: &mut Store,
        events: &mut Events<'_>,
    ) -> Result<bool, RaceError> {
        for group in self.groups.clone() {
            let mut loads: Vec<LoadShape> =
                group.iter().filter(|load| due.contains(load)).copied().collect();
            if loads.is_empty() {
                continue;
            }
            let heats = heats_of(self.asked, self.entrants, &group);
            for (nth, heat) in heats.iter().enumerate() {
                let life = pass * heats.len() as u32 + nth as u32;
                // The first two lives of a heat have the same order: a warm-up is observed twice under one load.
                let order = u64::from(if pass == 1 { nth as u32 } else { life });
                loads.shuffle(&mut StdRng::seed_from_u64(self.asked.seed ^ order));
                // A program is compiled by the number of its requests, so those of an open loop come last.
                loads.sort_by_key(|load| load.drive.rate().is_some());
                let entrants = heat.iter().map(|who| &self.entrants[*who]).collect();
                let heat = Heat {
                    of: heats.len() as u32,
                    ..Heat::new(self.asked.seed, life, &loads, entrants)
                };
                if heat.is_due(store.rounds()) {
                    heat.forget_part(store)?;
                    if !self.life(pass, &heat, store, events)? {
                        return Ok(false);
                    }
                    events.sync()?;
                }
                self.starts.done += heat.entrants.len();
            }
        }
        Ok(true)
    }

    /// Runs a life, and stores its rounds. Returns false if it was interrupted.
    fn life(
        &mut self,
        pass: u32,
        heat: &Heat<'_>,
        store: &mut Store,
        events: &mut Events<'_>,
    ) -> Result<bool, RaceError> {
        let life = self.prepared(pass, heat, store.rounds());
        let Some(Lived { mut rounds, settled }) = self.runner.run_life(life, events)? else {
            return Ok(false);
        };
        let twin = self.asked.twin();
        for one in settled.into_iter().filter(|one| Some(&one.contender) != twin.as_ref()) {
            store.append_settled(&one)?;
            self.seen.add(one);
        }
        rounds.sort_by_key(is_forgettable);
        for round in rounds {
            stored(round, pass, store, events)?;
        }
        Ok(true)
    }

    /// Prepares the life of a heat, after these rounds.
    fn prepared<'h>(&self, pass: u32, heat: &'h Heat<'_>, rounds: &[Round]) -> Life<'h> {
        let asked = self.asked;
        let raced = |who: &usize| {
            heat.loads.iter().any(|load| is_open(rounds, &heat.entrants[*who].name, load))
        };
        let loads = (0..heat.loads.len()).map(|nth| self.plan(heat, nth, rounds)).collect();
        let starts: Vec<usize> = heat.order.iter().copied().filter(raced).collect();
        let trial = |who: usize, load: &LoadShape| Trial {
            pass: heat.life,
            entrant: heat.entrants[who],
            load: *load,
            seed: heat.seed,
        };
        let member = |who: usize| {
            let nth = starts.iter().position(|other| *other == who).unwrap_or(0);
            let next = starts.get(nth + 1).map(|who| trial(*who, &heat.loads[0]).next());
            let done = (self.starts.done + nth) as u32;
            let round = |load: &LoadShape| {
                let name = &heat.entrants[who].name;
                let settling = self.seen.of(asked, name, load);
                is_open(rounds, name, load).then(|| trial(who, load).new_round(asked, settling))
            };
            Member {
                entrant: heat.entrants[who],
                start: RoundStart {
                    pass: Some(pass),
                    done,
                    all: (self.starts.all as u32).max(done + 1),
                    next,
                    ..trial(who, &heat.loads[0]).start(asked)
                },
                rounds: heat.loads.iter().map(round).collect(),
            }
        };
        let members = (0..heat.entrants.len()).map(member).collect();
        let plan = Plan { contenders: heat.entrants.len(), loads, starts };
        Life { nth: heat.life, seed: heat.seed, loads: &heat.loads, members, plan }
    }

    /// The plan of a life under its `nth` load.
    fn plan(&self, heat: &Heat<'_>, nth: usize, rounds: &[Round]) -> LoadPlan {
        let (asked, load, life) = (self.asked, &heat.loads[nth], heat.life as usize);
        let entrants = &heat.entrants;
        let blocks = regatta_judge::blocks_of_next_life(asked, rounds, load, heat.of) as usize;
        let seed = heat.seed.wrapping_add((nth as u64) << 10);
        let is_idle = |who: &usize| (who + life).is_multiple_of(IDLE_EVERY);
        LoadPlan {
            load: nth,
            baseline: entrants.iter().position(|one| one.name == asked.baseline).unwrap_or(0),
            raced: heat.order.clone(),
            warm_ups: self.warm_ups(heat, nth, rounds),
            blocks: orders(entrants.len(), blocks, seed),
            slice: slice(asked, load),
            first_block: life * MOST_BLOCKS,
            idle: ((0..entrants.len()).filter(is_idle).collect(), IDLE),
            seed,
        }
    }

    /// How each contender of a life warms up under its `nth` load.
    fn warm_ups(&self, heat: &Heat<'_>, nth: usize, rounds: &[Round]) -> Vec<WarmUp> {
        let (asked, load, entrants) = (self.asked, &heat.loads[nth], &heat.entrants);
        let usual = Duration::from_secs_f64(asked.warm_up_s);
        let longest = Duration::from_secs_f64(asked.settle_s);
        // Starts of a program that is compiled differ, so it gets at least a part of the longest observation; also
        // under a load where it was steady, because it was observed there after the longest warm-up of all.
        let needs_under = |who: &usize, load: &LoadShape, least: Duration| {
            let name = &entrants[*who].name;
            let least = if self.seen.compiles(asked, name) { least } else { Duration::ZERO };
            Some(warm::needs(&self.seen.of(asked, name, load)?).0.max(least))
        };
        // The first block does not count, so it is a warm-up, too, and enough for a contender that was steady
        // from the start.
        let slice = slice(asked, load);
        let beyond_first_block = |length: Duration| match length <= slice {
            true => WarmUp::For(Duration::ZERO),
            false => WarmUp::For(length),
        };
        let observes = !longest.is_zero();
        let of_first_load = |who: &usize| match self.seen.is_due(asked, &entrants[*who].name, load)
        {
            true if observes => WarmUp::Observed(longest),
            _ => {
                let needs = |load| needs_under(who, load, longest / 3);
                let needs = asked.loads.iter().filter_map(needs).max();
                beyond_first_block(needs.unwrap_or(usual))
            }
        };
        let of_next_load = |who: &usize| {
            let changed = self.seen.changed(asked, &entrants[*who].name);
            match needs_under(who, load, longest / 6) {
                Some(needs) if changed == Some(true) => beyond_first_block(needs),
                None if observes && changed == Some(true) => {
                    WarmUp::Observed(longest / warm::FURTHER)
                }
                None if observes && changed.is_none() => {
                    WarmUp::IfItChanged(longest / warm::FURTHER)
                }
                _ => WarmUp::For(Duration::ZERO),
            }
        };
        let is_driven = |who: usize, load: &LoadShape| {
            entrants[who].cannot_hold(*load).is_none() && is_open(rounds, &entrants[who].name, load)
        };
        let warm_up = |who: &usize| match heat.loads[..nth].iter().any(|load| is_driven(*who, load))
        {
            true => of_next_load(who),
            false => of_first_load(who),
        };
        heat.order.iter().map(warm_up).collect()
    }
}

/// The contenders of a life, and its loads.
struct Heat<'a> {
    /// The number of the life.
    life: u32,
    /// The number of heats.
    of: u32,
    seed: u64,
    loads: Vec<LoadShape>,
    entrants: Vec<&'a Entrant>,
    /// The order in which they start.
    order: Vec<usize>,
}

impl<'a> Heat<'a> {
    fn new(seed: u64, life: u32, loads: &[LoadShape], entrants: Vec<&'a Entrant>) -> Heat<'a> {
        let seed = seed.wrapping_add(u64::from(life) << 20);
        let order = orders(entrants.len(), 0, seed).concat();
        Heat { life, of: 1, seed, loads: loads.to_vec(), entrants, order }
    }

    /// Whether a round of it is missing.
    fn is_due(&self, rounds: &[Round]) -> bool {
        self.entrants.iter().flat_map(|one| self.loads.iter().map(move |load| (one, load))).any(
            |(entrant, load)| {
                let trial = Trial { pass: self.life, entrant, load: *load, seed: self.seed };
                is_open(rounds, &entrant.name, load) && !rounds.iter().any(|r| trial.is_of(r))
            },
        )
    }

    /// Removes the rounds of a life that is incomplete. They are the last: the race was killed, or the disk was
    /// full, before the others were stored. Rounds of a life are compared with each other, so it is run again as a
    /// whole.
    fn forget_part(&self, store: &mut Store) -> Result<(), RaceError> {
        let is_its = |round: &&Round| {
            round.round == self.life
                && is_forgettable(round)
                && self.loads.contains(&round.load)
                && self.entrants.iter().any(|one| one.name == round.contender)
        };
        let rounds = store.rounds();
        let keep = rounds.len() - rounds.iter().rev().take_while(is_its).count();
        if keep < rounds.len() {
            store.keep(keep)?;
        }
        Ok(())
    }
}

/// Whether no round has decided a cell for good.
fn is_open(rounds: &[Round], contender: &str, load: &LoadShape) -> bool {
    !rounds.iter().any(|round| settles(round, contender, load))
}

/// Whether a round may be forgotten. The others, which decide a cell for good, are stored before it.
fn is_forgettable(round: &Round) -> bool {
    round.outcome == Outcome::Finished
}

#[cfg(test)]
mod tests;
