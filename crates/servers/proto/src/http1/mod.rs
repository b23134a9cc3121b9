//! HTTP/1.1, client and server, by RFC 9112 (messages) and RFC 9110 (semantics).
//!
//! The server side is [`server::Decoder`] (bytes → requests) and [`Reply`] (a reply → bytes
//! appended to a buffer). The client side is [`client::Decoder`] and [`client::Ask`].
//!
//! Request heads have two parsers. The fast one parses well-formed heads in one pass. A head that
//! it does not accept is passed to the careful one, which uses `httparse` and determines the fault.
//! Tests compare the two. Response heads always use the careful one.
//!
//! Both sides are strict wherever two recipients of the same bytes might disagree on where a
//! message ends, because that allows request smuggling. A line ends with CR LF and nothing else. A
//! length is given once. A message that violates a rule is refused, never repaired. The events of a
//! decoder depend only on the bytes, never on how they were split, with one exception: the client
//! side returns content in the pieces in which it arrives.
//!
//! In the steady state, nothing is allocated for a message. A request or response borrows from the
//! decoder's input buffer.

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
pub use target::{Ask, check_authority};

/// Maximum length of a request line or status line in bytes, including CR LF. RFC 9112, section 3
/// asks for at least 8,000.
pub const MAX_LINE: usize = 8 * 1024;

/// Maximum length of a head in bytes: first line, fields and empty line.
pub const MAX_HEAD: usize = 16 * 1024;

/// Maximum number of fields in a head.
pub const MAX_FIELDS: usize = 100;

/// Maximum size of a request's content in bytes, including chunk framing.
pub const MAX_BODY: usize = 64 * 1024;

/// Maximum length of a chunk's size line in bytes, including extensions and CR LF (RFC 9112, 7.1.1
/// asks for a limit).
pub const MAX_CHUNK_LINE: usize = 256;

/// Maximum length of a trailer section in bytes, including its empty line.
pub const MAX_TRAILERS: usize = 4 * 1024;

/// Maximum size of a request in bytes: a buffer of this size always makes progress. The two extra
/// bytes are the empty line allowed before a request (RFC 9112, 2.2).
pub const MAX_FRAME: usize = 2 + MAX_HEAD + MAX_BODY + MAX_CHUNK_LINE + MAX_TRAILERS;
