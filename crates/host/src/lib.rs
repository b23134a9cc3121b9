//! The machine of a race: starts contenders, stops them without leaving processes behind, and reads
//! the usage of contenders and machine in between.
//!
//! A contender's processes run below a supervisor, which is this program's `supervise`. They are
//! identified by their ancestry, by a control group if one is available, and by a mark in their
//! environment. This crate does not judge.

mod affinity;
mod aside;
mod attached;
mod cgroup;
mod cgroup_limit;
mod clock;
mod container;
mod cpus;
mod diag;
mod freezer;
mod held;
mod idle;
mod kill;
mod listed;
mod machine_clock;
mod memory;
mod meter;
mod on_path;
mod orphans;
mod output;
mod ownership;
mod port;
mod priority;
mod process;
mod reading;
mod ready;
mod roles;
mod running;
mod running_url;
mod scheduled;
mod settings;
mod setup;
mod sockets;
mod spoken;
mod start;
mod status;
mod steal;
mod stop_report;
mod supervise;
mod topology;
mod usage;
mod watched;
mod window;
mod wire;

pub use affinity::{Confined, StrayThread};
pub use aside::Aside;
pub use attached::{NotFound, change_of, find_server};
pub use cgroup::{Cgroup, Containment, Version as CgroupVersion};
pub use cgroup_limit::{cpu_limit, memory_limit, process_limit};
pub use container::{Container, container_engine, engine_trouble, image_id};
pub use cpus::allowed_cpus;
pub use freezer::{Freezer, meters};
pub use idle::IdleCheck;
pub use listed::Listed;
pub use machine_clock::MachineClock;
pub use memory::Memory;
pub use meter::Meter;
pub use on_path::{find_on_path, is_executable, search_path};
pub use ownership::{ForeignProcess, Ownership};
pub use port::{free_port, is_taken};
pub use priority::Priority;
pub use process::Process;
pub use ready::{NotReady, Ready};
pub use roles::{Ended, NotStarted, Role, RoleLaunch, Roles};
pub use running::{Running, StartError, SupervisorError};
pub use running_url::{RunningUrl, is_url, named_url};
pub use settings::Settings;
pub use setup::read_setup;
pub use spoken::look as what_is_spoken;
pub use status::Status;
pub use stop_report::{Ending, StopReport, background, last_words};
pub use supervise::supervise;
pub use topology::{DEVICES, cores};
pub use usage::{Observed, Spent, Usage};
pub use watched::Watched;
pub use window::{UsageWindow, spent_together};
pub use wire::{Exited, Launch};
