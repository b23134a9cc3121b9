//! What the proxy of a core does at each event of its clients and nodes.

pub(crate) mod budget;
mod cluster;
mod described;
mod drain;
mod engine;
pub(crate) mod forward;
mod health;
mod input;
mod lease;
mod local;
mod longest;
mod node_lost;
mod observation;
mod reload;
mod replies;
mod sentinel;
pub(crate) mod state;
mod subscriptions;
mod transaction;
pub(crate) mod unblock;
mod users;
