//! A client: its commands in order, what it may do, and its pending replies.

pub(crate) mod blocking;
pub(crate) mod client;
pub(crate) mod identity;
pub(crate) mod input;
pub(crate) mod local;
pub(crate) mod next;
pub(crate) mod ring;
pub(crate) mod routed;
pub(crate) mod subscribed;
pub(crate) mod transaction;
pub(crate) mod unblock;
