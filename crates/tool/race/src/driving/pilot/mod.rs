//! The pilot pass measures how fast each contender is, before the race, if the race file has rates
//! relative to that. Its rounds are not results: only the rates are kept. Each contender is measured
//! when the time for each request is steady: some programs are compiled while they run, and are
//! several times as fast a few seconds after their start.

pub(crate) mod budget;
mod pace;

use crate::{
    ask::{
        contest::Contest,
        entrant::{Entrant, EntrantError},
        loads::Loads,
        rate::Paces,
    },
    context::{Machines, RaceContext},
    driving::{
        pilot::{
            budget::{Budget, WINDOW_S},
            pace::Pace,
        },
        round,
        trial::Trial,
        warm::Warm,
    },
    machine_error::MachineError,
    results::events::Events,
    round_end::round_end,
};
use regatta_record::{Asked, Happened, LoadShape, Outcome, PilotRate, Round, RoundStart};
use std::{borrow::Cow, time::Instant};

/// Why the rates of a race could not be determined.
#[derive(Debug, thiserror::Error)]
pub enum PilotError {
    /// An error of the machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// An error in a contender's manifest.
    #[error(transparent)]
    Entrant(#[from] EntrantError),
    /// There is nothing to take a share of.
    #[error(
        "the rate is given as a share of what the contenders can do, but under {load} none finished \
         the pilot round: {because}; fix that, or give the rate as a number"
    )]
    Nobody {
        /// The closed-loop load.
        load: LoadShape,
        /// The outcome of each contender.
        because: String,
    },
}

/// Replaces relative rates with numbers. Runs one short round of every contender, except the reference
/// ones, under each closed-loop load that is needed. Stores the rates in `asked.pilot` and computes
/// `asked.loads` from them. Does nothing, and emits nothing, if all rates are numbers. Returns `None`
/// if `stop` was set in the meantime.
pub fn pilot(
    contest: &Contest,
    asked: Asked,
    machines: Machines<'_>,
    events: &mut Events<'_>,
) -> Result<Option<Asked>, PilotError> {
    let loads = contest.pilot_loads(&asked.cpus);
    if loads.is_empty() {
        return Ok(Some(asked));
    }
    let entrants = Entrant::of_race(&asked)?;
    let (due, cannot_hold) = rounds(&asked, &entrants, &loads);
    let short = Asked { window_s: WINDOW_S, ..asked.clone() };
    let context = RaceContext::on(&short, machines);
    let all = due.len() as u32;
    let mut budget = Budget::of(&asked, all);
    events.emit(Happened::PilotStarted { rounds: all });
    let mut rates = Vec::new();
    for (load, entrant) in due {
        let trial = Trial { pass: 0, entrant, load, seed: asked.seed };
        let done = rates.len() as u32;
        let start = RoundStart { done, all, ..trial.start(&short) };
        events.emit(Happened::RoundStarted(start));
        let (began, longest) = (Instant::now(), budget.longest_warm_up());
        let mut settler = pace::settler(longest);
        let ran = round::run(&context, trial, Warm::Pace(&mut settler, longest), events);
        if let Some(lost) = machines.lost() {
            return Err(lost.into());
        }
        let Some(round) = ran? else { return Ok(None) };
        let took = budget.spend(began.elapsed());
        events.emit(round_end(&round, None));
        let Pace { rate_per_s, window_rate_per_s, unsteady_after_s } =
            Pace::of(&settler, longest, &round);
        rates.push(PilotRate {
            contender: entrant.name.clone(),
            load,
            rate_per_s,
            failed: (rate_per_s == 0.0).then(|| because(&round)),
            window_rate_per_s,
            unsteady_after_s,
            took_s: took.as_secs_f64(),
        });
    }
    let asked = settled(contest, asked, rates, cannot_hold)?;
    events.emit(Happened::RatesSettled { asked: Box::new(asked.clone()) });
    Ok(Some(asked))
}

/// Loads, each with why a contender cannot hold it.
type CannotHold = Vec<(LoadShape, String)>;

