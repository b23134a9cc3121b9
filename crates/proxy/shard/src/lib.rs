//! The proxy of one core: an engine between clients and the nodes. [`Sequential`] is the same proxy
//! for models with blocking calls.
//!
//! ```text
//!  client ─→ input: commands ─→ route::decide ─┬→ forward: to one node, or parts to several
//!    ↑                                         ├→ local: answered here
//!    │                                         ├→ transaction: over a leased connection
//!    │                                         └→ subscriptions
//!    └── ring: replies in order ←┬─ replies ←── node
//!                                └─ node_lost: errors
//! ```
//!
//! All clients of a core that use the same database and protocol share one connection to each node.
//! These connections carry only commands that leave no state behind on the node. Transactions,
//! watched keys, blocking commands and subscriptions each get a dedicated connection. A client's
//! requests to one node never use two connections at once, so they cannot overtake each other.
//!
//! # Where things are
//!
//! - `clients`: what is known of a client: who it is, its transaction and subscriptions, its pending replies.
//! - `cluster`: what the nodes of a Redis Cluster report of it, and which requests are sent again.
//! - `node`: the nodes, and connections to them.
//! - `sentinel`: what Sentinels report of the masters that they manage, and which address counts.
//! - `reply`: several replies made into one, and those of the proxy itself.
//! - `proxy`: what happens at each event of a connection, a stop that is spread over a time (`drain`), and
//!   the state of one core; `shared`: what all cores share.
//! - `users`: users of the nodes, as whom clients send requests.
//! - `tally`: what a core counts; `observe`: how long nodes take, and which keys are hot; `metrics`: the pages that
//!   show them.
//! - `sequential`: the same with blocking calls.

mod clients;
pub mod cluster;
mod metrics;
mod node;
mod observe;
mod peers;
mod proxy;
mod reply;
pub mod sentinel;
mod sequential;
mod settings;
mod shared;
mod tally;
mod users;

pub use metrics::Metrics;
pub use node::nodes::Nodes;
pub use observe::slow_log::{SlowEntry, SlowLog};
pub use proxy::state::Proxy;
pub use sequential::Sequential;
pub use settings::{Auth, Credentials, Sentinels, Settings};
pub use shared::{Counts, Reports, Shared};
