//! Engines that no service has yet, under the simulator: sessions that post to each other, and a relay
//! that connects to other servers.

mod chat;
mod relay;
