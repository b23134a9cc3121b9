//! The proxy in front of real redis-servers.

mod blocked;
mod differential;
mod everyday;
mod generate;
mod regressions;
mod same;
mod subscriptions;
mod transactions;
mod unread;
