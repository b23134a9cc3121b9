//! The pilot pass measures how fast each contender is, before the race, if the race file has rates
//! relative to that. Its rounds are not results: only the rates are kept. Each contender is measured
//! when the time for each request is steady: some programs are compiled while they run, and are
//! several times as fast a few seconds after their start.

use crate::{
    ask::{
        contest::Contest,
        entrant::{Entrant, EntrantError},
        loads::Loads,
        rate::Paces,
    },
    context::{Machines, RaceContext},
    driving::{round, trial::Trial, warm::Warm},
    machine_error::MachineError,
    results::events::Events,
    round_end::round_end,
};
use regatta_judge::Settler;
use regatta_record::{
    Asked, Happened, LoadShape, Outcome, PilotRate, Round, RoundStart, WarmUpClass,
};
use std::{borrow::Cow, time::Duration};

/// Window of a pilot round, in seconds.
pub(crate) const WINDOW_S: f64 = 0.3;
/// The longest warm-up of a pilot round is that of the race's observations ([`Asked::settle_s`]) within these
/// bounds, in seconds.
const LONGEST_S: [f64; 2] = [2.0, 20.0];

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

/// The longest warm-up of a pilot round.
pub(crate) fn longest_warm_up(asked: &Asked) -> Duration {
    let [least, most] = LONGEST_S;
    Duration::from_secs_f64(asked.settle_s.clamp(least, most))
}

/// The time for which the pace of a contender was observed, if it was not steady by then.
fn unsteady_after_s(settler: &Settler) -> Option<f64> {
    let seen = settler.slices().iter().map(|slice| slice.ns).sum::<u64>() as f64 / 1e9;
    let settling = settler.settling();
    let is_steady = settling.is_some_and(|one| one.class != WarmUpClass::NeverSettles);
    (!is_steady).then_some(seen)
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
    let longest = longest_warm_up(&asked);
    let context = RaceContext::on(&short, machines);
    let all = (loads.len() * entrants.len()) as u32;
    events.emit(Happened::PilotStarted { rounds: all });
    let (mut rates, mut reasons) = (Vec::new(), Vec::new());
    for load in loads {
        for entrant in &entrants {
            let trial = Trial { pass: 0, entrant, load, seed: asked.seed };
            let done = rates.len() as u32;
            let start = RoundStart { done, all, ..trial.start(&short) };
            events.emit(Happened::RoundStarted(start));
            let mut settler = Settler::in_life(longest, 0);
            let warm = Warm::Pace(&mut settler, longest);
            let ran = round::run(&context, trial, warm, events);
            if let Some(lost) = machines.lost() {
                return Err(lost.into());
            }
            let Some(round) = ran? else { return Ok(None) };
            events.emit(round_end(&round, None, None));
            let rate_per_s = rate(&round);
            if rate_per_s == 0.0 {
                reasons.push((load, because(&round)));
            }
            rates.push(PilotRate {
                contender: entrant.name.clone(),
                load,
                rate_per_s,
                unsteady_after_s: unsteady_after_s(&settler).filter(|_| rate_per_s > 0.0),
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
    pilot: Vec<PilotRate>,
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
    let (loads, mut left_out) = known.loads_at(&asked.cpus, &paces);
    left_out.extend(unknown);
    let then = contest.then(&asked.cpus, &loads);
    Ok(Asked { loads, left_out, then, pilot, ..asked })
}

/// Returns requests per second; 0 if the round did not finish.
fn rate(round: &Round) -> f64 {
    match round.outcome {
        Outcome::Finished if round.window_ns > 0 => {
            round.requests as f64 * 1e9 / round.window_ns as f64
        }
        _ => 0.0,
    }
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
    use crate::{driving::warm::WarmUpObserver, fixtures};
    use regatta_load::WarmUpProgress;
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

    /// Observes a contender that answers at this rate, by the seconds since its start. Returns when it is measured, in
    /// seconds, and [`PilotRate::unsteady_after_s`].
    fn measured_after(rate: &dyn Fn(f64) -> f64) -> (f64, Option<f64>) {
        const SLICE_S: f64 = 0.1;
        let asked = Asked { settle_s: 30.0, ..fixtures::asked() };
        let longest = longest_warm_up(&asked);
        let mut settler = Settler::in_life(longest, 0);
        let mut observer = WarmUpObserver::of_pace(&mut settler);
        let (mut seconds, mut replies) = (0.0, 0.0);
        while seconds < longest.as_secs_f64() {
            replies += rate(seconds) * SLICE_S;
            seconds += SLICE_S;
            let lasted = Duration::from_secs_f64(seconds);
            if observer.is_warm(&WarmUpProgress { lasted, replies: replies as u64 }) {
                break;
            }
        }
        (seconds, unsteady_after_s(&settler))
    }

    #[test]
    fn a_contender_is_measured_when_its_rate_is_steady() {
        let drifts = |times: f64, within_s: f64| {
            move |seconds: f64| 2_600.0 * times.powf((seconds / within_s).min(1.0))
        };
        let (after_s, unsteady) = measured_after(&|_| 20_000.0);
        assert!((1.9..2.2).contains(&after_s) && unsteady.is_none(), "{after_s} {unsteady:?}");
        // As a program that is compiled while it runs.
        let steps = |seconds: f64| if seconds < 1.5 { 2_600.0 } else { 21_000.0 };
        let is_right = |rate: &dyn Fn(f64) -> f64| {
            let (after_s, unsteady) = measured_after(rate);
            let off = rate(after_s) / rate(f64::MAX) - 1.0;
            assert!(off.abs() < 0.1 && unsteady.is_none(), "{off} {after_s} {unsteady:?}");
        };
        is_right(&steps);
        for times in [8.0, 1.3, 0.7, 0.1] {
            is_right(&drifts(times, 3.0));
        }
        for slow in [drifts(100.0, 20.0), drifts(0.01, 20.0)] {
            let (_, unsteady) = measured_after(&slow);
            assert!(unsteady.is_some_and(|after_s| after_s > 19.9), "{unsteady:?}");
        }
    }

    const ONE: &str = "[[load]]\nconnections = 64\n";
    const SWEPT: &str = "[[load]]\nconnections = [8, 64]\narrivals = \"constant\"\n\
                         rate = [100, \"50% of slowest\", \"110% of fastest\"]\n";

    fn rate_of(contender: &str, connections: u32, rate_per_s: f64) -> PilotRate {
        let load = LoadShape::closed(connections, 1);
        PilotRate { contender: contender.into(), load, rate_per_s, unsteady_after_s: None }
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
        assert_eq!(asked.pilot, pilot);
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
