//! Races: reads race files and command-line overrides, runs the rounds one after the other, and
//! writes the result directory. `regatta-host` starts and watches contenders; `regatta-judge`
//! interprets the rounds.
//!
//! This crate knows servers only by their manifests and never links one.

mod adapter;
mod backend;
mod beside;
mod canned_reply;
mod choice;
mod command;
mod contender;
mod contest;
mod context;
mod duel;
mod ended;
mod entrant;
mod events;
mod events_file;
mod fingerprint;
#[cfg(test)]
mod fixtures;
mod hash_file;
mod heads;
mod launches;
mod lines_of_code;
mod loads;
mod manifest;
mod nearest;
mod observe;
mod observer;
mod own;
mod pilot;
mod placeholders;
mod plan;
mod prepare;
mod processes;
mod race;
mod rate;
mod reply_seen;
mod round;
mod single;
mod sources;
mod split_loads;
mod start;
mod store;
mod under_load;
mod warm;

pub mod bundled;
pub mod capacity;

pub use adapter::Adapter;
pub use backend::Backend;
pub use contender::{Contender, ContenderError};
pub use contest::{Contest, ContestError, PublishedFigure};
pub use context::MachineError;
pub use ended::RaceError;
pub use entrant::EntrantError;
pub use events::{Events, unix_ms};
pub use events_file::StoredEvents;
pub use fingerprint::{ChangedError, check_can_resume, fingerprint};
pub use launches::RoleCpus;
pub use lines_of_code::lines_of_code;
pub use loads::{All, CoreCount, Loads};
pub use manifest::{Limits, Manifest, WORKLOADS};
pub use observer::read_usage;
pub use own::{OwnLoad, OwnRace, OwnRaceError};
pub use pilot::{PilotError, pilot};
pub use placeholders::{BackendPorts, UnknownPlaceholder, Values};
pub use plan::plan;
pub use prepare::{Changes, PrepareError, built_in, peers_folder, prepare};
pub use processes::{load_processes, processes_in_words};
pub use race::run;
pub use rate::Rate;
pub use single::judge_load;
pub use split_loads::split_loads;
pub use store::{Store, StoreError};
pub use warm::WarmUpObserver;
