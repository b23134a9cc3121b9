//! The three ways to write a server, each implemented once.

pub mod asynchronous;
pub mod callback;
mod idle_timeout;
pub mod member;
pub mod own_connections;
pub mod sequential;

pub use callback::Connection;
