//! A contender while it is loaded: `readings` reads its usage and memory at each moment (`usage` says how), `freezer`
//! freezes and thaws it, `stray_threads` checks that it stays on its CPUs.

pub(crate) mod aside;
pub(crate) mod freezer;
pub(crate) mod readings;
pub(crate) mod stray_threads;
