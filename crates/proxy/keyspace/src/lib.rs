//! The knowledge about keys that a proxy in front of N Redis nodes needs: which node owns which
//! key, and which nodes a request concerns.
//!
//! Everything here is pure: no sockets, clocks, threads or connections.
//!
//! - [`map`]: the shard map, an immutable snapshot that maps keys to nodes.
//! - [`command`]: the commands of Redis, and the positions of their keys.
//! - [`route`]: the decision for one request: which nodes receive it, or why it is refused.

mod arguments;
pub mod command;
pub mod map;
pub mod route;

pub use arguments::Arguments;
