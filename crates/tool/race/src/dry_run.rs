//! The dry run: what a race would run and how long it would take, without starting anything.

use crate::{
    ask::{
        contest::Contest,
        duels::{groups, heats_of, is_raced_in_duels, slice},
        entrant::{Entrant, EntrantError},
        rate::Paces,
    },
    driving::{
        pilot::{self, budget::Budget},
        warm::FURTHER,
    },
};
use regatta_judge::{BLOCKS_OF_A_LIFE, LEAST_LIVES, LEAST_PASSES};
use regatta_record::{Asked, FORMAT, LoadShape, RacePlan};
use std::{collections::BTreeSet, ops::Add, path::Path};

/// Seconds that a start takes in addition to warm-up and window: starting the contender, connecting,
/// stopping. The usual minimum and maximum: 0.3 s for a built-in contender on an idle machine of two
/// CPUs, 2 s for a runtime such as the JVM or for thousands of connections.
const BESIDE_S: [f64; 2] = [0.3, 2.0];
/// Seconds that a contender takes under a load of a life in addition to its slices: connecting, an idle slice,
/// disconnecting, reading the memory. As usual minimum and maximum.
const CONNECT_S: [f64; 2] = [0.1, 0.5];
/// An observed warm-up is over after this share of its limit if the cost is steady.
const STEADY_AFTER: f64 = 1.0 / 3.0;

/// Returns the plan of a race that [`prepare`](crate::prepare()) made from `contest`.
///
/// # Errors
/// If a stored manifest is wrong, or its adapter does not serve the workload.
pub fn plan(contest: &Contest, asked: Asked) -> Result<RacePlan, EntrantError> {
    let entrants = Entrant::of_race(&asked)?;
    let pilot_loads = contest.pilot_loads(&asked.cpus);
    // Assumed rates stand in for those of the pilot pass, so that loads at shares are counted.
    let (loads, _) = contest.loads_at(&asked.cpus, &Paces::assumed(&pilot_loads));
    let (known, at_shares): (Vec<LoadShape>, Vec<LoadShape>) =
        loads.iter().partition(|load| asked.loads.contains(load));
    let loads_at_shares = at_shares.len() as u32;
    let each = || loads.iter().flat_map(|load| entrants.iter().map(move |e| (e, *load)));
    let cannot_hold = each().filter_map(|(entrant, load)| {
        let why = entrant.cannot_hold(load)?;
        Some(format!("{} at {load}: {why}", entrant.name))
    });
    let cannot_hold: Vec<String> = cannot_hold.collect();
    let in_duels: Vec<&LoadShape> =
        loads.iter().filter(|load| is_raced_in_duels(&asked, load)).collect();
    let in_rounds: Vec<&LoadShape> = loads.iter().filter(|load| !in_duels.contains(load)).collect();
    let slices = in_duels.iter().map(|load| slice(&asked, load).as_secs_f64());
    let slice_s = (!in_duels.is_empty())
        .then(|| [slices.clone().fold(f64::INFINITY, f64::min), slices.fold(0.0, f64::max)]);
    let pass = of_duels(&asked, &entrants, &in_duels) + of_rounds(&asked, &entrants, &in_rounds);

    let pilot_starts = pilot::rounds(&asked, &entrants, &pilot_loads).0.len() as u32;
    let least = if in_rounds.is_empty() { LEAST_LIVES } else { LEAST_PASSES };
    let stops_early = asked.precision.is_some() || asked.time_s.is_some();
    let least = if stops_early { least.min(asked.rounds) } else { asked.rounds };
    let pilot_s = Budget::of(&asked, pilot_starts).likely_s(BESIDE_S);
    // So many fit into the time, if the last one begins within it.
    let fit = |time_s: f64| ((time_s - pilot_s[0]) / pass.s[0]).ceil();
    let fit = asked.time_s.map_or(f64::INFINITY, fit);
    let rounds = [least, asked.rounds.min(fit as u32).max(least)];
    let of = |end: usize, rounds: u32| {
        pilot_s[end] + pass.observation_s[end] + f64::from(rounds) * pass.s[end]
    };
    let mut duration_s = [of(0, rounds[0]), of(1, rounds[1])];
    if let Some(time_s) = asked.time_s {
        // The least number of passes is run in any case, and none starts that would take longer.
        duration_s[1] = duration_s[1].min(of(1, rounds[0]).max(time_s));
        duration_s[0] = duration_s[0].min(duration_s[1]);
    }
    let counted = asked.loads.iter().filter(|load| load.is_counted()).copied().collect();
    let cells = each().filter(|(entrant, load)| entrant.cannot_hold(*load).is_none()).count();
    let asked = Asked { loads: known, ..asked };
    Ok(RacePlan {
        format: FORMAT,
        asked,
        cells: cells as u32,
        cannot_hold,
        pilot_starts,
        observed: pass.observed,
        loads_at_shares,
        rounds,
        slice_s,
        starts: rounds.map(|rounds| pilot_starts + rounds * pass.starts),
        duration_s,
        counted,
    })
}

