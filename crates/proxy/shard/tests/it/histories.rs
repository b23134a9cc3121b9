//! Runs seeded histories on all cores.

use std::{
    env,
    fmt::Debug,
    panic::{self, AssertUnwindSafe},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

/// Counts of what happened in histories: made by [`seen!`].
pub trait Counts: Debug + Default + Send {
    /// Adds those of others.
    fn add(&mut self, other: &Self);

    /// An event that never occurs is not tested.
    fn assert_everything_happened(&self);
}

/// Makes `Seen`, the counts of these events.
macro_rules! seen {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// How often each event occurred, over all histories.
        #[derive(Clone, Debug, Default)]
        pub struct Seen { $($(#[$doc])* pub $name: u64),* }

        impl $crate::histories::Counts for Seen {
            fn add(&mut self, other: &Seen) {
                $(self.$name += other.$name;)*
            }

            fn assert_everything_happened(&self) {
                $(assert!(self.$name > 0, concat!("this never happened: ", stringify!($name)));)*
            }
        }
    };
}

pub(crate) use seen;

/// Runs the histories of these seeds on all cores, until one fails. Returns the lowest failing seed found with its
/// error, and the counts of all events.
pub fn run<C: Counts>(
    seeds: std::ops::Range<u64>,
    history: impl Fn(u64, &mut C) -> Result<(), String> + Sync,
) -> (Option<(u64, String)>, C) {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut seen = C::default();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= seeds.end {
                return (None, seen);
            }
            let ended = panic::catch_unwind(AssertUnwindSafe(|| history(seed, &mut seen)));
            if let Err(found) = ended.unwrap_or_else(|_| Err("it panics".into())) {
                next.store(seeds.end, Relaxed);
                return (Some((seed, found)), seen);
            }
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(2, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = (None::<(u64, String)>, C::default());
        for worker in workers {
            let (found, seen) = worker.join().expect("a history does not panic");
            all.1.add(&seen);
            all.0 = all.0.into_iter().chain(found).min();
        }
        all
    })
}

/// The seed of the one history to be run, if this variable of the environment has it.
pub fn only(variable: &str) -> Option<u64> {
    let seed = env::var(variable).ok()?;
    Some(seed.parse().unwrap_or_else(|_| panic!("{variable} must be a number")))
}
