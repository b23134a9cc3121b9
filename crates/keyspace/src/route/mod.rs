//! The decision for one request: which nodes get it, who answers it, or why it is refused.
//!
//! The rule behind all decisions: a client gets the answer that a single Redis with all keys would give,
//! or an error that says why not. Never another answer.
//!
//! One thing cannot be seen from a request: a script may use keys that it was not passed. Redis asks for
//! all of them to be passed; a script that does otherwise sees the keys of its node alone.

mod cursor;
mod decide;
mod decision;
mod merge;
mod plan;
mod policy;
mod refusal;
#[cfg(test)]
mod tests;

pub use cursor::Cursor;
pub use decide::{decide, is_notification};
pub use decision::{Decision, Lease, Local, Place, Route};
pub use merge::Merge;
pub use plan::{Part, Plan};
pub use refusal::{cross_slot, unsupported};
