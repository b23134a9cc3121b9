//! Loads: their shape, the messages to and from a load process, and the result of `regatta load`.

pub(crate) mod ask;
pub(crate) mod beside;
pub(crate) mod drive;
pub(crate) mod heads;
pub(crate) mod load;
pub(crate) mod report;
pub(crate) mod shape;
pub(crate) mod slow;
pub(crate) mod stage;
pub(crate) mod stored;
