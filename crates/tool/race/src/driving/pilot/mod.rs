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
    let mut entrants = Entrant::of_race(&asked)?;
    entrants.retain(|entrant| !asked.is_reference(&entrant.name));
    let short = Asked { window_s: WINDOW_S, ..asked.clone() };
    let context = RaceContext::on(&short, machines);
    let all = (loads.len() * entrants.len()) as u32;
    let mut budget = Budget::of(&asked, all);
    events.emit(Happened::PilotStarted { rounds: all });
    let (mut rates, mut reasons) = (Vec::new(), Vec::new());
    for load in loads {
        for entrant in &entrants {
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
            let took = began.elapsed();
            budget.spend(took);
            events.emit(round_end(&round, None, None));
            let Pace { rate_per_s, window_rate_per_s, unsteady_after_s } =
                Pace::of(&settler, longest, &round);
            if rate_per_s == 0.0 {
                reasons.push((load, because(&round)));
            }
            rates.push(PilotRate {
                contender: entrant.name.clone(),
                load,
                rate_per_s,
                window_rate_per_s,
                unsteady_after_s,
                decides: false,
                took_s: took.as_secs_f64(),
            });
        }
    }
    let asked = settled(contest, asked, rates, &reasons)?;
    events.emit(Happened::RatesSettled { asked: Box::new(asked.clone()) });
    Ok(Some(asked))
}

/// Returns the race with the rates from the pilot pass.
fn settled(
    contest: &Contest,
    asked: Asked,
    mut pilot: Vec<PilotRate>,
    reasons: &[(LoadShape, String)],
) -> Result<Asked, PilotError> {
    let paces = Paces::of(&asked, &pilot);
    let mut unknown = contest.pilot_loads(&asked.cpus).into_iter().filter(|l| !paces.has(l));
    // The loads without such a rate show what is wrong with the contenders.
    let (known, unknown): (Cow<'_, Contest>, _) = match unknown.next() {
        None => (Cow::Borrowed(contest), None),
        Some(load) if contest.loads.iter().all(Loads::needs_pilot) => {
            let of_load = reasons.iter().filter(|(of, _)| *of == load);
            let reasons: Vec<&str> = of_load.map(|(_, why)| why.as_str()).collect();
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
    let decides = |one: &PilotRate| {
        !asked.is_reference(&one.contender) && known.has_share_of(one, &asked.cpus, &paces)
    };
    pilot.iter_mut().for_each(|one| one.decides = decides(one));
    let (loads, mut left_out) = known.loads_at(&asked.cpus, &paces);
    left_out.extend(unknown);
    let then = contest.then(&asked.cpus, &loads);
    Ok(Asked { loads, left_out, then, pilot, ..asked })
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
    use regatta_record::{Arrivals, CpuSets};
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
            decides: false,
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
        let asked = settled(&contest, asked, pilot.clone(), &[]).unwrap();
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
        let kept = |one: &PilotRate| PilotRate { decides: false, ..one.clone() };
        assert_eq!(asked.pilot.iter().map(kept).collect::<Vec<_>>(), pilot);
        let deciding = asked.pilot.iter().filter(|one| one.decides);
        let deciding: Vec<(&str, u32)> =
            deciding.map(|one| (&*one.contender, one.load.connections)).collect();
        assert_eq!(deciding, [("fast", 8), ("slow", 8), ("fast", 64)]);
    }

    #[test]
    fn only_a_contender_of_whose_rate_loads_are_or_may_be_a_share_is_doubted() {
        let cpus = CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() };
        let doubted = |share: &str, windows: [Option<f64>; 3]| {
            let one = |(contender, rate_per_s, window_rate_per_s)| PilotRate {
                window_rate_per_s,
                unsteady_after_s: Some(2.0),
                ..rate_of(contender, 64, rate_per_s)
            };
            let [fast, middle, slow] = windows;
            let all =
                [("fast", 9_000.0, fast), ("middle", 5_000.0, middle), ("slow", 2_000.0, slow)];
            let mut pilot: Vec<PilotRate> = all.map(one).into();
            pilot.push(rate_of("failed", 64, 0.0));
            let contest =
                contest(&format!("[[load]]\nconnections = 64\nrate = '50% of {share}'\n"));
            let asked = settled(&contest, asked(cpus.clone()), pilot, &[]).unwrap();
            let doubts = asked.doubts_of_pilot();
            let named = |name: &&str| doubts.iter().any(|one| one.contains(name));
            ["fast", "middle", "slow", "failed"].into_iter().filter(named).collect::<Vec<_>>()
        };
        let none = [None; 3];
        assert_eq!(
            (doubted("slowest", none), doubted("fastest", none)),
            (vec!["slow"], vec!["fast"])
        );
        // Between the two.
        let within = [Some(3_000.0), Some(8_000.0), None];
        assert_eq!(doubted("slowest", within), ["slow"]);
        assert_eq!(doubted("fastest", within), ["fast"]);
        // One that has passed the one that decides.
        let beyond = [Some(1_500.0), Some(9_500.0), None];
        assert_eq!(doubted("slowest", beyond), ["fast", "slow"]);
        assert_eq!(doubted("fastest", beyond), ["fast", "middle"]);
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
        let loads = settled(&contest, asked, vec![rate], &[]).unwrap().loads;
        let shown: Vec<String> = loads.iter().map(LoadShape::to_string).collect();
        assert_eq!(shown, ["99 conn + 1 idle, 300/s", "99 conn + 1 idle that never read, 300/s"]);
    }

    #[test]
    fn a_pilot_that_no_contender_finished_is_an_error_with_the_reason() {
        let contest = contest(SWEPT);
        let cpus = CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() };
        let pilot = vec![rate_of("fast", 8, 5.0), rate_of("fast", 64, 0.0)];
        let reasons = [(LoadShape::closed(64, 1), "fast exited with status 3".to_owned())];
        let shown =
            settled(&contest, asked(cpus.clone()), pilot, &reasons).unwrap_err().to_string();
        assert!(
            shown.contains("under 64 conn none finished") && shown.contains("status 3"),
            "{shown}"
        );
        let shown = settled(&contest, asked(cpus), vec![], &[]).unwrap_err().to_string();
        assert!(shown.contains("only reference contenders"), "{shown}");
    }
}
