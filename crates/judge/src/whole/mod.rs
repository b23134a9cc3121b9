//! The judgement on a whole race or on two, its gate, and how much more there is to measure.

pub(crate) mod diff;
pub(crate) mod gate;
pub(crate) mod latency_ratios;
pub(crate) mod precision;
pub(crate) mod race;
pub(crate) mod scaling;
