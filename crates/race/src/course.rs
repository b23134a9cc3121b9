//! What the rounds of a race share, and what ends it.

use regatta_host::Containment;
use regatta_record::Asked;
use std::{io, path::Path, sync::atomic::AtomicBool};

/// What every round of a race shares.
pub(crate) struct Course<'a> {
    pub asked: &'a Asked,
    /// The regatta binary, for the supervisor and for built-in contenders.
    pub binary: &'a Path,
    pub containment: Containment,
    /// Set by Ctrl-C.
    pub stop: &'a AtomicBool,
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
