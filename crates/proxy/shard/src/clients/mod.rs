//! What is known of a client: who it is, its transaction and subscriptions, and its pending replies.

pub(crate) mod blocking;
pub(crate) mod client;
pub(crate) mod handoff;
pub(crate) mod identity;
pub(crate) mod leased;
pub(crate) mod next;
pub(crate) mod ring;
pub(crate) mod routed;
pub(crate) mod subscribed;
