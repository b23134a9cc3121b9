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
//!
//! # Where things are
//!
//! - `policy`: the rule of each command, e.g. that MGET is split; `decide`: applies it to a request.
//! - `key_assignment`: which keys go to which node; `decision`: the types; `cursor`: those of SCAN.
//! - `merge`: how replies of several nodes become one; `refusal`: the texts of errors.

mod cursor;
mod decide;
mod decision;
mod key_assignment;
mod merge;
mod policy;
mod refusal;
#[cfg(test)]
mod tests;

pub use cursor::Cursor;
pub use decide::{decide, decide_described, is_notification};
pub use decision::{Decision, Lease, Local, Place, Route};
pub use key_assignment::{Part, Plan};
pub use merge::Merge;
pub use refusal::{cross_slot, unsupported};
