//! Several replies made into one, and those of the proxy itself.

pub(crate) mod configuration;
pub(crate) mod errors;
pub(crate) mod merging;
