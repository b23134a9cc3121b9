//! HTTP/2 by RFC 9113 and its header compression by RFC 7541, as functions and state machines: bytes in,
//! events and bytes out.
//!
//! Nothing here owns a socket, a clock or a thread, and nothing is shared with the codecs of HTTP/1.1.
//! *Incomplete* is a result, never an error. Each rule that a peer can violate is a [`Rule`], with its
//! scope, error code and section.
//!
//! - [`hpack`]: field blocks to fields, and back.
//! - [`frame`]: frames to bytes, and their headers from bytes.
//! - [`client`]: the client end of a connection.
//! - [`server`]: the server end of a connection.
//!
//! [`client::Client`] is made for load generators, which know all requests before they start. Their field
//! blocks are encoded once, with [`hpack::Encoder`], and their frames are compiled once, with
//! [`client::Prepared`]; sending one is a copy with another stream identifier. Responses of any number of
//! streams are checked as they arrive, in any order. A response head with the same bytes as the last one
//! is not decoded again.
//!
//! The events depend only on the bytes, never on how they were split, with one exception: content is
//! returned in the pieces in which it arrives. In the steady state, nothing is allocated.
//!
//! # Example
//!
//! ```
//! use regatta_http2::{
//!     client::{Client, Config, Event, Prepared, Request},
//!     hpack::{Encoder, Indexing},
//! };
//!
//! let mut block = Vec::new();
//! let fields: [(&[u8], &[u8]); 4] =
//!     [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a")];
//! let fields = fields.map(|(name, value)| (name, value, Indexing::Without));
//! Encoder::default().encode(fields, &mut block);
//! let request = Prepared::new(&block, b"", 16_384);
//!
//! let (mut client, mut out) = (Client::new(Config::CLIENT).unwrap(), Vec::new());
//! client.open(&mut out);
//! let stream = client.start(Request { place: 7, is_head: false, content: 0 }).unwrap();
//! request.write(stream, &mut out);
//!
//! // An empty SETTINGS frame, and a HEADERS frame with `:status: 200` that ends stream 1.
//! let mut input: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88];
//! assert!(matches!(client.next(&mut input, &mut out), Ok(Some(Event::Settings(_)))));
//! let Ok(Some(Event::Head { stream, head })) = client.next(&mut input, &mut out) else { panic!() };
//! assert_eq!((stream.place, head.status, head.ends), (7, 200, true));
//! ```

pub mod client;
mod code;
mod connection;
pub mod frame;
pub mod hpack;
mod rule;
pub mod server;
mod settings;
mod window;

pub use code::ErrorCode;
pub use rule::{Rule, Scope};
pub use settings::Settings;