/// What a pass takes, and the observation before it or in it.
#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    starts: u32,
    /// Seconds: usual minimum and maximum.
    s: [f64; 2],
    /// Number of observed warm-ups.
    observed: u32,
    observation_s: [f64; 2],
}

impl Add for Pass {
    type Output = Pass;

    fn add(self, other: Pass) -> Pass {
        let sum = |a: [f64; 2], b: [f64; 2]| [a[0] + b[0], a[1] + b[1]];
        Pass {
            starts: self.starts + other.starts,
            s: sum(self.s, other.s),
            observed: self.observed + other.observed,
            observation_s: sum(self.observation_s, other.observation_s),
        }
    }
}

/// Of the loads raced in rounds: each contender is started once under each load.
fn of_rounds(asked: &Asked, entrants: &[Entrant], loads: &[&LoadShape]) -> Pass {
    let mut pass = Pass::default();
    for load in loads {
        for entrant in entrants.iter().filter(|entrant| entrant.cannot_hold(**load).is_none()) {
            pass.starts += 1;
            let is_observed =
                asked.settle_s > 0.0 && !load.is_counted() && !is_twin(asked, entrant);
            pass.observed += u32::from(is_observed);
            for end in [0, 1] {
                // The warm-up ends early once the load is steady.
                let warm_up = [0.0, asked.warm_up_s][end];
                let window = if load.is_counted() { 0.0 } else { warm_up + asked.window_s };
                pass.s[end] += window + BESIDE_S[end];
            }
        }
    }
    // An observation is repeated if the cost rose or fell.
    let observation_s =
        [STEADY_AFTER * asked.settle_s + BESIDE_S[0], 2.0 * (asked.settle_s + BESIDE_S[1])];
    pass.observation_s = observation_s.map(|s| f64::from(pass.observed) * s);
    pass
}

