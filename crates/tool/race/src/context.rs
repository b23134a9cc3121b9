//! The state that the rounds of a race share, and the errors that end a race.

use regatta_host::IdleCheck;
use regatta_record::{Asked, LoadShape};
use std::{
    io,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

/// The host that requests name. It is the same for all contenders, whatever their ports, so that all get the
/// same bytes.
pub(crate) const HOST: &str = "localhost";

/// The state that the rounds of a race share.
pub(crate) struct RaceContext<'a> {
    pub asked: &'a Asked,
    /// The regatta binary, for the supervisor and for built-in contenders.
    pub binary: &'a Path,
    /// Set by Ctrl-C.
    pub stop: &'a AtomicBool,
    /// Number of successive rounds after which the CPUs did not become idle.
    restless: AtomicU32,
}

impl<'a> RaceContext<'a> {
    pub fn new(asked: &'a Asked, binary: &'a Path, stop: &'a AtomicBool) -> RaceContext<'a> {
        RaceContext { asked, binary, stop, restless: AtomicU32::new(0) }
    }

    /// If the CPUs did not become idle after this many successive rounds, other programs keep them
    /// busy, and waiting is useless.
    const RESTLESS: u32 = 2;

    /// Checks before a round whether the CPUs of a load are idle; `None` if the machine never is.
    pub fn check_idle(&self, load: &LoadShape) -> Option<IdleCheck> {
        let is_restless = self.restless.load(Ordering::Relaxed) >= Self::RESTLESS;
        (!is_restless).then(|| IdleCheck::before(&self.asked.cpus, load))
    }

    /// Waits until these CPUs are idle again. Returns how long that took in nanoseconds, if known.
    pub fn wait_until_idle(&self, check: &IdleCheck) -> Option<u64> {
        let waited = check.after(&|| !self.stop.load(Ordering::Relaxed))?;
        match waited >= IdleCheck::LONGEST {
            true => self.restless.fetch_add(1, Ordering::Relaxed),
            false => self.restless.swap(0, Ordering::Relaxed),
        };
        Some(waited.as_nanos() as u64)
    }
}

/// A fault of the machine, not of the contender; the race cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The load could not run.
    #[error("{0}")]
    Load(#[from] regatta_load::Error),
    /// A system call failed unexpectedly.
    #[error("cannot {what}: {error}")]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}