/// Returns the rounds of a pilot pass under these loads, and a sentence for each contender that states that it cannot
/// hold one of them.
pub(crate) fn rounds<'a>(
    asked: &Asked,
    entrants: &'a [Entrant],
    loads: &[LoadShape],
) -> (Vec<(LoadShape, &'a Entrant)>, CannotHold) {
    let (mut due, mut cannot_hold) = (Vec::new(), Vec::new());
    for &load in loads {
        for entrant in entrants.iter().filter(|entrant| !asked.is_reference(&entrant.name)) {
            match entrant.cannot_hold(load) {
                None => due.push((load, entrant)),
                Some(because) => cannot_hold.push((load, because)),
            }
        }
    }
    (due, cannot_hold)
}

/// Returns the race with the rates from the pilot pass.
fn settled(
    contest: &Contest,
    asked: Asked,
    pilot: Vec<PilotRate>,
    cannot_hold: CannotHold,
) -> Result<Asked, PilotError> {
    let paces = Paces::of(&asked, &pilot);
    let mut unknown = contest.pilot_loads(&asked.cpus).into_iter().filter(|l| !paces.has(l));
    // The loads without such a rate show what is wrong with the contenders.
    let (known, unknown): (Cow<'_, Contest>, _) = match unknown.next() {
        None => (Cow::Borrowed(contest), None),
        Some(load) if contest.loads.iter().all(Loads::needs_pilot) => {
            let failed = pilot.into_iter().filter_map(|one| Some((one.load, one.failed?)));
            let of_load = failed.chain(cannot_hold).filter(|(of, _)| *of == load);
            let reasons: Vec<String> = of_load.map(|(_, why)| why).collect();
            let because = match reasons[..] {
                [] => "only reference contenders take part".to_owned(),
                _ => reasons.join("; "),
            };
            return Err(PilotError::Nobody { load, because });
        }
        Some(load) => {
            let loads = contest.loads.iter().filter(|loads| !loads.needs_pilot());
            let known = Contest { loads: loads.cloned().collect(), ..contest.clone() };
            let why = format!(
                "loads at a share of what the contenders can do, because under {load} none finished \
                 the pilot round"
            );
            (Cow::Owned(known), Some(why))
        }
    };
    let (loads, mut left_out) = known.loads_at(&asked.cpus, &paces);
    left_out.extend(unknown);
    let then = contest.then(&asked.cpus, &loads);
    let pilot_shares = known.pilot_shares(&asked.cpus);
    Ok(Asked { loads, left_out, then, pilot, pilot_shares, ..asked })
}

fn because(round: &Round) -> String {
    match &round.outcome {
        Outcome::Finished => format!("{} sent no correct reply", round.contender),
        Outcome::Disqualified { because, .. }
        | Outcome::Failed { because }
        | Outcome::CannotHold { because } => because.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use regatta_record::{Arrivals, CpuSets, Extreme, PilotShare};
    use std::num::NonZeroU32;

    fn asked(cpus: CpuSets) -> Asked {
        let twin_of = Some("fast".into());
        Asked { baseline: "fast".into(), twin_of, cpus, ..fixtures::asked() }
    }

    fn contest(loads: &str) -> Contest {
        let head = "name='x'\nworkload='double'\nrounds=1\nwindow='1s'\nwarm_up='0s'\n";
        Contest::parse(&format!("{head}{loads}"), "x").unwrap()
    }

    const ONE: &str = "[[load]]\nconnections = 64\n";
    const SWEPT: &str = "[[load]]\nconnections = [8, 64]\narrivals = \"constant\"\n\
                         rate = [100, \"50% of slowest\", \"110% of fastest\"]\n";

    fn rate_of(contender: &str, connections: u32, rate_per_s: f64) -> PilotRate {
        let load = LoadShape::closed(connections, 1);
        PilotRate {
            contender: contender.into(),
            load,
            rate_per_s,
            window_rate_per_s: None,
            unsteady_after_s: None,
            failed: None,
            took_s: 1.5,
        }
    }

    #[test]
    fn shares_become_numbers_for_each_shape_and_references_do_not_count() {
        let contest = contest(&format!("{ONE}{SWEPT}"));
        let asked =
            asked(CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() });
        assert_eq!(
            contest.pilot_loads(&asked.cpus),
            [LoadShape::closed(8, 1), LoadShape::closed(64, 1)],
            "once each, in closed loop"
        );
        let pilot = vec![
            rate_of("fast", 8, 50_000.0),
            rate_of("slow", 8, 10_000.0),
            rate_of("fast", 64, 100_000.0),
            rate_of("slow", 64, 0.0),
            rate_of("null", 64, 900_000.0),
            rate_of("fast-twin", 64, 5.0),
        ];
        let asked = settled(&contest, asked, pilot.clone(), vec![]).unwrap();
        let shown: Vec<(u32, Option<u32>)> = asked
            .loads
            .iter()
            .map(|l| (l.connections, l.drive.rate().map(NonZeroU32::get)))
            .collect();
        let at = |connections, rate| (connections, Some(rate));
        assert_eq!(
            shown,
            [
                (64, None),
                at(8, 100),
                at(8, 5_000),
                at(8, 55_000),
                at(64, 100),
                at(64, 50_000),
                at(64, 110_000),
            ]
        );
        assert!(asked.loads[1..].iter().all(|l| l.drive.arrivals() == Some(Arrivals::Constant)));
        assert_eq!(asked.pilot, pilot);
        let deciding = |share: &PilotShare| {
            let decider = asked.decider(share).unwrap();
            (share.load.connections, share.of, decider.contender.clone())
        };
        let of = |connections, of, name: &str| (connections, of, name.to_owned());
        assert_eq!(
            asked.pilot_shares.iter().map(deciding).collect::<Vec<_>>(),
            [
                of(8, Extreme::Slowest, "slow"),
                of(8, Extreme::Fastest, "fast"),
                of(64, Extreme::Slowest, "fast"),
                of(64, Extreme::Fastest, "fast"),
            ]
        );
    }

    #[test]
    fn no_load_is_at_a_share_of_what_nobody_finished() {
        let contest = contest(&format!("{ONE}{SWEPT}"));
        let cpus = CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() };
        let pilot = vec![rate_of("fast", 8, 5.0), rate_of("fast", 64, 0.0)];
        let asked = settled(&contest, asked(cpus), pilot, vec![]).unwrap();
        assert_eq!(
            (asked.loads.len(), asked.left_out.len(), &asked.pilot_shares[..]),
            (1, 1, &[][..])
        );
    }

    #[test]
    fn a_load_with_connections_that_do_not_read_has_the_rate_of_the_one_without() {
        let stalled = "[[load]]\nconnections = 99\nidle = 1\nstalled = [0, 1]\n\
                       rate = \"30% of slowest\"\n";
        let head = "name='x'\nworkload='hub'\nrounds=1\nwindow='1s'\nwarm_up='0s'\n";
        let contest = Contest::parse(&format!("{head}{stalled}"), "x").unwrap();
        let asked =
            asked(CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() });
        let all_reading = LoadShape { idle: 1, ..LoadShape::closed(99, 1) };
        assert_eq!(contest.pilot_loads(&asked.cpus), [all_reading], "one pilot for both");
        let rate = PilotRate { load: all_reading, ..rate_of("hub", 99, 1_000.0) };
        let loads = settled(&contest, asked, vec![rate], vec![]).unwrap().loads;
        let shown: Vec<String> = loads.iter().map(LoadShape::to_string).collect();
        assert_eq!(shown, ["99 conn + 1 idle, 300/s", "99 conn + 1 idle that never read, 300/s"]);
    }

    #[test]
    fn a_pilot_that_no_contender_finished_is_an_error_with_the_reason() {
        let contest = contest(SWEPT);
        let cpus = CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() };
        let failed = Some("fast exited with status 3".to_owned());
        let pilot = vec![
            rate_of("fast", 8, 5.0),
            PilotRate { failed: Some("elsewhere".into()), ..rate_of("slow", 8, 0.0) },
            PilotRate { failed, ..rate_of("fast", 64, 0.0) },
        ];
        let cannot_hold = vec![(LoadShape::closed(64, 1), "select states a limit".to_owned())];
        let shown =
            settled(&contest, asked(cpus.clone()), pilot, cannot_hold).unwrap_err().to_string();
        let reasons = "under 64 conn none finished the pilot round: fast exited with status 3; \
                       select states a limit; fix that";
        assert!(shown.contains(reasons), "{shown}");
        let shown = settled(&contest, asked(cpus), vec![], vec![]).unwrap_err().to_string();
        assert!(shown.contains("only reference contenders"), "{shown}");
    }
}
