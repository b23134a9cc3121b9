//! What processes use: CPU time, context switches, memory.

pub(crate) mod memory;
pub(crate) mod meter;
pub(crate) mod reading;
pub(crate) mod tree;
pub(crate) mod window;
