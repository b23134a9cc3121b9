//! What is observed: how long nodes take, their versions, and the keys that clients request most.

pub(crate) mod class;
pub(crate) mod clock;
pub(crate) mod durations;
pub(crate) mod hot_keys;
pub(crate) mod slow_log;
pub(crate) mod space_saving;
pub(crate) mod version;
