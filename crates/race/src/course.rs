//! What the rounds of a race share, and what ends it.

use regatta_host::{Containment, Rest};
use regatta_record::{Asked, LoadShape};
use std::{
    io,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

/// What every round of a race shares.
pub(crate) struct Course<'a> {
    pub asked: &'a Asked,
    /// The regatta binary, for the supervisor and for built-in contenders.
    pub binary: &'a Path,
    pub containment: Containment,
    /// Set by Ctrl-C.
    pub stop: &'a AtomicBool,
    /// After how many rounds in a row the CPUs did not come to rest.
    pub restless: AtomicU32,
}

impl Course<'_> {
    /// So many rounds in a row are the machine's doing, which nobody need wait for.
    const RESTLESS: u32 = 2;

    /// Looks whether the CPUs of a load are at rest, unless the machine never is.
    pub fn rest(&self, load: &LoadShape) -> Option<Rest> {
        let is_restless = self.restless.load(Ordering::Relaxed) >= Self::RESTLESS;
        (!is_restless).then(|| Rest::before(&self.asked.cpus, load))
    }

    /// Waits until they are again. How long that took, nanoseconds, if it can be told.
    pub fn come_to_rest(&self, rest: &Rest) -> Option<u64> {
        let waited = rest.after(&|| !self.stop.load(Ordering::Relaxed))?;
        match waited >= Rest::LONGEST {
            true => self.restless.fetch_add(1, Ordering::Relaxed),
            false => self.restless.swap(0, Ordering::Relaxed),
        };
        Some(waited.as_nanos() as u64)
    }
}

/// The machine, not the contender, is at fault; the race cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The load refused to run.
    #[error("{0}")]
    Load(#[from] regatta_load::Error),
    /// A system call failed that should not.
    #[error("cannot {what}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}
