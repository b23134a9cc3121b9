//! The decision for one request: which nodes receive it, who answers it, or why it is refused.
//!
//! The rule behind all decisions: a client gets the reply that a single Redis with all keys would
//! give, or an error that states the reason. It never gets a different reply.
//!
//! One case cannot be detected: a script may use keys that were not passed to it. Redis requires
//! all keys to be passed; otherwise, the script sees only the keys of its node.

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
