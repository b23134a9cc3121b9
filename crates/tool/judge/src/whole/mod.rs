//! The judgement on a whole race or on two, its gate, and when it is over (`stopping_rule`).

pub(crate) mod diff;
pub(crate) mod gate;
pub(crate) mod judgement;
pub(crate) mod latency_ratios;
pub(crate) mod scaling;
pub(crate) mod stopping_rule;
