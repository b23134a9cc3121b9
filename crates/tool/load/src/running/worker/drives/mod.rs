//! Drives: they decide when a load thread sends requests. One file each.

mod bounded;
mod burst;
mod churn;
mod closed;
mod open;
mod timetable;
mod turns;

pub(super) use bounded::Bounded;
pub(super) use burst::Burst;
pub(super) use churn::Churn;
pub(super) use closed::Closed;
pub(crate) use open::GRACE;
pub(super) use open::Open;
