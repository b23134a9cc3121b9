//! HTTP/1.1, both ends, by RFC 9112 (messages) and RFC 9110 (semantics).
//!
//! The server end is [`server::Decoder`] (bytes → requests) and [`Reply`] (a reply → bytes appended
//! to a buffer). The client end is [`client::Decoder`] and [`client::Ask`].
//!
//! Request heads have two readers. The fast one parses well-formed heads in one pass. A head that it
//! does not accept goes to the careful one, which uses `httparse` and decides what is wrong. Tests
//! compare the two. Response heads are always read by the careful one.
//!
//! Both ends are strict wherever two readers of the same bytes might disagree on where a message
//! ends, because that is how requests are smuggled. A line ends with CR LF and nothing else. A
//! length is given once. A message that breaks a rule is refused, never repaired. What a decoder
//! reports depends on the bytes alone, never on how they were cut into pieces.
//!
//! Nothing is allocated for a message. A request or response borrows from the buffer that the
//! decoder was given.

mod body;
mod chunked;
pub mod client;
mod date;
mod fault;
mod fields;
mod framing;
mod head;
mod method;
mod parser;
mod reply;
mod scan;
pub mod server;
mod size_line;
mod target;

pub use body::Body;
pub use date::Date;
pub use fault::{Fault, Status};
pub use fields::Fields;
pub use head::Version;
pub use method::Method;
pub use reply::{CONTINUE, Field, Prepared, Reply, Terms};

/// Longest request line or status line in bytes, its CR LF counted. RFC 9112, section 3 asks for
/// at least 8,000.
pub const MAX_LINE: usize = 8 * 1024;

/// Longest head in bytes: first line, fields and the empty line.
pub const MAX_HEAD: usize = 16 * 1024;

/// Most fields of a head.
pub const MAX_FIELDS: usize = 100;

/// Longest content of a request in bytes; of a chunked one, its chunk framing counted.
pub const MAX_BODY: usize = 64 * 1024;

/// Longest line that tells the size of a chunk, in bytes, extensions and CR LF counted
/// (RFC 9112, 7.1.1 asks for a limit).
pub const MAX_CHUNK_LINE: usize = 256;

/// Longest trailer section in bytes, its empty line counted.
pub const MAX_TRAILERS: usize = 4 * 1024;

/// The longest request: a buffer of this size always makes progress. The two bytes are the one
/// empty line that may stand before a request (RFC 9112, 2.2).
pub const MAX_FRAME: usize = 2 + MAX_HEAD + MAX_BODY + MAX_CHUNK_LINE + MAX_TRAILERS;
