//! Plays simulated histories on all CPUs. A history is a function of its number, its seed.

use std::{
    env,
    fmt::Debug,
    ops::Range,
    panic::{self, AssertUnwindSafe},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Instant,
};

/// Counts of what happened in histories, e.g. made by [`seen!`](crate::seen).
pub trait Counts: Debug + Default + Send {
    /// Adds those of other histories.
    fn add(&mut self, other: &Self);
}

impl Counts for () {
    fn add(&mut self, (): &()) {}
}

impl<const N: usize> Counts for [usize; N]
where
    [usize; N]: Default,
{
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(sum, one)| *sum += one);
    }
}

/// Makes `Seen`, the counts of these events.
#[macro_export]
macro_rules! seen {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// How often each event occurred, over all histories.
        #[derive(Clone, Debug, Default)]
        pub struct Seen { $($(#[$doc])* pub $name: u64),* }

        impl $crate::histories::Counts for Seen {
            fn add(&mut self, other: &Seen) {
                $(self.$name += other.$name;)*
            }
        }

        impl Seen {
            /// An event that never occurs is not tested.
            pub fn assert_everything_happened(&self) {
                $(assert!(self.$name > 0, concat!("this never happened: ", stringify!($name)));)*
            }
        }
    };
}

/// A history that failed: its seed, and why.
pub type Failed = (u64, String);

/// Plays the histories of these seeds on all CPUs, until one fails. Returns the failed history with the lowest seed, and
/// the counts of all that were played.
///
/// Seeds are taken in their order, and a history that was begun is finished: so all with a lower seed have not failed.
pub fn run<C: Counts>(
    seeds: Range<u64>,
    history: impl Fn(u64, &mut C) -> Result<(), String> + Sync,
) -> (Option<Failed>, C) {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut counts = C::default();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= seeds.end {
                return (None, counts);
            }
            let ended = panic::catch_unwind(AssertUnwindSafe(|| history(seed, &mut counts)));
            if let Err(why) = ended.unwrap_or_else(|_| Err("it panics".into())) {
                next.store(seeds.end, Relaxed);
                return (Some((seed, why)), counts);
            }
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(2, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = (None::<Failed>, C::default());
        for worker in workers {
            let (failed, counts) = worker.join().expect("panics of histories are caught");
            all.1.add(&counts);
            all.0 = all.0.into_iter().chain(failed).min();
        }
        all
    })
}

/// Plays this many histories, and prints how long that took, and the counts, which it returns; or, if this variable of the
/// environment has the seed of one, only that, and returns `None`.
///
/// # Panics
/// Panics with the lowest seed of a history that fails.
pub fn check<C: Counts>(
    variable: &str,
    count: u64,
    history: impl Fn(u64, &mut C) -> Result<(), String> + Sync,
) -> Option<C> {
    let one = only(variable);
    let began = Instant::now();
    let (failed, counts) = run(one.map_or(0..count, |seed| seed..seed + 1), history);
    if let Some((seed, why)) = failed {
        panic!("{variable}={seed}: {why}");
    }
    if one.is_some() {
        return None;
    }
    // Read by scripts/acceptance.
    println!("\nhistories: {count} in {:.1} s\n{counts:#?}", began.elapsed().as_secs_f64());
    Some(counts)
}

/// Plays histories with a planted fault until one fails, and prints its number.
///
/// # Panics
/// Panics if the first `within` do not fail.
pub fn find<C: Counts>(
    fault: impl Debug,
    within: u64,
    history: impl Fn(u64, &mut C) -> Result<(), String> + Sync,
) {
    let (failed, _) = run(0..within, history);
    let (seed, why) = failed.unwrap_or_else(|| panic!("{fault:?} is not found"));
    // Read by scripts/acceptance.
    println!("\nfault: {fault:?} in history {}: {why}", seed + 1);
}

/// The seed of the only history to be played, if this variable of the environment has it.
///
/// # Panics
/// Panics if it is no number.
pub fn only(variable: &str) -> Option<u64> {
    let seed = env::var(variable).ok()?;
    Some(seed.parse().unwrap_or_else(|_| panic!("{variable} must be a number; it is {seed:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, atomic::AtomicBool};

    #[test]
    fn the_failed_history_with_the_lowest_seed_is_returned_although_a_later_one_fails_first() {
        let is_alone = thread::available_parallelism().is_ok_and(|threads| threads.get() == 1);
        let later_failed = AtomicBool::new(is_alone);
        let (failed, [played]) = run(0..1_000, |seed, played: &mut [usize; 1]| {
            played[0] += 1;
            while seed == 20 && !later_failed.load(Relaxed) {
                thread::yield_now();
            }
            later_failed.fetch_or(seed > 20, Relaxed);
            if seed >= 20 { Err(format!("of {seed}")) } else { Ok(()) }
        });
        assert_eq!(failed, Some((20, "of 20".to_owned())));
        assert!((21..1_000).contains(&played), "{played}");
    }

    #[test]
    fn each_history_is_played_once() {
        let all = Mutex::new(Vec::new());
        let (failed, [played]) = run(5..500, |seed, played: &mut [usize; 1]| {
            played[0] += 1;
            all.lock().unwrap().push(seed);
            Ok(())
        });
        let mut all = all.into_inner().unwrap();
        all.sort_unstable();
        assert_eq!((failed, played, all), (None, 495, (5..500).collect()));
    }

    #[test]
    fn a_history_that_panics_has_failed() {
        let history = |seed, (): &mut ()| if seed == 3 { panic!("of 3") } else { Ok(()) };
        assert_eq!(run(0..9, history).0, Some((3, "it panics".to_owned())));
    }

    #[test]
    #[should_panic(expected = "NO_SUCH_VARIABLE=7: of 7")]
    fn a_check_names_the_seed_that_replays_the_failed_history() {
        let history = |seed, (): &mut ()| if seed < 7 { Ok(()) } else { Err(format!("of {seed}")) };
        check("NO_SUCH_VARIABLE", 100, history);
    }

    #[test]
    #[should_panic(expected = "\"nothing\" is not found")]
    fn a_fault_that_no_history_finds_is_not_found() {
        find("nothing", 100, |_, (): &mut ()| Ok(()));
    }
}
