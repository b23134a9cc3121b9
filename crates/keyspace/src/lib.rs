//! What a proxy in front of N Redis nodes must know of keys: which node has which key, and which nodes
//! a request concerns.
//!
//! Everything here is pure: no sockets, no clocks, no threads, no connections.
//!
//! - [`map`]: the shard map, an immutable snapshot that maps a key to a node.
//! - [`command`]: the commands of Redis, and where their keys are.
//! - [`route`]: the decision for one request: which nodes get it, or why it is refused.

mod arguments;
pub mod command;
pub mod map;
pub mod route;

pub use arguments::Arguments;
