//! Work that a reply needs: a file and a computation, here or in another thread.

pub(crate) mod file;
pub(crate) mod job;
pub(crate) mod offload;
