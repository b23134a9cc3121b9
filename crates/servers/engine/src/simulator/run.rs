//! Runs many histories, or a single one.

use super::{Coverage, Fault, Scenario, VISITS, Visit, world::World};
use std::{env, time::Instant};

/// A history that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The number of the history.
    pub seed: u64,
    /// A description of the failure.
    pub what: String,
}

/// Runs the histories of these numbers, until one fails.
pub fn run<S: Scenario>(
    scenario: S,
    seeds: impl IntoIterator<Item = u64>,
    fault: Option<Fault>,
) -> (Coverage, Result<(), Failure>) {
    let mut world = World::new(scenario, fault, false);
    for seed in seeds {
        if let Err(what) = world.run(seed) {
            return (world.coverage, Err(Failure { seed, what }));
        }
        world.coverage.counted(seed);
    }
    (world.coverage, Ok(()))
}

/// Runs and prints only the history selected by the environment, if any. Returns whether there was
/// one.
fn replayed<S: Scenario>(scenario: impl FnOnce() -> S, fault: Option<Fault>) -> bool {
    let Ok(seed) = env::var("SIMULATION_SEED") else { return false };
    let seed = seed.parse().expect("SIMULATION_SEED must be the number of a history");
    println!("history {seed} of `{}`:", S::NAME);
    let what = World::new(scenario(), fault, true).run(seed);
    assert_eq!(what, Ok(()), "history {seed} of `{}`", S::NAME);
    true
}

/// Runs this many histories and those of [`Scenario::RARE`], and prints what they visited. With `SIMULATION_SEED` set, runs only
/// that history and prints its events.
///
/// # Panics
/// Panics with the number of the first history that fails. Also panics if histories are too small,
/// if something was not visited that is not in [`Scenario::NEVER`], or if something in it was
/// visited.
pub fn assert_holds<S: Scenario>(scenario: impl Fn() -> S, histories: u64) {
    if replayed(&scenario, None) {
        return;
    }
    let began = Instant::now();
    let rare = S::RARE.iter().copied().filter(|seed| *seed >= histories);
    let (mut coverage, result) = run(scenario(), (0..histories).chain(rare), None);
    if let Err(Failure { seed, what }) = result {
        panic!(
            "history {seed} of `{}`: {what}\nSIMULATION_SEED={seed} runs and prints only this one",
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
        let never = S::NEVER.contains(&visit) || visit == Visit::Retired && !S::DRAINS;
        assert_eq!(coverage.of(visit) == 0, never, "visits of {visit:?} by `{}`", S::NAME);
    }
}

/// Injects a fault. Returns the number of the history that detects it.
///
/// # Panics
/// Panics if the fault is not detected within this many histories, or if the history that detects
/// it fails without the fault too.
pub fn assert_finds<S: Scenario>(scenario: impl Fn() -> S, fault: Fault, within: u64) -> u64 {
    let (_, result) = run(scenario(), 0..within, Some(fault));
    match result {
        Err(Failure { seed, what }) => {
            let (_, without) = run(scenario(), seed..seed + 1, None);
            assert_eq!(without, Ok(()), "it fails without the fault too");
            println!("{}: {fault:?} is detected in history {seed}: {what}", S::NAME);
            seed
        }
        Ok(()) => panic!("{fault:?} is not detected within {within} histories of `{}`", S::NAME),
    }
}
