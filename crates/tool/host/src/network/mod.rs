//! The network of this machine: which interface reaches an address, and what it carries.

pub(crate) mod link;
pub(crate) mod route;
