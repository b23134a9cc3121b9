//! The proxy in front of real redis-servers.

mod differential;
mod everyday;
mod generate;
mod protocol;
mod regressions;
mod same;
mod scripts;
mod unread;
