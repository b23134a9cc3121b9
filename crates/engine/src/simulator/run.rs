//! Running many histories, and one alone.

use super::{Coverage, Fault, Scenario, VISITS, world::World};
use std::{env, time::Instant};

/// A history that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its number.
    pub seed: u64,
    /// What went wrong.
    pub what: String,
}

/// Runs the histories of these numbers, until one fails.
pub fn run<S: Scenario>(
    scenario: S,
    seeds: std::ops::Range<u64>,
    fault: Option<Fault>,
) -> (Coverage, Result<(), Failure>) {
    let mut world = World::new(scenario, fault, false);
    for seed in seeds {
        if let Err(what) = world.run(seed) {
            return (world.coverage, Err(Failure { seed, what }));
        }
    }
    (world.coverage, Ok(()))
}

/// The history that the environment asks for: it is run alone, and printed.
fn replayed<S: Scenario>(scenario: impl FnOnce() -> S, fault: Option<Fault>) -> bool {
    let Ok(seed) = env::var("SIMULATION_SEED") else { return false };
    let seed = seed.parse().expect("SIMULATION_SEED must be the number of a history");
    println!("history {seed} of `{}`:", S::NAME);
    let what = World::new(scenario(), fault, true).run(seed);
    assert_eq!(what, Ok(()), "history {seed} of `{}`", S::NAME);
    true
}

/// Runs so many histories, and prints what they visited. Panics at the first that fails, with its
/// number; if histories are too small; and if something was not visited, except what the scenario
/// never visits. With `SIMULATION_SEED` set, runs that history alone and prints its events.
pub fn assert_holds<S: Scenario>(scenario: impl Fn() -> S, histories: u64) {
    if replayed(&scenario, None) {
        return;
    }
    let began = Instant::now();
    let (mut coverage, result) = run(scenario(), 0..histories, None);
    if let Err(Failure { seed, what }) = result {
        panic!(
            "history {seed} of `{}`: {what}\nSIMULATION_SEED={seed} runs it alone and prints it",
            S::NAME
        );
    }
    let took = began.elapsed();
    let (connections, events) = coverage.medians();
    println!(
        "{}: {histories} histories in {:.1} s ({:.0} a second), with {connections} connections and \
         {events} events (medians)\n{coverage}",
        S::NAME,
        took.as_secs_f64(),
        histories as f64 / took.as_secs_f64()
    );
    assert!(connections >= 3 && events >= 50, "the histories of `{}` are too small", S::NAME);
    for &visit in VISITS {
        let never = S::NEVER.contains(&visit);
        assert_eq!(coverage.of(visit) == 0, never, "visits of {visit:?} by `{}`", S::NAME);
    }
}

/// Plants a fault, and panics if it is not found within so many histories. Returns the number of the
/// history that found it.
pub fn assert_finds<S: Scenario>(scenario: impl Fn() -> S, fault: Fault, within: u64) -> u64 {
    let (_, result) = run(scenario(), 0..within, Some(fault));
    match result {
        Err(Failure { seed, what }) => {
            let (_, without) = run(scenario(), seed..seed + 1, None);
            assert_eq!(without, Ok(()), "it fails without the fault too");
            println!("{}: {fault:?} is found in history {seed}: {what}", S::NAME);
            seed
        }
        Ok(()) => panic!("{fault:?} is not found within {within} histories of `{}`", S::NAME),
    }
}
