//! A race as requested, and the machine that it runs on.

pub(crate) mod age;
pub(crate) mod dry_run;
pub(crate) mod fingerprint;
pub(crate) mod pilot;
mod pilot_pass;
pub(crate) mod race;
pub(crate) mod running;
pub(crate) mod server_machine;
pub(crate) mod setup;
pub(crate) mod skipped;
pub(crate) mod topology;
