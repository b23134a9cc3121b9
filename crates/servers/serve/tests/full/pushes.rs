//! The parts of the other tests that these use.

#[path = "../it/pushes/chat.rs"]
pub mod chat;
#[path = "../it/pushes/server.rs"]
pub mod server;
#[path = "../it/pushes/ticks.rs"]
mod ticks;
#[path = "../it/pushes/unread.rs"]
pub mod unread;
