//! The proxy of one core: an engine between clients and the nodes.
//!
//! ```text
//!  client ─→ input: commands ─→ route::decide ─┬→ forward: to one node, or parts to several
//!    ↑                                         ├→ local: answered here
//!    │                                         ├→ transaction: over a leased connection
//!    │                                         └→ subscriptions
//!    └── ring: replies in order ←── replies ←── node
//! ```
//!
//! Connections to nodes are shared by all clients of a core that use the same database and protocol,
//! and carry only commands that leave no state behind. What needs a connection of its own gets one:
//! transactions, watched keys, commands that block, subscriptions. A client's requests to one node
//! never travel on two connections at once, so they cannot overtake each other.

mod client;
mod engine;
mod errors;
mod forward;
mod health;
mod identity;
mod input;
mod lease;
mod leased;
mod local;
mod loss;
mod merging;
mod next;
mod nodes;
mod peers;
mod pools;
mod replies;
mod ring;
mod sequential;
mod settings;
mod shared;
mod state;
mod subscribed;
mod subscriptions;
mod transaction;
mod upstream;

pub use nodes::Nodes;
pub use sequential::Sequential;
pub use settings::{Auth, Credentials, Settings};
pub use shared::{Counts, Shared};
pub use state::Proxy;
