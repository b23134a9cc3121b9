//! The verdict on a single load, without a race.

pub(crate) mod fault;
pub(crate) mod of_load;
pub(crate) mod single;
