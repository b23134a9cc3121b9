//! Why a map cannot be made.

use thiserror::Error;

/// The most nodes of a map. The cursors of SCAN have room for this many.
pub const MAX_NODES: usize = 1024;

/// Why a map cannot be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MapError {
    /// There is no node.
    #[error("a shard map needs at least one node")]
    NoNodes,
    /// There are more than [`MAX_NODES`] nodes.
    #[error("{0} nodes are too many: a shard map has at most {most}", most = MAX_NODES)]
    TooManyNodes(usize),
    /// A server's line is not of twemproxy's form.
    #[error(
        "'{line}' is not a server as twemproxy writes it ('host:port:weight name' or \
         '/path/of/socket:weight name'; the name is optional): {why}"
    )]
    Server {
        /// The line as it was given.
        line: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two servers of a twemproxy pool have one name. twemproxy refuses such a pool, too.
    #[error("two servers have the name '{0}'; names must differ")]
    SameName(String),
    /// The weights of a twemproxy pool add up to more than 32 bits hold.
    #[error("the weights of all servers add up to more than {most}", most = u32::MAX)]
    TooMuchWeight,
    /// The name of a hash is unknown.
    #[error(
        "'{0}' is not a hash of twemproxy; known are one_at_a_time, md5, crc16, crc32, crc32a, \
         fnv1_64, fnv1a_64, fnv1_32, fnv1a_32, hsieh, murmur, jenkins"
    )]
    Hash(String),
    /// The name of a distribution is unknown.
    #[error("'{0}' is not a distribution; known are ketama and modula")]
    Distribution(String),
    /// The distribution `random` is not offered.
    #[error(
        "the distribution 'random' is not supported: it sends each request to any node, so a key \
         that was written would not be found again"
    )]
    Random,
}

/// Checks a number of nodes.
pub(super) fn check(nodes: usize) -> Result<usize, MapError> {
    match nodes {
        0 => Err(MapError::NoNodes),
        1..=MAX_NODES => Ok(nodes),
        _ => Err(MapError::TooManyNodes(nodes)),
    }
}