/// Of the loads raced in duels: a life of each heat, in which each contender is started once.
fn of_duels(asked: &Asked, entrants: &[Entrant], loads: &[&LoadShape]) -> Pass {
    let mut pass = Pass::default();
    let (mut seen, mut further_s) = (BTreeSet::new(), 0.0);
    for group in groups(asked, entrants, loads.iter().copied(), Path::new("regatta")) {
        for heat in heats_of(asked, entrants, &group) {
            let in_heat = heat.into_iter().map(|who| &entrants[who]);
            let holds = |one: &&Entrant| group.iter().any(|l| one.cannot_hold(*l).is_none());
            for entrant in in_heat.filter(holds) {
                pass.starts += 1;
                let is_new = seen.insert(&entrant.name);
                let is_observed = is_new && asked.settle_s > 0.0 && !is_twin(asked, entrant);
                pass.observed += u32::from(is_observed);
                if is_observed {
                    // Under each further load, if its cost changed.
                    further_s += asked.settle_s / f64::from(FURTHER) * (group.len() as f64 - 1.0);
                }
                for end in [0, 1] {
                    pass.s[end] += BESIDE_S[end];
                    for load in group.iter().filter(|load| entrant.cannot_hold(**load).is_none()) {
                        // The first block does not count.
                        let blocks = f64::from(1 + BLOCKS_OF_A_LIFE[end]);
                        let slice = slice(asked, load).as_secs_f64();
                        pass.s[end] += CONNECT_S[end] + blocks * slice;
                    }
                    pass.s[end] += [0.0, asked.warm_up_s][end];
                }
            }
        }
    }
    let observation_s = [STEADY_AFTER * asked.settle_s, asked.settle_s];
    pass.observation_s = observation_s.map(|s| f64::from(pass.observed) * s);
    pass.observation_s[1] += further_s;
    pass
}

