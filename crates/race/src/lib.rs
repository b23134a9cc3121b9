//! The referee: starts contenders, watches them, leaves nothing of them behind, and judges what
//! the rounds say.
//!
//! Servers are known by manifests alone; this crate never links one.

mod aside;
mod beside;
mod canned_reply;
mod cgroup;
mod cgroup_limit;
mod clock;
mod contender;
mod contest;
mod entrant;
mod events;
mod events_file;
mod fault;
mod hash_file;
mod lines_of_code;
mod loads;
mod manifest;
mod memory;
mod on_path;
mod orphans;
mod output;
mod pilot;
mod placeholders;
mod port;
mod prepare;
mod probe;
mod process;
mod race;
mod rate;
mod ready;
mod round;
mod running;
mod setup;
mod start;
mod steal;
mod stop_report;
mod store;
mod supervise;
mod under_load;
mod usage;
mod watched;
mod wire;

pub mod capacity;
pub mod judge;
pub mod statistics;

pub use cgroup::{Cgroup, Containment, Version as CgroupVersion};
pub use cgroup_limit::{cpu_limit, memory_limit, process_limit};
pub use contender::{Contender, ContenderError};
pub use contest::{Contest, ContestError, Once};
pub use entrant::EntrantError;
pub use events::{Events, unix_ms};
pub use events_file::StoredEvents;
pub use lines_of_code::lines_of_code;
pub use loads::{All, CoreCount, Loads};
pub use manifest::{Adapter, Limits, Manifest, Support, WORKLOADS};
pub use memory::Memory;
pub use on_path::{find_on_path, search_path};
pub use pilot::{PilotError, pilot};
pub use placeholders::{UnknownPlaceholder, Values};
pub use port::{free_port, is_taken};
pub use prepare::{Changes, PrepareError, built_in, peers_folder, prepare};
pub use process::Process;
pub use race::{RaceError, run};
pub use ready::{NotReady, Ready};
pub use round::MachineError;
pub use running::{Running, StartError, SupervisorError};
pub use setup::read_setup;
pub use stop_report::{Ending, StopReport};
pub use store::{Store, StoreError};
pub use supervise::supervise;
pub use usage::{Observed, Spent, Usage};
pub use wire::{Exited, Launch, Status};
