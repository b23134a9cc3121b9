//! What sessions post to each other, and the queues of slow consumers (`backlog` decides what happens to one).

pub(crate) mod backlog;
pub(crate) mod letter;
pub(crate) mod push;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod uplink;
