//! What is expected of replies (`expected`), how they are received (`receive`, `partial_reply`), and whether they are
//! right: `check` compares status, fields and content, `memo` a whole reply with one that was right.

pub(in crate::dialects) mod check;
pub(in crate::dialects) mod criteria;
pub mod expected;
mod json;
mod memo;
pub(in crate::dialects) mod partial_reply;
pub mod receive;
pub mod salted;
pub mod seen;
pub(in crate::dialects) mod thread_state;
mod words;
