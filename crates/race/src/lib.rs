//! (being written)

pub mod judge;
pub mod statistics;
