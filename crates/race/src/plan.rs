//! The dry run: what a race would run and how long it would take, without starting anything.

use crate::{
    contest::Contest,
    entrant::{Entrant, EntrantError},
    pilot,
    rate::Paces,
};
use regatta_judge::LEAST_PASSES;
use regatta_record::{Asked, FORMAT, LoadShape, RacePlan};

/// Seconds that a start takes in addition to warm-up and window: starting the contender, connecting,
/// stopping. The usual minimum and maximum: 0.3 s for a built-in contender on an idle machine of two
/// CPUs, 2 s for a runtime such as the JVM or for thousands of connections.
const BESIDE_S: [f64; 2] = [0.3, 2.0];

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
    let raced = || each().filter(|(entrant, load)| entrant.cannot_hold(*load).is_none());
    let cells = raced().count() as u32;
    let timed = raced().filter(|(_, load)| !load.is_counted()).count() as f64;
    let is_twin = |entrant: &Entrant| asked.twin().is_some_and(|twin| twin == entrant.name);
    let is_seen = |load: &LoadShape| asked.settle_s > 0.0 && !load.is_counted();
    let observed = raced().filter(|(one, load)| is_seen(load) && !is_twin(one)).count() as u32;
    let ranked = entrants.iter().filter(|entrant| !asked.is_reference(&entrant.name)).count();
    let pilot_starts = (pilot_loads.len() * ranked) as u32;
    let fewest =
        if asked.precision.is_some() { LEAST_PASSES.min(asked.rounds) } else { asked.rounds };
    let rounds = [fewest, asked.rounds];
    let starts = rounds.map(|rounds| pilot_starts + rounds * cells);
    let duration_s = [0, 1].map(|end| {
        // The warm-up ends early once the load is steady.
        let warm_up = [0.0, asked.warm_up_s][end];
        let pilot_warm_up = warm_up.min(pilot::WINDOW_S);
        // A third of the time is enough if the cost is steady; at most all of it is needed, twice.
        let observation =
            [asked.settle_s / 3.0 + BESIDE_S[0], 2.0 * (asked.settle_s + BESIDE_S[1])];
        f64::from(observed) * observation[end]
            + f64::from(rounds[end]) * (timed * (warm_up + asked.window_s))
            + f64::from(pilot_starts) * (pilot_warm_up + pilot::WINDOW_S)
            + f64::from(starts[end]) * BESIDE_S[end]
    });
    let counted = asked.loads.iter().filter(|load| load.is_counted()).copied().collect();
    let asked = Asked { loads: known, ..asked };
    Ok(RacePlan {
        format: FORMAT,
        asked,
        cells,
        cannot_hold,
        pilot_starts,
        observed,
        loads_at_shares,
        rounds,
        starts,
        duration_s,
        counted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Changes, prepare::built_in, prepare::prepare};
    use regatta_host::read_setup;

    fn planned(race: &str, changes: Changes) -> RacePlan {
        let contest = Contest::parse(race, "mine.toml").unwrap();
        let setup = read_setup("0", None, Vec::new());
        plan(&contest, prepare(&contest, &changes, &built_in(), setup).unwrap()).unwrap()
    }

    #[test]
    fn starts_and_time_follow_from_contenders_loads_and_rounds() {
        let race = "contenders = ['epoll', 'null']\nrounds = 4\nwindow = '2s'\nwarm_up = '1s'\nsettle = '6s'\n\
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
        let race = "contenders = ['epoll', 'poll']\n[[load]]\n\
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
    fn a_load_that_exceeds_a_stated_limit_is_not_started() {
        let race = "contenders = ['select', 'null']\nbaseline = 'select'\ntwin_of = 'nobody'\n\
                    rounds = 1\n[[load]]\nconnections = [8, 5000]\n";
        let plan = planned(race, Changes::default());
        assert_eq!((plan.cells, plan.starts), (3, [3, 3]));
        assert_eq!(plan.cannot_hold.len(), 1);
        assert!(plan.cannot_hold[0].starts_with("select at 5000 conn: select states a limit"));
    }
}
