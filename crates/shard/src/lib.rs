//! The proxy of one core: an engine between clients and the nodes. [`Sequential`] is the same proxy
//! for models with blocking calls.
//!
//! ```text
//!  client ─→ input: commands ─→ route::decide ─┬→ forward: to one node, or parts to several
//!    ↑                                         ├→ local: answered here
//!    │                                         ├→ transaction: over a leased connection
//!    │                                         └→ subscriptions
//!    └── ring: replies in order ←── replies ←── node
//! ```
//!
//! All clients of a core that use the same database and protocol share one connection to each node.
//! These connections carry only commands that leave no state behind on the node. Transactions,
//! watched keys, blocking commands and subscriptions each get a dedicated connection. A client's
//! requests to one node never use two connections at once, so they cannot overtake each other.
//!
//! # Where things are
//!
//! - `clients`: a client: its commands, what it may do, its pending replies.
//! - `node`: connections to the nodes, and their health.
//! - `reply`: whose a reply is, and several made into one.
//! - `engine`: the events of all connections; `state`: one core's proxy; `shared`: what all cores share.
//! - `sequential`: the same with blocking calls.

mod budget;
mod clients;
mod engine;
mod longest;
mod node;
mod peers;
mod reply;
mod sequential;
mod settings;
mod shared;
mod state;

pub use node::nodes::Nodes;
pub use sequential::Sequential;
pub use settings::{Auth, Credentials, Settings};
pub use shared::{Counts, Shared};
pub use state::Proxy;
