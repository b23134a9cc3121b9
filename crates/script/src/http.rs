//! HTTP/1.1 as the load speaks it: which requests, what their replies are to be like, and whether one
//! is. How bytes become replies is the cursor's business (`cursor::http`).

mod check;
mod expected;
mod json;
mod memo;
pub mod rules;
mod words;
mod workload;

pub use check::Checker;
pub(crate) use check::head;
pub use expected::{Content, Expected, Field, Is, Member, Replies, Status, Value};
pub(crate) use memo::Right;
pub use regatta_proto::http1::Method;
pub use workload::{HttpRequest, HttpWorkload, Place};
pub(crate) use workload::{hash, hello};
