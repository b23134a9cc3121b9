//! A contender while it is loaded: frozen and thawed, watched, and confined to its CPUs.

pub(crate) mod affinity;
pub(crate) mod aside;
pub(crate) mod freezer;
pub(crate) mod watched;
