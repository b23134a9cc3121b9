//! One contender at one load: what its rounds say, before it is compared.

pub(crate) mod latency;
pub(crate) mod little;
pub(crate) mod machine;
pub(crate) mod network;
pub(crate) mod observed;
pub(crate) mod operations;
pub(crate) mod roles;
pub(crate) mod signals;
pub(crate) mod took;
