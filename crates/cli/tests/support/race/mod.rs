//! Races in a folder of their own.

pub mod course;
pub mod started;
pub mod terminal;
pub mod wrong_reply;
