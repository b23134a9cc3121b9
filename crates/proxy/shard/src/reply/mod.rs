//! Several replies made into one, and those of the proxy itself.

pub(crate) mod configuration;
pub(crate) mod errors;
pub(crate) mod info;
pub(crate) mod merging;
pub(crate) mod slowlog;
