//! What is expected of replies (`expected`), how they are received (`receive`, `partial_reply`), and whether they are
//! right: `check` compares status, fields and content, `memo` a whole reply with one that was right.

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
