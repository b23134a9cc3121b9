//! What is asked: the race file, the command line and this machine, combined into contenders and loads.

pub(crate) mod choice;
pub(crate) mod contest;
pub(crate) mod duels;
pub(crate) mod elsewhere;
pub(crate) mod entrant;
pub(crate) mod fingerprint;
pub(crate) mod fixed_port;
pub(crate) mod heads;
pub(crate) mod heats;
pub(crate) mod host_name;
pub(crate) mod loads;
pub(crate) mod mounted;
pub(crate) mod own;
pub(crate) mod prepare;
pub(crate) mod rate;
