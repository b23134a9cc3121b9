//! The decision for one request: which nodes receive it, who answers it, or why it is refused.
//!
//! The rule behind all decisions: a client gets the reply that a single Redis with all keys would
//! give, or an error that states the reason. It never gets a different reply.
//!
//! Scripts cannot be checked. A script may use keys that were not passed to it. Redis requires all
//! keys to be passed; otherwise, the script sees only the keys of its node. It may also publish to a
//! channel, which reaches only the subscribers on its node.
//!
//! A request that may write is never sent to a node that does not own its keys, even if it is
//! malformed, because the node may accept it.

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