fn is_twin(asked: &Asked, entrant: &Entrant) -> bool {
    asked.twin().is_some_and(|twin| twin == entrant.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Changes,
        ask::{prepare::built_in, prepare::prepare},
    };
    use regatta_host::read_setup;
    use std::time::Duration;

    fn planned(race: &str, changes: Changes) -> RacePlan {
        let contest = Contest::parse(race, "mine.toml").unwrap();
        let setup = read_setup("0", None, Vec::new());
        plan(&contest, prepare(&contest, &changes, &built_in(), setup).unwrap()).unwrap()
    }

    #[test]
    fn starts_and_time_follow_from_contenders_loads_and_rounds() {
        let race = "contenders = ['epoll', 'null']\nschedule = 'rounds'\nrounds = 4\nwindow = '2s'\n\
                    warm_up = '1s'\nsettle = '6s'\n\
                    [[load]]\nconnections = [8, 64]\n[[load]]\nchurn = true\nrequests = 100\n";
        let plan = planned(race, Changes::default());
        // epoll, its twin and null under three loads.
        assert_eq!((plan.cells, plan.rounds, plan.starts), (9, [4, 4], [36, 36]));
        assert_eq!((plan.pilot_starts, plan.counted.len()), (0, 1));
        // 24 starts with a window of 2 s and a warm-up of at most 1 s, and 36 × 0.3 s or 2 s. Before
        // them, two contenders under two loads are observed for 2.3 s, or twice for 8 s.
        assert_eq!(plan.observed, 4);
        let [least, most] = plan.duration_s;
        assert!((least - (48.0 + 10.8 + 9.2)).abs() < 1e-9, "{least}");
        assert!((most - (72.0 + 72.0 + 64.0)).abs() < 1e-9, "{most}");
    }

    #[test]
    fn a_precision_gives_a_range_of_rounds_and_a_share_needs_a_pilot() {
        let race = "contenders = ['epoll', 'poll']\nschedule = 'rounds'\n[[load]]\n\
                    rate = ['50% of slowest', '90% of fastest', 1000]\n";
        let changes = Changes { precision: Some(0.02), rounds: Some(20), ..Changes::default() };
        let plan = planned(race, changes);
        // Three contenders under three rates, two of which are shares.
        assert_eq!((plan.cells, plan.loads_at_shares, plan.asked.loads.len()), (9, 2, 1));
        assert_eq!(plan.pilot_starts, 2, "the twin needs no pilot");
        assert_eq!((plan.rounds, plan.starts), ([5, 20], [47, 182]));
        assert!(plan.duration_s[0] < plan.duration_s[1]);
    }

    #[test]
    fn a_duel_has_a_start_of_each_contender_in_a_life_whatever_its_loads() {
        let race = "contenders = ['epoll', 'poll']\nrounds = 4\nslice = '100ms'\nwarm_up = '1s'\n\
                    settle = '6s'\n[[load]]\nconnections = [8, 64]\n";
        let plan = planned(race, Changes::default());
        assert_eq!((plan.cells, plan.rounds, plan.starts), (6, [4, 4], [12, 12]));
        assert_eq!((plan.slice_s, plan.observed), (Some([0.1, 0.1]), 2));
        // 12 starts of 0.3 s, 24 times connected for 0.1 s and 5 blocks; 2 observed warm-ups of 2 s.
        let [least, most] = plan.duration_s;
        assert!((least - (3.6 + 2.4 + 12.0 + 4.0)).abs() < 1e-9, "{least}");
        // 12 starts of 2 s, with 1 s of warm-up; 24 times 0.5 s and 33 blocks; 6 s each, and 1.5 s under the second load.
        assert!((most - (36.0 + 12.0 + 79.2 + 12.0 + 3.0)).abs() < 1e-9, "{most}");
    }

    #[test]
    fn a_time_limit_ends_a_duel_after_three_lives_at_least() {
        let race = "contenders = ['epoll', 'poll']\nslice = '100ms'\nwarm_up = '0s'\nsettle = '0s'\n\
                    [[load]]\n";
        let planned = |seconds| {
            let time = Some(Duration::from_secs(seconds));
            let changes = Changes { precision: Some(0.01), time, ..Changes::default() };
            let plan = planned(race, changes);
            (plan.rounds, plan.duration_s)
        };
        let (rounds, [least, most]) = planned(60);
        // A life takes 2.7 s at least.
        assert_eq!(rounds, [3, 23]);
        assert!((least - 9.0 * 0.9).abs() < 1e-9 && (most - 60.0).abs() < 1e-9, "{least} {most}");
        // Three lives of three contenders that take 2 s to start, 0.5 s to connect, and 33 slices.
        let (_, [least, most]) = planned(1);
        assert!((least - 8.1).abs() < 1e-9 && (most - 9.0 * 5.8).abs() < 1e-9, "{least} {most}");
    }

    #[test]
    fn a_pilot_is_within_the_time_limit() {
        let race = "contenders = ['epoll', 'poll']\nslice = '100ms'\nwarm_up = '0s'\nsettle = '0s'\n\
                    [[load]]\nrate = '60% of slowest'\n";
        let of = |seconds| {
            let time = Some(Duration::from_secs(seconds));
            let plan = planned(race, Changes { precision: Some(0.01), time, ..Changes::default() });
            (plan.pilot_starts, plan.rounds, plan.duration_s)
        };
        let (starts, rounds, [least, most]) = of(120);
        // Each pilot takes 2.6 s at least, so 114.8 s are left for lives, which take 2.7 s at least.
        assert_eq!((starts, rounds), (2, [3, 43]));
        assert!(
            (least - (8.1 + 5.2)).abs() < 1e-9 && (most - 120.0).abs() < 1e-9,
            "{least} {most}"
        );
        // Three lives may take longer than is left: the pilots take at most a quarter of the limit.
        let (_, _, [_, most]) = of(60);
        assert!((most - (9.0 * 5.8 + 15.0)).abs() < 1e-9, "{most}");
    }

    #[test]
    fn a_load_that_exceeds_a_stated_limit_is_not_started() {
        let race = "contenders = ['select', 'null']\nbaseline = 'select'\ntwin_of = 'nobody'\n\
                    rounds = 1\n[[load]]\nconnections = [8, 5000]\n";
        let plan = planned(race, Changes::default());
        assert_eq!((plan.cells, plan.starts), (3, [2, 2]));
        assert_eq!(plan.cannot_hold.len(), 1);
        assert!(plan.cannot_hold[0].starts_with("select at 5000 conn: select states a limit"));
        let at_share = format!("{race}rate = '50% of slowest'\n");
        assert_eq!(planned(&at_share, Changes::default()).pilot_starts, 1, "nor is its pilot");
    }
}
