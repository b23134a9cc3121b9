//! What is expected of replies, how they are received, and whether they are right.

mod check;
mod criteria;
pub mod expected;
mod json;
mod memo;
mod partial_reply;
pub mod receive;
pub mod salted;
pub mod seen;
mod thread_state;
mod words;
