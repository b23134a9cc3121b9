//! The network of this machine: which interface reaches an address, and what it carries.

pub(crate) mod address;
pub(crate) mod link;
pub(crate) mod netlink;
pub(crate) mod route;
