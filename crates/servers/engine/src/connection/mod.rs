//! One connection: its lifecycle, its limits and deadlines, and the order of its replies.

pub(crate) mod conn;
pub(crate) mod flow;
pub(crate) mod job;
pub(crate) mod limits;
pub(crate) mod link;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod slots;
pub(crate) mod time;
pub(crate) mod timers;
