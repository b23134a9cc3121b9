//! HTTP/1.1 as the load speaks it: which requests, what their replies are to be like, and whether one
//! is. How bytes become replies is the cursor's business (`cursor::http`).

mod check;
mod expected;
mod json;
mod memo;
pub mod rules;
mod words;
mod workload;

pub(crate) use check::{Checker, head};
pub(crate) use expected::Replies;
pub use expected::{Content, Expected, Field, Is, Member, Status, Value};
pub(crate) use memo::Right;
pub use regatta_proto::http1::Method;
pub use workload::{HttpRequest, HttpWorkload};
pub(crate) use workload::{Place, hash, hello};
