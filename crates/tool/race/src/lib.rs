//! Races: reads race files and command-line overrides, runs duels and rounds, and writes the result directory.
//! `regatta-host` starts and watches contenders; `regatta-judge` interprets the rounds.
//!
//! This crate knows servers only by their manifests and never links one.
//!
//! # Where things are
//!
//! - `contenders`: what a contender is: its manifest, its command, and what is started for it.
//! - `ask`: the race file, the command line and this machine, combined into the race as requested.
//! - `dry_run`: what that race would run, for `--dry-run`.
//! - `driving`: one contender under one load, from its start to its stop; and the pilot pass.
//! - `duel`: contenders that are alive together and take turns.
//! - `race`: all duels and rounds of a race, pass after pass.
//! - `capacity`: how much load one contender sustains.
//! - `results`: the result directory.
//!
//! - `site`: where contenders run: on this machine, or on another one.
//!
//! `driving` imports nothing of `duel`, and neither of them anything of `race`. `context` is what the rounds of a race
//! share, and `round_end` says how they end.

mod ask;
mod contenders;
mod context;
mod driving;
mod dry_run;
mod duel;
#[cfg(test)]
mod fixtures;
mod machine_error;
mod race;
mod results;
mod round_end;
mod site;

pub mod capacity;

pub use ask::{
    contest::{Contest, ContestError, PublishedFigure},
    entrant::EntrantError,
    fingerprint::{ChangedError, check_can_resume, fingerprint},
    loads::{All, CoreCount, Loads},
    own::{OwnLoad, OwnRace, OwnRaceError},
    prepare::{Changes, PrepareError, built_in, peers_folder, prepare},
    rate::Rate,
};
pub use contenders::{
    adapter::Adapter,
    backend::Backend,
    bundled,
    find_contenders::{Contender, ContenderError},
    in_container::{Mount, Seccomp, Ulimit},
    launches::RoleCpus,
    lines_of_code::lines_of_code,
    manifest::{Limits, Manifest, WORKLOADS},
    placeholders::{BackendPorts, UnknownPlaceholder, Values},
};
pub use context::Machines;
pub use driving::{
    load_processes::{load_processes, processes_in_words, split_loads},
    pilot::{PilotError, pilot},
    readings::read_usage,
    single::judge_load,
    warm::WarmUpObserver,
};
pub use dry_run::plan;
pub use machine_error::MachineError;
pub use race::run;
pub use results::{
    events::{Events, unix_ms},
    events_file::StoredEvents,
    store::{Store, StoreError},
};
pub use round_end::RaceError;
pub use site::{agent::AgentSite, server::Server};
