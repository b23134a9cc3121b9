//! The machine: its CPUs, settings, ports and sockets, and what else keeps it busy.

pub(crate) mod cpus;
pub(crate) mod diag;
pub(crate) mod idle;
pub(crate) mod machine_clock;
pub(crate) mod machine_meter;
pub(crate) mod on_path;
pub(crate) mod port;
pub(crate) mod priority;
pub(crate) mod settings;
pub(crate) mod setup;
pub(crate) mod sockets;
pub(crate) mod spoken;
pub(crate) mod steal;
pub(crate) mod topology;
