//! Errors of creating a map.

use thiserror::Error;

/// Maximum number of nodes of a map. The cursors of SCAN have room for this many.
pub const MAX_NODES: usize = 1024;

/// Why a map cannot be created.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MapError {
    /// There are no nodes.
    #[error("a shard map needs at least one node")]
    NoNodes,
    /// There are more than [`MAX_NODES`] nodes.
    #[error("too many nodes: {0}; a shard map has at most {most}", most = MAX_NODES)]
    TooManyNodes(usize),
    /// A server line does not have the form of twemproxy.
    #[error(
        "'{line}' is not a twemproxy server; expected 'host:port:weight name' or \
         '/path/of/socket:weight name' (the name is optional): {why}"
    )]
    Server {
        /// The line.
        line: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Two servers of a twemproxy pool have the same name. twemproxy also refuses such a pool.
    #[error("two servers have the name '{0}'; names must differ")]
    SameName(String),
    /// The sum of the weights of a twemproxy pool exceeds 32 bits.
    #[error("the sum of the weights of all servers exceeds {most}", most = u32::MAX)]
    TooMuchWeight,
    /// The name of a hash is unknown.
    #[error(
        "'{0}' is not a hash of twemproxy; expected one_at_a_time, md5, crc16, crc32, crc32a, \
         fnv1_64, fnv1a_64, fnv1_32, fnv1a_32, hsieh, murmur or jenkins"
    )]
    Hash(String),
    /// The name of a distribution is unknown.
    #[error("'{0}' is not a distribution; expected ketama or modula")]
    Distribution(String),
    /// The distribution `random` is not supported.
    #[error(
        "the distribution 'random' is not supported: it sends each request to any node, so a \
         written key would not be found again"
    )]
    Random,
}

/// Checks the number of nodes.
pub(super) fn check(nodes: usize) -> Result<usize, MapError> {
    match nodes {
        0 => Err(MapError::NoNodes),
        1..=MAX_NODES => Ok(nodes),
        _ => Err(MapError::TooManyNodes(nodes)),
    }
}
