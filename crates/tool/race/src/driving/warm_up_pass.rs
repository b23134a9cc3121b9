//! Observation before the first round: how each contender warms up under each load.

use crate::{
    ask::{duels::is_raced_in_duels, entrant::Entrant},
    context::RaceContext,
    driving::{
        trial::{RunsTrials, Trial},
        warm::{self, Warm},
    },
    results::{events::Events, store::Store},
    round_end::{RaceError, round_end, settles, stored},
};
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use regatta_judge::{Settler, agreed};
use regatta_record::{
    Asked, FORMAT, Happened, LoadShape, Outcome, Round, RoundStart, Settled, Settling, WarmUpClass,
};
use std::{sync::atomic::Ordering, time::Duration};

/// The observed warm-ups of all contenders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Vec<Settled>);

impl Seen {
    /// Returns the warm-up of a contender under a load. A twin has that of its original.
    pub fn of(&self, asked: &Asked, contender: &str, load: &LoadShape) -> Option<Settling> {
        let of_load = self.lines(asked, contender).filter(|one| one.load == *load);
        of_load.filter_map(|one| one.settling).reduce(agreed)
    }

    /// Whether a contender has to be observed in a duel under this load, the first one of a life: it never was,
    /// or its first observation was under this load, and its cost settled after it fell or rose by so little that it
    /// may have been the machine's change.
    pub fn is_due(&self, asked: &Asked, contender: &str, load: &LoadShape) -> bool {
        let Some(first) = self.lines(asked, contender).next() else { return true };
        let times = self.lines(asked, contender).filter(|one| one.load == *load).count();
        let is_doubtful = |one: &Settling| {
            let settled = matches!(one.class, WarmUpClass::WarmsUp | WarmUpClass::SlowsDown);
            settled && !warm::is_certain(one)
        };
        first.load == *load && times == 1 && first.settling.as_ref().is_some_and(is_doubtful)
    }

    /// Whether a contender was observed under any load; and if so, whether its cost fell or rose.
    pub fn changed(&self, asked: &Asked, contender: &str) -> Option<bool> {
        let changed = |one: &Settled| one.settling.as_ref().is_some_and(warm::is_needed);
        self.lines(asked, contender).map(changed).reduce(|one, other| one || other)
    }

    /// Whether a contender is certainly compiled while it runs, under whatever load that was seen.
    pub fn compiles(&self, asked: &Asked, contender: &str) -> bool {
        let compiles = |one: &Settled| one.settling.as_ref().is_some_and(warm::is_certain);
        self.lines(asked, contender).any(compiles)
    }

    /// Adds an observation.
    pub fn add(&mut self, settled: Settled) {
        self.0.push(settled);
    }

    fn lines<'a>(
        &'a self,
        asked: &'a Asked,
        contender: &'a str,
    ) -> impl Iterator<Item = &'a Settled> {
        let is_twin = asked.twin().is_some_and(|twin| twin == contender);
        let name = if is_twin { asked.twin_of.as_deref().unwrap_or(contender) } else { contender };
        self.0.iter().filter(move |one| one.contender == name)
    }
}

/// Observes every contender except the twin under every load that has a window of time, is raced in rounds,
/// and was not observed yet, each in a fresh start, and in a second one if its cost fell or rose over time. If a
/// contender fails or is wrong, that counts as its first round. Returns `None` if interrupted.
pub(crate) fn observe(
    context: &RaceContext<'_>,
    entrants: &[Entrant],
    runner: &dyn RunsTrials,
    store: &mut Store,
    events: &mut Events<'_>,
) -> Result<Option<Seen>, RaceError> {
    let asked = context.asked;
    let mut seen = Seen(store.settled()?);
    if asked.settle_s <= 0.0 {
        return Ok(Some(seen));
    }
    let mut due = Vec::new();
    let in_rounds =
        |load: &&LoadShape| !load.is_counted() && !is_raced_in_duels(context.asked, load);
    for load in asked.loads.iter().filter(in_rounds) {
        let is_due = |entrant: &&Entrant| {
            asked.twin().is_none_or(|twin| twin != entrant.name)
                && entrant.cannot_hold(*load).is_none()
                && !seen.lines(asked, &entrant.name).any(|one| one.load == *load)
                && !store.rounds().iter().any(|round| settles(round, &entrant.name, load))
        };
        let trial = |entrant| Trial { pass: 0, entrant, load: *load, seed: asked.seed };
        due.extend(entrants.iter().filter(is_due).map(trial));
    }
    if due.is_empty() {
        return Ok(Some(seen));
    }
    due.shuffle(&mut StdRng::seed_from_u64(!asked.seed));
    let (starts, longest_s) = (due.len() as u32, asked.settle_s);
    events.emit(Happened::WarmUpsStarted { starts, longest_s });
    for (done, trial) in due.iter().enumerate() {
        let start = RoundStart {
            observes_s: Some(longest_s),
            done: done as u32,
            all: starts,
            next: due.get(done + 1).map(Trial::next),
            ..trial.start(asked)
        };
        let Some(one) = see(context, *trial, runner, start, events)? else { return Ok(None) };
        match one {
            Ok(settled) => {
                store.append_settled(&settled)?;
                let Settled { contender, settling, .. } = settled.clone();
                events.emit(Happened::WarmUpSeen { contender, load: trial.load, settling });
                seen.0.push(settled);
            }
            Err(round) => stored(*round, 0, store, events)?,
        }
        events.sync()?;
    }
    Ok(Some(seen))
}

