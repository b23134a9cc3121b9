//! Loads: their shape, and the orders to load processes.

pub(crate) mod ask;
pub(crate) mod drive;
pub(crate) mod heads;
pub(crate) mod machines;
pub(crate) mod shape;
