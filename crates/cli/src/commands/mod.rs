//! The subcommands, one module each.

pub(crate) mod agent;
pub(crate) mod capacity;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod fleet;
pub(crate) mod hub;
pub(crate) mod import;
pub(crate) mod load;
pub(crate) mod manual;
pub(crate) mod peers;
pub(crate) mod race;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod shard;
