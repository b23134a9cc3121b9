//! The proxy in front of real redis-servers.

mod configuration;
mod differential;
mod everyday;
mod protocol;
mod regressions;
mod scripts;
mod split_writes;
mod unread;