/// Observes one contender under one load. Returns its warm-up, or the round that shows its fault.
fn see(
    context: &RaceContext<'_>,
    trial: Trial<'_>,
    runner: &dyn RunsTrials,
    start: RoundStart,
    events: &mut Events<'_>,
) -> Result<Option<Result<Settled, Box<Round>>>, RaceError> {
    let longest = Duration::from_secs_f64(context.asked.settle_s);
    let mut settled: Option<Settled> = None;
    loop {
        if context.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        events.emit(Happened::RoundStarted(start.clone()));
        let mut settler = Settler::new(longest);
        let warm = Warm::See(&mut settler, longest);
        let ran = runner.run_trial(trial, warm, events)?;
        let Some(round) = ran else { return Ok(None) };
        if round.outcome != Outcome::Finished {
            return Ok(Some(Err(Box::new(round))));
        }
        events.emit(round_end(&round, None));
        let settling = settler.settling();
        let slices = settler.slices().to_vec();
        let is_second = settled.is_some();
        let one = settled.get_or_insert_with(|| Settled {
            format: FORMAT,
            contender: trial.entrant.name.clone(),
            load: trial.load,
            settling,
            slices: Vec::new(),
        });
        one.slices.push(slices);
        if is_second {
            one.settling = one.settling.zip(settling).map(|(first, second)| agreed(first, second));
        }
        if is_second || !settling.as_ref().is_some_and(warm::is_needed) {
            return Ok(settled.map(Ok));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use regatta_record::WarmUpClass;

    const LOAD: LoadShape = LoadShape::closed(8, 1);

    fn settled(contender: &str, class: WarmUpClass, after_ns: u64) -> Settled {
        let settling = Settling {
            class,
            observed_ns: 2_000_000_000,
            after_ns,
            after_requests: 0,
            cold_for_ns: 0,
            cold_ns_per_request: 1.0,
            warm_ns_per_request: 1.0,
            from_localhost: None,
        };
        let (contender, settling) = (contender.to_owned(), Some(settling));
        Settled { format: FORMAT, contender, load: LOAD, settling, slices: Vec::new() }
    }

    #[test]
    fn a_contender_whose_cost_changed_is_observed_once_more() {
        let asked = Asked { twin_of: Some("a".into()), baseline: "a".into(), ..fixtures::asked() };
        let twin = asked.twin().unwrap();
        let other = LoadShape::closed(9, 1);
        let mut seen = Seen::default();
        let due =
            |seen: &Seen, name: &str| [LOAD, other].map(|load| seen.is_due(&asked, name, &load));
        assert_eq!(due(&seen, "a"), [true, true], "it was never observed");
        seen.add(settled("a", WarmUpClass::SlowsDown, 500));
        seen.add(settled("b", WarmUpClass::Flat, 0));
        assert_eq!(due(&seen, "a"), [true, false], "at the same load only");
        assert_eq!(due(&seen, &twin), [true, false]);
        assert_eq!(due(&seen, "b"), [false, false]);
        assert_eq!(seen.of(&asked, "a", &LOAD).unwrap().after_ns, 500);
        assert_eq!(seen.of(&asked, "a", &other), None);
        seen.add(settled("a", WarmUpClass::Flat, 0));
        assert_eq!(due(&seen, "a"), [false, false]);
        let mut compiled = settled("c", WarmUpClass::WarmsUp, 500);
        compiled.settling.as_mut().unwrap().cold_ns_per_request *= 1.6;
        seen.add(compiled);
        assert_eq!(due(&seen, "c"), [false, false], "no machine changes as much");
        let changed = ["a", "b", "c", "d"].map(|name| seen.changed(&asked, name));
        assert_eq!(changed, [Some(true), Some(false), Some(true), None]);
        // The change was not the contender's.
        assert_eq!(seen.of(&asked, &twin, &LOAD).unwrap().class, WarmUpClass::Flat);
    }
}
