//! The machine of a race: starts contenders, stops them without leaving processes behind, and reads
//! the usage of contenders and machine in between.
//!
//! A contender's processes run below a supervisor, which is this program's `supervise`. They are
//! identified by their ancestry, by a control group if one is available, and by a mark in their
//! environment. This crate does not judge.
//!
//! # Where things are
//!
//! - `contender`: the life of a contender: start, readiness, output, stop, and its supervisor.
//! - `under_load`: freezing it, watching it, checking that it stays on its CPUs.
//! - `usage`: the CPU time and memory of its processes.
//! - `process`: processes as `/proc` describes them.
//! - `group`: control groups.
//! - `network`: what an interface carries, and what TCP loses.
//! - `machine`: CPUs, settings, ports and sockets, and what else keeps the machine busy.

mod contender;
mod group;
mod machine;
mod network;
mod process;
mod under_load;
mod usage;
pub use contender::{
    attached::{NotFound, change_of, find_server},
    container::{
        Container, ContainerOptions, InContainer, container_engine, engine_trouble, has_image,
        image_id,
    },
    ownership::{ForeignProcess, Ownership},
    ready::{NotReady, Ready},
    roles::{Ended, NotStarted, Role, RoleLaunch, Roles},
    running::{Running, StartError, SupervisorError},
    running_url::{RunningUrl, is_url, named_url},
    stop_report::{Ending, StopReport, background, last_words},
    supervise::supervise,
    ulimits::ulimit_names,
    wire::{Exited, Launch},
};
pub use group::{
    cgroup::{Cgroup, Containment, Version as CgroupVersion},
    cgroup_limit::{cpu_limit, memory_limit, process_limit},
};
pub use machine::{
    cpus::{allowed_cpus, allowed_cpus_of},
    idle::IdleCheck,
    machine_clock::MachineClock,
    machine_meter::MachineMeter,
    on_path::{find_on_path, is_executable, search_path},
    port::{UntilDeadline, free_port, is_taken, time_left},
    priority::{priority, raise_priority, raise_session},
    settings::Settings,
    setup::{meminfo_bytes, read_setup},
    spoken::look as what_is_spoken,
    steal::Steal,
    topology::{DEVICES, cores},
};
pub use network::link::LinkMeter;
pub use process::{
    listed::Listed,
    status::Status,
    tree::{Process, cpu_ticks},
};
pub use under_load::{
    aside::Aside,
    freezer::{Freezer, meters},
    readings::Readings,
    stray_threads::{Confined, StrayThread},
};
pub use usage::{
    memory::Memory,
    meter::Meter,
    tree::{ObservedProcesses, Spent, Usage},
    window::{UsageWindow, spent_together},
};
