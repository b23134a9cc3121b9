//! Test engines under the simulator: sessions that post to each other, and a relay that connects to
//! other servers.

mod chat;
mod relay;
pub mod relays;
