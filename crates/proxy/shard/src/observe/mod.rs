//! What is observed of the nodes: how long they take, and their versions.

pub(crate) mod class;
pub(crate) mod clock;
pub(crate) mod durations;
pub(crate) mod heads;
pub(crate) mod slow_log;
pub(crate) mod version;
