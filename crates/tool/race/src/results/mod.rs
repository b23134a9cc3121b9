//! The result directory: its rounds and its events.

pub(crate) mod events;
pub(crate) mod events_file;
pub(crate) mod store;
