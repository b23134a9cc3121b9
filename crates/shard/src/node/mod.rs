//! The nodes: connections to them, what is sent over which, and their health.

pub(crate) mod forward;
pub(crate) mod health;
pub(crate) mod lease;
pub(crate) mod leased;
pub(crate) mod loss;
pub(crate) mod nodes;
pub(crate) mod pools;
pub(crate) mod subscriptions;
pub(crate) mod upstream;
