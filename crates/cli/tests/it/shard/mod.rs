//! The proxy in front of real redis-servers.

mod blocked;
mod configuration;
mod described;
mod differential;
mod drain;
mod everyday;
mod memory;
mod metrics;
mod names;
mod protocol;
mod refusals;
mod regressions;
mod scripts;
mod split_writes;
mod subscriptions;
mod transactions;
mod unread;
