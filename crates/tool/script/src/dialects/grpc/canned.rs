//! The response of a server that answers all calls alike: the null server.

use super::framing;
use crate::{dialects::http2::sample::canned_reply, protocol::Canned};

/// Maximum length of its message, in bytes. The null server closes a connection whose socket does not take all
/// responses that are due, so those of many calls must fit.
const LONGEST: usize = 4096;

/// A response with this message; `None` if that is too long.
pub(super) fn of(message: &[u8]) -> Option<Canned> {
    let mut content = Vec::new();
    framing::write(message, &mut content);
    let head: [(&[u8], &[u8]); 2] = [(b":status", b"200"), (b"content-type", b"application/grpc")];
    let reply = canned_reply(&head, &content, &[(b"grpc-status", b"0")]).into();
    // The server sees where a request ends, and needs not know its length.
    (message.len() <= LONGEST).then_some(Canned { request_bytes: 1, reply })
}
