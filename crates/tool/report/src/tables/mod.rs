//! The tables of a race, whatever lays them out.

pub(crate) mod columns;
pub mod curves;
pub(crate) mod gate;
pub(crate) mod historic_results;
pub(crate) mod latency_ratios;
pub(crate) mod operations;
pub(crate) mod overview;
pub(crate) mod parts;
pub(crate) mod roles;
pub(crate) mod scaling;
pub(crate) mod warm_ups;
pub(crate) mod why;
