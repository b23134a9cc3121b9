//! All contenders at one load, and how they compare.

pub(crate) mod comparison;
pub(crate) mod field;
pub(crate) mod heats;
pub(crate) mod lives;
