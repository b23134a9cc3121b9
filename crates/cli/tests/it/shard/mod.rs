//! The proxy in front of real redis-servers.

mod blocked;
mod configuration;
mod described;
mod differential;
mod drain;
mod durations;
mod everyday;
mod hot_keys;
mod memory;
mod metrics;
mod names;
mod protocol;
mod refusals;
mod regressions;
mod reload;
mod reports;
mod scripts;
mod slowlog;
mod split_writes;
mod status;
mod subscriptions;
mod tls;
mod transactions;
mod unread;
mod version;
