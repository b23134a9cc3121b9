//! The proxy in front of real redis-servers.

mod differential;
mod everyday;
mod protocol;
mod regressions;
mod scripts;
mod unread;
