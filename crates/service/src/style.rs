//! The three ways to write a server, each implemented once.

pub mod asynchronous;
pub mod callback;
pub mod member;
pub mod sequential;
mod silence;
pub mod straight;

pub use callback::Connection;
