//! The proxy in front of real redis-servers.

mod differential;
mod everyday;
mod generate;
mod memory;
mod refusals;
mod regressions;
mod same;
mod unread;
