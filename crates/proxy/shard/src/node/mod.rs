//! The nodes, connections to them, and why one is lost.

pub(crate) mod loss;
pub(crate) mod nodes;
pub(crate) mod pools;
pub(crate) mod upstream;
